"""A doctor who does not answer gets three follow-ups and then a pause. The wait for each stage starts when the previous
message was sent. The tests run on both databases.
"""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.comum.telefone import Address
from app.contexts.comum.whatsapp import NotOnWhatsApp, Unknown
from app.contexts.conversas.atendimento import ConversaDesconhecida, ConversaEncerrada, EstagioDaConversa
from app.contexts.followups.model import PausaNoPassado
from app.contexts.followups.service import Followups
from app.contexts.mensagens.service import NaDevolucao
from app.contexts.webhooks.api import Recebida
from batuta.jobs import JobCall
from batuta.queue.outcome import Done
from tests.julia.envio.sending import MINUTE, PHONE, Office
from tests.julia.plantoes.mesa import add_vaga, vaga
from tests.julia.tables import add_doctor, one, rows, write

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
UNKNOWN_ID = "00000000-0000-7000-8000-999999999999"
QUEUED = "SELECT * FROM fila_mensagens WHERE tipo LIKE 'followup_%' ORDER BY created_at, id"


def followups(office: Office) -> Followups:
    return julia_of(office.work).followups.followups


async def run(office: Office, job: str = "processar_followups") -> dict[str, Any]:
    now = office.clock.now()
    call = JobCall(key="test", params={}, started_at=now, deadline=now + 5 * MINUTE)
    outcome = await getattr(followups(office), job)(call)
    assert isinstance(outcome, Done)
    assert isinstance(outcome.result, dict)
    return dict(outcome.result)


async def queued(office: Office) -> list[dict[str, Any]]:
    return await rows(office.work.database, QUEUED)


async def statuses(office: Office) -> list[tuple[str, str]]:
    return [(row["tipo"], row["status"]) for row in await queued(office)]


async def talk(office: Office) -> dict[str, Any]:
    return await one(office.work.database, "SELECT * FROM conversations")


async def begin(office: Office, doctor: str, *, stage: str = "msg_enviada", age: timedelta = 3 * DAY) -> str:
    """Open a conversation whose last message has this age. The id of the conversation is also the doctor's id."""
    now = office.clock.now()
    await write(
        office.work.database,
        "INSERT INTO conversations (id, cliente_id, stage, ultima_mensagem_em, created_at, updated_at)"
        " VALUES (:id, :id, :stage, :since, :since, :since)",
        id=doctor,
        stage=stage,
        since=now - age,
    )
    return doctor


async def receive(office: Office, texto: str, message_id: str = "m1") -> None:
    now = office.clock.now()
    fato = Recebida(
        message_id=message_id, instance="julia-sim", de=Address(f"{PHONE}@s.whatsapp.net", PHONE), nome=None,
        texto=texto, midia=None, em=now,
    )  # fmt: skip
    async with office.work.database.transaction() as transaction:
        await office.conversas.recebida(transaction, fato, now=now)


async def send(office: Office) -> None:
    await office.later(MINUTE)
    await office.works()


async def test_three_follow_ups_and_then_a_pause(office: Office, doctor: str, chip: str) -> None:
    await office.put(doctor, "Primeira mensagem", tipo="prospeccao")
    await office.works()
    assert (await talk(office))["stage"] == "msg_enviada"
    for wait, tipo, before, after in (
        (48 * HOUR, "followup_1", "msg_enviada", "followup_1_enviado"),
        (5 * DAY, "followup_2", "followup_1_enviado", "followup_2_enviado"),
        (15 * DAY, "followup_3", "followup_2_enviado", "nao_respondeu"),
    ):
        due = (await talk(office))["ultima_mensagem_em"] + wait
        await office.later(due - office.clock.now() - MINUTE)
        assert (await run(office))["enfileirados"] == 0
        await office.later(MINUTE)
        assert (await run(office))["por_tipo"][tipo] == 1
        assert (await talk(office))["stage"] == before
        while (await queued(office))[-1]["status"] == "pendente":  # over a weekend
            await office.works()
            await office.later(12 * HOUR)
        assert (await talk(office))["stage"] == after
        assert (await run(office))["enfileirados"] == 0
    paused = await talk(office)
    assert paused["pausado_ate"] == paused["ultima_mensagem_em"] + 60 * DAY
    assert len(office.line.receipts) == 4
    await office.later(40 * DAY)
    assert (await run(office, "processar_pausas_expiradas"))["reativadas"] == 0
    await office.later(21 * DAY)
    assert (await run(office, "processar_pausas_expiradas"))["reativadas"] == 1
    assert (await run(office, "processar_pausas_expiradas"))["reativadas"] == 0
    again = await talk(office)
    assert (again["stage"], again["pausado_ate"]) == ("recontato", None)
    assert (await run(office))["enfileirados"] == 0
    lines = await rows(office.work.database, "SELECT acao, por, motivo FROM conversas_historico ORDER BY ordem")
    assert [tuple(line.values()) for line in lines] == [
        ("pausar", "julia", "nao_respondeu"),
        ("retomar", "julia", "pausa_expirada"),
    ]


async def test_texts_name_julia_and_the_way_out_and_the_variants_differ(office: Office, doctor: str) -> None:
    for n in range(20):
        await begin(office, await add_doctor(office.work.database, f"55119{20_000_000 + n}"))
    await run(office)
    texts = [row["conteudo"] for row in await queued(office)]
    assert len(set(texts)) == 3
    assert all("Julia, assistente virtual" in text and "responda PARAR" in text for text in texts)


async def test_second_run_queues_nothing_while_a_message_is_queued(office: Office, doctor: str) -> None:
    await begin(office, doctor)
    first, second = await asyncio.gather(run(office), run(office))
    assert first["enfileirados"] + second["enfileirados"] == 1
    assert (await run(office))["enfileirados"] == 0
    assert await statuses(office) == [("followup_1", "pendente")]


@pytest.mark.parametrize("left", [True, False], ids=["left", "lost"])
async def test_follow_up_in_doubt_is_neither_repeated_nor_counted_early(
    office: Office, doctor: str, chip: str, left: bool
) -> None:
    await begin(office, doctor)
    await run(office)
    office.line.answers.append((Unknown("cut"), left))
    await office.works()
    assert (await queued(office))[0]["envio_estado"] == "unknown"
    assert (await talk(office))["stage"] == "msg_enviada"
    assert (await run(office))["enfileirados"] == 0
    await write(office.work.database, "UPDATE fila_mensagens SET envio_estado = 'parked'")
    assert (await run(office))["enfileirados"] == 0
    await write(office.work.database, "UPDATE fila_mensagens SET envio_estado = 'unknown'")
    for _ in range(6):
        await office.later(4 * MINUTE)
        await office.reconciler.look()
        await office.works()
    assert len(office.line.receipts) == 1
    assert await statuses(office) == [("followup_1", "enviada")]
    assert (await talk(office))["stage"] == "followup_1_enviado"


async def test_follow_up_that_fails_keeps_the_stage_and_is_tried_three_times(
    office: Office, doctor: str, chip: str
) -> None:
    id = await begin(office, doctor, age=11 * DAY)
    for n in range(3):
        assert (await run(office))["enfileirados"] == 1, n
        office.line.answers.append((NotOnWhatsApp(), False))
        await send(office)
        assert (await talk(office))["stage"] == "msg_enviada"
    assert (await run(office))["enfileirados"] == 0
    (listed,) = await followups(office).listar(limite=5)
    assert listed["impedimento"] == "falhas"
    report = await followups(office).ask()
    assert [(each.cause, each.value) for each in report.findings] == [("followups.com_falhas", 1)]
    await followups(office).retomar(id, por="ana", motivo="número corrigido")
    assert (await run(office))["enfileirados"] == 1
    await send(office)
    assert (await talk(office))["stage"] == "followup_1_enviado"


async def test_run_queues_the_oldest_fifty_and_reports_the_remainder(office: Office, chip: str) -> None:
    for n in range(53):
        id = await add_doctor(office.work.database, f"55119{30_000_000 + n}")
        await begin(office, id, age=20 * DAY + n * HOUR)
    result = await run(office)
    assert (result["enfileirados"], result["restantes"]) == (50, {"followup_1": 3, "followup_2": 0, "followup_3": 0})
    waiting = await followups(office).listar(estagio=EstagioDaConversa.MSG_ENVIADA, devidos=True, limite=100)
    assert {row["telefone"] for row in waiting} == {f"55119{30_000_000 + n}" for n in range(3)}
    report = await followups(office).ask()
    assert [(each.cause, each.value) for each in report.findings] == [("followups.atrasados", 3)]
    assert (await run(office))["enfileirados"] == 3


HOLDS = {
    "com_pessoa": "UPDATE conversations SET controlled_by = 'human', status = 'escalated'",
    "pausada": "UPDATE conversations SET pausado_ate = :later",
    "cadastro_removido": "UPDATE clientes SET deleted_at = :now",
    "optout": "UPDATE clientes SET opted_out = TRUE",
    "telefone_invalido": "UPDATE clientes SET status_telefone = 'invalido'",
    "na_fila": "INSERT INTO fila_mensagens (id, cliente_id, telefone_destino, conteudo, agendar_para, created_at)"
    " SELECT id, id, telefone, '-', :later, :now FROM clientes",
    "optout_provavel": "INSERT INTO optouts_provaveis (id, telefone, telefone_chave, provider_message_id, regra, created_at)"
    " SELECT id, telefone, telefone_chave, 'm', 'r', :now FROM clientes",
    "em_descanso": "INSERT INTO doctor_state (cliente_id, permission_state, cooling_off_until, updated_at)"
    " SELECT id, 'cooling_off', :later, :now FROM clientes",
    "proximo_contato": "INSERT INTO doctor_state (cliente_id, next_allowed_at, updated_at)"
    " SELECT id, :later, :now FROM clientes",
}


@pytest.mark.parametrize("why", HOLDS)
async def test_no_follow_up_is_queued_while_a_rule_objects(office: Office, doctor: str, why: str) -> None:
    await begin(office, doctor)
    now = office.clock.now()
    values = {name: at for name, at in (("now", now), ("later", now + DAY)) if f":{name}" in HOLDS[why]}
    await write(office.work.database, HOLDS[why], **values)
    assert (await run(office))["enfileirados"] == 0
    (listed,) = await followups(office).listar(limite=5)
    assert listed["impedimento"] == why


async def test_person_who_posted_a_vacancy_is_not_a_doctor_without_an_answer(office: Office, doctor: str) -> None:
    id = await begin(office, doctor, age=30 * DAY)
    await write(office.work.database, "UPDATE clientes SET tipo = 'divulgador' WHERE id = :id", id=id)
    assert (await run(office))["enfileirados"] == 0
    assert await followups(office).listar(limite=5) == []
    assert (await followups(office).ask()).findings == ()


async def test_weekly_cap_and_other_stages_get_no_follow_up(office: Office, doctor: str, chip: str) -> None:
    for n in range(5):
        await office.put(doctor, f"Mensagem {n}")
        await send(office)
    await write(
        office.work.database, "UPDATE conversations SET ultima_mensagem_em = :at", at=office.clock.now() - 3 * DAY
    )
    assert (await run(office))["enfileirados"] == 0
    (listed,) = await followups(office).listar(limite=5)
    assert listed["impedimento"] == "limite_contatos"
    for stage in EstagioDaConversa:
        if stage not in (
            EstagioDaConversa.MSG_ENVIADA,
            EstagioDaConversa.FOLLOWUP_1_ENVIADO,
            EstagioDaConversa.FOLLOWUP_2_ENVIADO,
        ):
            await write(
                office.work.database,
                "UPDATE conversations SET stage = :stage, ultima_mensagem_em = :at",
                stage=stage.value,
                at=office.clock.now() - 90 * DAY,
            )
            assert (await run(office))["enfileirados"] == 0, stage


CHANGES = {
    "answered": ("UPDATE conversations SET stage = 'respondeu'", "cancelada", "FAILED_EXPIRED"),
    "moved": ("UPDATE conversations SET stage = 'followup_1_enviado'", "cancelada", "FAILED_EXPIRED"),
    "ended": ("UPDATE conversations SET status = 'completed'", "cancelada", "FAILED_EXPIRED"),
    "paused": ("UPDATE conversations SET pausado_ate = :later", "cancelada", "FAILED_EXPIRED"),
    "written to": ("UPDATE conversations SET ultima_mensagem_em = :soon", "cancelada", "FAILED_EXPIRED"),
    "opted out": ("UPDATE clientes SET opted_out = TRUE", "bloqueada", "BLOCKED_OPTED_OUT"),
    "resting": (
        "INSERT INTO doctor_state (cliente_id, permission_state, cooling_off_until, updated_at)"
        " SELECT id, 'cooling_off', :later, :soon FROM clientes",
        "bloqueada",
        "BLOCKED_COOLING_OFF",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_conditions_are_checked_again_at_the_send(office: Office, doctor: str, chip: str, what: str) -> None:
    await begin(office, doctor)
    await run(office)
    sql, status, outcome = CHANGES[what]
    await office.later(MINUTE)
    now = office.clock.now()
    values = {name: at for name, at in (("soon", now), ("later", now + DAY)) if f":{name}" in sql}
    await write(office.work.database, sql, **values)
    before = (await talk(office))["stage"]
    await office.works()
    (row,) = await queued(office)
    assert (row["status"], row["outcome"], office.line.receipts) == (status, outcome, [])
    assert (await talk(office))["stage"] == before


async def test_answer_of_the_doctor_cancels_the_follow_up_and_ends_the_sequence(
    office: Office, doctor: str, chip: str
) -> None:
    await begin(office, doctor)
    await run(office)
    await receive(office, "oi")
    await send(office)
    assert await statuses(office) == [("followup_1", "cancelada")]
    await office.later(30 * DAY)
    assert (await run(office))["enfileirados"] == 0


async def test_follow_up_queued_at_night_waits_for_the_morning(office: Office, doctor: str, chip: str) -> None:
    await begin(office, doctor)
    await office.later(10 * HOUR)  # 21:00
    await run(office)
    await office.works()
    assert office.line.receipts == []
    await office.later(11 * HOUR)  # 08:00
    await office.works()
    assert len(office.line.receipts) == 1


@pytest.mark.parametrize("decision", list(NaDevolucao))
async def test_person_who_takes_over_holds_the_follow_up_and_decides_about_it(
    office: Office, doctor: str, chip: str, decision: NaDevolucao
) -> None:
    id, care = await begin(office, doctor), julia_of(office.work).messages.atendimento
    await run(office)
    await care.assumir(id, por="ana", motivo="negociar")
    await send(office)
    assert (await statuses(office), office.line.receipts) == ([("followup_1", "pendente")], [])
    assert (await run(office))["enfileirados"] == 0
    await care.devolver(id, decision, por="ana", motivo="pronto")
    await send(office)
    sent = decision is NaDevolucao.CONTINUAR
    assert await statuses(office) == [("followup_1", "enviada" if sent else "cancelada")]
    # The next follow-up counts from the moment at which the person returned the conversation.
    await office.later(DAY)
    assert (await run(office))["enfileirados"] == 0
    await office.later(DAY)
    assert (await run(office))["enfileirados"] == (0 if sent else 1)


async def open_second_stage(office: Office, doctor: str, especialidade: str | None = "pediatria") -> None:
    await write(office.work.database, "UPDATE clientes SET especialidade = :area", area=especialidade)
    await begin(office, doctor, stage="followup_1_enviado", age=6 * DAY)


async def test_second_follow_up_names_one_open_vacancy_and_an_acceptance_reserves_it(
    office: Office, doctor: str, chip: str
) -> None:
    id = await add_vaga(office)
    await add_vaga(office, especialidade="Cardiologia", data=office.clock.now().date() + 2 * DAY)
    await open_second_stage(office, doctor)
    await run(office)
    (row,) = await queued(office)
    assert "Hospital Fictício" in row["conteudo"]
    assert "R$ 1.500" in row["conteudo"]
    await send(office)
    await receive(office, "aceito")
    assert ((await vaga(office, id))["status"], (await vaga(office, id))["cliente_id"]) == ("reservada", doctor)


async def test_vacancy_that_was_offered_before_or_begins_today_is_not_named(
    office: Office, doctor: str, chip: str
) -> None:
    offered = await add_vaga(office)
    await add_vaga(office, data=office.clock.now().date())
    await open_second_stage(office, doctor)
    await julia_of(office.work).shifts.anuncios.anunciar(offered, [doctor], por="gestora")
    await write(office.work.database, "UPDATE fila_mensagens SET status = 'cancelada'")
    await run(office)
    (row,) = await queued(office)
    assert "Hospital" not in row["conteudo"]


@pytest.mark.parametrize("especialidade", [None, "Cardiologia"])
async def test_vacancy_of_another_or_unknown_speciality_is_not_named(
    office: Office, doctor: str, chip: str, especialidade: str | None
) -> None:
    await add_vaga(office)
    await open_second_stage(office, doctor, especialidade)
    await run(office)
    (row,) = await queued(office)
    assert "Hospital" not in row["conteudo"]


async def test_second_follow_up_is_cancelled_if_its_vacancy_is_taken_and_written_again(
    office: Office, doctor: str, chip: str
) -> None:
    id, other = await add_vaga(office), await add_doctor(office.work.database, "5511900000077")
    await open_second_stage(office, doctor)
    await run(office)
    await julia_of(office.work).shifts.plantoes.reservar(id, other, por="gestora")
    await send(office)
    assert (await statuses(office), office.line.receipts) == ([("followup_2", "cancelada")], [])
    assert (await run(office))["enfileirados"] == 1
    await send(office)
    assert "Hospital" not in office.line.receipts[0].texto
    assert (await one(office.work.database, "SELECT stage FROM conversations"))["stage"] == "followup_2_enviado"


@pytest.mark.parametrize("trigger", [True, False], ids=["trigger", "person"])
async def test_pause_stops_automatic_triggers_and_not_people(
    office: Office, doctor: str, chip: str, trigger: bool
) -> None:
    await begin(office, doctor, stage="nao_respondeu")
    await write(office.work.database, "UPDATE conversations SET pausado_ate = :at", at=office.clock.now() + DAY)
    for switch, value in (("pilot_mode", False), ("reativacao_automatica_enabled", True)):
        await office.work.switches.set(switch, value, by="ana", reason="-", now=office.clock.now())
    id = await office.put(doctor, tipo="reativacao" if trigger else "manual")
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["outcome"]) == (
        ("bloqueada", "BLOCKED_NEXT_ALLOWED") if trigger else ("enviada", "SENT")
    )


async def test_answer_during_the_pause_ends_it(office: Office, doctor: str) -> None:
    await begin(office, doctor, stage="nao_respondeu")
    await write(office.work.database, "UPDATE conversations SET pausado_ate = :at", at=office.clock.now() + DAY)
    await receive(office, "oi")
    after = await talk(office)
    assert (after["stage"], after["pausado_ate"]) == ("respondeu", None)
    await office.later(2 * DAY)
    assert (await run(office, "processar_pausas_expiradas"))["reativadas"] == 0


async def test_every_expired_pause_ends_in_one_run(office: Office) -> None:
    until = office.clock.now() - HOUR
    for n in range(230):
        await begin(office, await add_doctor(office.work.database, f"55119{40_000_000 + n}"), stage="nao_respondeu")
    await write(office.work.database, "UPDATE conversations SET pausado_ate = :until", until=until)
    assert (await run(office, "processar_pausas_expiradas"))["reativadas"] == 230


async def test_operator_pauses_and_resumes_with_a_record(office: Office, doctor: str, chip: str) -> None:
    id, now = await begin(office, doctor), office.clock.now()
    until = now + 3 * DAY
    await run(office)
    paused = await followups(office).pausar(id, until, por="ana", motivo="férias")
    assert (paused.estagio, paused.ate) == (EstagioDaConversa.MSG_ENVIADA, until)
    await send(office)
    assert await statuses(office) == [("followup_1", "cancelada")]
    assert (await run(office))["enfileirados"] == 0
    await followups(office).retomar(id, por="ana", motivo="voltou")
    assert (await run(office))["enfileirados"] == 1
    lines = await rows(office.work.database, "SELECT acao, por, motivo FROM conversas_historico ORDER BY ordem")
    assert [tuple(line.values()) for line in lines] == [("pausar", "ana", "férias"), ("retomar", "ana", "voltou")]
    notes = await rows(office.work.database, "SELECT actor, action, after FROM audit_log ORDER BY at, id")
    assert [(note["actor"], note["action"]) for note in notes] == [
        ("ana", "followups.pausar"),
        ("ana", "followups.retomar"),
    ]


async def test_resuming_after_the_last_follow_up_allows_another_contact(office: Office, doctor: str) -> None:
    id = await begin(office, doctor, stage="nao_respondeu")
    await followups(office).pausar(id, office.clock.now() + DAY, por="ana", motivo="-")
    assert (await followups(office).retomar(id, por="ana", motivo="-")).estagio is EstagioDaConversa.RECONTATO
    assert (await talk(office))["stage"] == "recontato"


async def test_pause_of_an_unknown_or_ended_conversation_or_into_the_past_is_refused(
    office: Office, doctor: str
) -> None:
    id, now = await begin(office, doctor), office.clock.now()
    with pytest.raises(PausaNoPassado):
        await followups(office).pausar(id, now, por="ana", motivo="-")
    with pytest.raises(ConversaDesconhecida):
        await followups(office).pausar(UNKNOWN_ID, now + DAY, por="ana", motivo="-")
    await write(office.work.database, "UPDATE conversations SET status = 'completed'")
    with pytest.raises(ConversaEncerrada):
        await followups(office).retomar(id, por="ana", motivo="-")


async def test_every_schedule_of_the_follow_ups_has_a_handler(office: Office) -> None:
    for endpoint in ("processar-followups", "processar-pausas-expiradas"):
        found = office.work.endpoints.find(endpoint)
        assert found is not None
        assert found.finished
