"""A hand-off is opened once, sends reminders within the sending hours, ends once, and informs the doctor. The tests run
on both databases.
"""

import asyncio
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest

from app.composition.julia import julia_of
from app.contexts.handoffs.model import HandoffDesconhecido, HandoffEncerrado, HandoffNaoAbre
from tests.julia.envio.sending import MINUTE, Office
from tests.julia.handoffs.ponte import (
    HOUR,
    POSTER,
    group_vaga,
    handoff,
    handoffs,
    messages,
    open_handoff,
    pending,
    poster_writes,
    process,
    turn_on,
)
from tests.julia.plantoes.mesa import UNKNOWN_ID, add_doctors, add_vaga, events, history, shifts, vaga
from tests.julia.respostas.test_respostas import answers, go_to, offer, receive, said
from tests.julia.tables import add_doctor, one, rows, write

FRIDAY_EVENING = datetime(2026, 3, 13, 22, 0, tzinfo=UTC)  # 19:00 in São Paulo


async def test_opening_holds_the_vacancy_asks_the_poster_and_informs_the_doctor(
    office: Office, doctor: str, chip: str
) -> None:
    id = await group_vaga(office)
    await turn_on(office, False)
    opened = await handoffs(office).abrir(id, doctor, por="gestora", motivo="ligou")
    assert opened.ate == office.clock.now() + 48 * HOUR
    assert (await vaga(office, id))["status"] == "aguardando_confirmacao"
    assert (await history(office, id))[-1] == ("aberta", "aguardando_confirmacao", "gestora", "ligou")
    (asked,), (notice,) = await messages(office, "handoff"), await messages(office, "confirmacao")
    assert (asked["telefone_destino"], notice["cliente_id"]) == (POSTER, doctor)
    assert "NÃO CONFIRMO" in asked["conteudo"]
    poster = await one(office.work.database, "SELECT tipo FROM clientes WHERE telefone = :phone", phone=POSTER)
    assert poster["tipo"] == "divulgador"
    await office.works()
    row = await handoff(office, opened.id)
    assert (row["status"], row["contatado_em"]) == ("contacted", office.clock.now())
    vista = await handoffs(office).ver(opened.id)
    assert [(line["de"], line["para"], line["por"]) for line in vista.historico] == [
        (None, "pending", "gestora"),
        ("pending", "contacted", "julia"),
    ]


async def test_poster_gets_no_personal_data_of_the_doctor(office: Office, doctor: str, chip: str) -> None:
    await write(office.work.database, "UPDATE clientes SET primeiro_nome = 'Zuleide' WHERE id = :id", id=doctor)
    await open_handoff(office, doctor)
    await office.later(2 * HOUR)
    await process(office)
    for tipo in ("handoff", "lembrete_handoff"):
        for message in await messages(office, tipo):
            assert "Zuleide" not in message["conteudo"]
            assert "900000001" not in message["conteudo"]


async def test_vacancy_is_handed_off_once_at_a_time_and_once_per_doctor(office: Office, doctor: str, chip: str) -> None:
    id = await group_vaga(office)
    other = await add_doctor(office.work.database, "5511900000077")
    first = await handoffs(office).abrir(id, doctor, por="gestora", motivo="-")
    with pytest.raises(HandoffNaoAbre, match="no longer needs a doctor"):
        await handoffs(office).abrir(id, other, por="gestora", motivo="-")
    await handoffs(office).recusar(first.id, por="gestora", motivo="-")
    with pytest.raises(HandoffNaoAbre, match="already asked about this doctor"):
        await handoffs(office).abrir(id, doctor, por="gestora", motivo="-")
    await handoffs(office).abrir(id, other, por="gestora", motivo="-")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE vagas SET contato_whatsapp = NULL", "cannot write"),
        ("UPDATE vagas SET contato_whatsapp = '5511900000001'", "cannot write"),  # the doctor posted it
        ("UPDATE vagas SET data = '2026-03-11', hora_inicio = '07:00', hora_fim = '13:00'", "begins before"),
        ("UPDATE clientes SET tipo = 'divulgador'", "doctor does not exist"),
        ("INSERT INTO external_contacts (telefone, permission_state, updated_at, created_at)"
         " VALUES ('5511900000088', 'opted_out', '2026-03-11T14:00:00Z', '2026-03-11T14:00:00Z')", "cannot write"),
    ],
)  # fmt: skip
async def test_hand_off_that_cannot_succeed_is_not_opened(office: Office, doctor: str, change: str, why: str) -> None:
    id = await group_vaga(office)
    await write(office.work.database, change)
    with pytest.raises(HandoffNaoAbre, match=why):
        await handoffs(office).abrir(id, doctor, por="gestora", motivo="-")
    assert (await vaga(office, id))["status"] == "aberta"
    assert await messages(office, "handoff") == []


async def test_author_in_the_group_is_asked_if_the_vacancy_names_no_contact(
    office: Office, doctor: str, chip: str
) -> None:
    id, now = await group_vaga(office, poster=None), office.clock.now()
    for table, columns in (
        ("grupos_whatsapp", "jid) VALUES (:now, :id, 'grupo@g.us'"),
        ("contatos_grupo", "jid) VALUES (:now, :id, 'autora@lid'"),
        ("mensagens_grupo", "grupo_id, contato_id, message_id, sender_jid, texto, timestamp_msg, instance_name, status)"
         " VALUES (:now, :id, :id, :id, 'g1', 'autora@lid', '-', :now, 'escuta', 'processada'"),
        ("vagas_grupo", "mensagem_id, ordinal, grupo_origem_id, contato_responsavel_id, updated_at)"
         " VALUES (:now, :id, :id, 1, :id, :id, :now"),
    ):  # fmt: skip
        await write(office.work.database, f"INSERT INTO {table} (created_at, id, {columns})", id=UNKNOWN_ID, now=now)
    await write(
        office.work.database, "UPDATE vagas SET vaga_grupo_id = :origin WHERE id = :id", origin=UNKNOWN_ID, id=id
    )
    with pytest.raises(HandoffNaoAbre, match="cannot write"):
        await handoffs(office).abrir(id, doctor, por="gestora", motivo="-")
    await write(
        office.work.database,
        "INSERT INTO contatos_lid (lid, telefone, created_at) VALUES ('autora@lid', :phone, :now)",
        phone=POSTER,
        now=now,
    )
    await handoffs(office).abrir(id, doctor, por="gestora", motivo="-")
    assert [each["telefone_destino"] for each in await messages(office, "handoff")] == [POSTER]


async def test_unknown_vacancy_is_refused(office: Office, doctor: str) -> None:
    with pytest.raises(HandoffNaoAbre, match="vacancy does not exist"):
        await handoffs(office).abrir(UNKNOWN_ID, doctor, por="gestora", motivo="-")


async def test_confirmation_reserves_the_vacancy_and_informs_the_doctor(office: Office, doctor: str, chip: str) -> None:
    id = await open_handoff(office, doctor)
    done = await handoffs(office).confirmar(id, por="gestora", motivo="por telefone")
    assert (done.status, done.mudou) == ("confirmed", True)
    row = await handoff(office, id)
    assert (row["decidido_via"], row["decidido_por"]) == ("pessoa", "gestora")
    taken = await vaga(office, row["vaga_id"])
    assert (taken["status"], taken["cliente_id"]) == ("reservada", doctor)
    assert (await history(office, row["vaga_id"]))[-1][2:] == ("gestora", "por telefone")
    notice = (await messages(office, "confirmacao"))[-1]
    assert "confirmou que ele é seu" in notice["conteudo"]
    assert POSTER in notice["conteudo"]
    assert (await events(office, row["vaga_id"]))[-1] == "handoff_confirmed"
    await office.later(MINUTE)
    await office.works()
    assert (await messages(office, "confirmacao"))[-1]["status"] == "enviada"


async def test_refusal_returns_the_vacancy_to_its_offers(office: Office, doctor: str, chip: str) -> None:
    id = await open_handoff(office, doctor)
    done = await handoffs(office).recusar(id, por="gestora", motivo="preenchida")
    assert done.status == "not_confirmed"
    back = await vaga(office, (await handoff(office, id))["vaga_id"])
    assert (back["status"], back["cliente_id"]) == ("aberta", None)
    assert "não confirmou" in (await messages(office, "confirmacao"))[-1]["conteudo"]


async def test_second_decision_changes_nothing(office: Office, doctor: str, chip: str) -> None:
    id = await open_handoff(office, doctor)
    await handoffs(office).confirmar(id, por="gestora", motivo="-")
    assert not (await handoffs(office).confirmar(id, por="outra", motivo="-")).mudou
    with pytest.raises(HandoffEncerrado, match="already ended"):
        await handoffs(office).recusar(id, por="outra", motivo="-")
    with pytest.raises(HandoffDesconhecido):
        await handoffs(office).recusar(UNKNOWN_ID, por="outra", motivo="-")
    assert len(await messages(office, "confirmacao")) == 2


async def test_of_ten_concurrent_decisions_one_counts(office: Office, doctor: str, chip: str) -> None:
    id = await open_handoff(office, doctor)
    service = handoffs(office)
    acts = [(service.confirmar if n % 2 else service.recusar)(id, por=f"pessoa-{n}", motivo="-") for n in range(10)]
    results = await asyncio.gather(*acts, return_exceptions=True)
    assert sum(not isinstance(each, BaseException) and each.mudou for each in results) == 1
    row = await handoff(office, id)
    reserved = (await vaga(office, row["vaga_id"]))["status"] == "reservada"
    assert reserved is (row["status"] == "confirmed")
    assert len(await messages(office, "confirmacao")) == 2


async def test_of_fifty_doctors_who_want_one_vacancy_one_is_handed_off(office: Office, chip: str) -> None:
    id, doctors = await group_vaga(office), await add_doctors(office, 50)
    acts = [handoffs(office).abrir(id, doctor, por="gestora", motivo="-") for doctor in doctors]
    results = await asyncio.gather(*acts, return_exceptions=True)
    assert Counter(type(each).__name__ for each in results) == {"Aberto": 1, "HandoffNaoAbre": 49}
    assert len(await messages(office, "handoff")) == 1
    assert [line[1] for line in await history(office, id)] == ["aberta", "aguardando_confirmacao"]


@pytest.mark.parametrize("status", ["fechada", "cancelada", "reservada"])
async def test_vacancy_returns_only_from_its_own_state(office: Office, doctor: str, chip: str, status: str) -> None:
    id = await open_handoff(office, doctor)
    vaga_id = (await handoff(office, id))["vaga_id"]
    await write(office.work.database, "UPDATE vagas SET status = :status", status=status)
    done = await handoffs(office).confirmar(id, por="gestora", motivo="-")
    assert done.status == "not_confirmed"
    assert (await handoff(office, id))["decidido_via"] == "vaga"
    assert (await vaga(office, vaga_id))["status"] == status
    assert "não está mais disponível" in (await messages(office, "confirmacao"))[-1]["conteudo"]


async def test_job_ends_the_hand_off_of_a_vacancy_that_no_longer_waits(office: Office, doctor: str, chip: str) -> None:
    id = await open_handoff(office, doctor)
    await write(office.work.database, "UPDATE vagas SET status = 'fechada'")
    assert (await process(office))["encerrados"] == 1
    assert (await process(office))["abertos"] == 0
    assert (await handoff(office, id))["status"] == "not_confirmed"


async def test_reminders_after_2_24_and_36_hours_and_expiry_after_48(office: Office, doctor: str, chip: str) -> None:
    id = await open_handoff(office, doctor)
    sent: list[tuple[float, int]] = []
    began = office.clock.now()
    for _ in range(6 * 49):
        await office.later(10 * MINUTE)
        before = (await handoff(office, id))["followup_count"]
        await process(office)
        await office.works()
        if (count := (await handoff(office, id))["followup_count"]) > before:
            sent.append(((office.clock.now() - began) / HOUR, count))
        if (await handoff(office, id))["status"] == "expired":
            break
    # The hand-off was opened on Wednesday at 11:00. The third reminder is due on Thursday at 23:00 and waits until
    # Friday, 08:00.
    assert sent == [(2.0, 1), (24.0, 2), (45.0, 3)]
    row = await handoff(office, id)
    assert (row["status"], row["decidido_em"] - began, row["decidido_via"]) == ("expired", 48 * HOUR, "prazo")
    assert (await vaga(office, row["vaga_id"]))["status"] == "aberta"
    assert "não respondeu a tempo" in (await messages(office, "confirmacao"))[-1]["conteudo"]
    assert Counter(await events(office, row["vaga_id"]))["handoff_lembrete"] == 3
    texts = [message["conteudo"] for message in await messages(office, "lembrete_handoff")]
    assert ["último aviso" in each for each in texts] == [False, False, True]


async def test_no_reminder_is_queued_at_night_or_on_a_weekend(office: Office, doctor: str, chip: str) -> None:
    await go_to(office, FRIDAY_EVENING)
    id = await open_handoff(office, doctor)
    for _ in range(6 * 48 + 1):
        await office.later(10 * MINUTE)
        await process(office)
    assert await messages(office, "lembrete_handoff") == []
    assert (await handoff(office, id))["status"] == "expired"


async def test_night_acceptance_gives_the_poster_48_hours_from_the_morning(
    office: Office, doctor: str, chip: str
) -> None:
    await go_to(office, FRIDAY_EVENING + 2 * HOUR)
    await turn_on(office)
    opened = await handoffs(office).abrir(await group_vaga(office), doctor, por="gestora", motivo="-")
    await office.later(60 * HOUR)
    await process(office)
    await office.works()
    assert (await handoff(office, opened.id))["status"] == "contacted"


async def test_two_concurrent_runs_queue_one_reminder(office: Office, doctor: str, chip: str) -> None:
    await open_handoff(office, doctor)
    await office.later(2 * HOUR)
    await asyncio.gather(*(process(office) for _ in range(5)))
    assert len(await messages(office, "lembrete_handoff")) == 1


async def test_reminder_that_is_still_queued_holds_the_next_one(office: Office, doctor: str, chip: str) -> None:
    await open_handoff(office, doctor)
    await office.later(2 * HOUR)
    await process(office)
    await office.later(23 * HOUR)
    assert (await process(office))["lembretes_enfileirados"] == 0
    await office.works()
    await office.later(3 * HOUR)
    assert (await process(office))["lembretes_enfileirados"] == 1
    assert [each["metadata"]["lembrete"] for each in await messages(office, "lembrete_handoff")] == [1, 2]


async def test_blocked_reminder_is_not_queued_again_and_not_counted_as_sent(
    office: Office, doctor: str, chip: str
) -> None:
    id = await open_handoff(office, doctor)
    await office.later(2 * HOUR)
    await process(office)
    await write(
        office.work.database, "UPDATE fila_mensagens SET cancelamento_pedido = TRUE WHERE tipo = 'lembrete_handoff'"
    )
    await office.works()
    await office.later(10 * MINUTE)
    assert (await process(office))["lembretes_enfileirados"] == 0
    row = await handoff(office, id)
    assert (row["lembrete_pedido"], row["followup_count"]) == (1, 0)


async def test_switch_pauses_reminders_and_not_the_expiry(office: Office, doctor: str, chip: str) -> None:
    id = await open_handoff(office, doctor)
    await turn_on(office, False)
    await office.later(2 * HOUR)
    assert (await process(office))["lembretes_pausados"] == 1
    assert await messages(office, "lembrete_handoff") == []
    await office.later(46 * HOUR)
    assert (await process(office))["expirados"] == 1
    assert (await handoff(office, id))["status"] == "expired"


async def test_switch_holds_a_reminder_that_was_queued_before(office: Office, doctor: str, chip: str) -> None:
    await open_handoff(office, doctor)
    await office.later(2 * HOUR)
    await process(office)
    await turn_on(office, False)
    await office.works()
    (reminder,) = await messages(office, "lembrete_handoff")
    assert (reminder["status"], reminder["enviada_em"]) == ("pendente", None)


async def test_queued_reminder_is_cancelled_after_the_decision(office: Office, doctor: str, chip: str) -> None:
    id = await open_handoff(office, doctor)
    await office.later(2 * HOUR)
    await process(office)
    await handoffs(office).confirmar(id, por="gestora", motivo="-")
    await office.works()
    (reminder,) = await messages(office, "lembrete_handoff")
    assert reminder["status"] == "cancelada"


async def test_job_reminds_no_poster_before_the_first_message_is_sent(office: Office, doctor: str) -> None:
    await turn_on(office)
    await handoffs(office).abrir(await group_vaga(office), doctor, por="gestora", motivo="-")
    await office.later(3 * HOUR)
    assert (await process(office))["lembretes_enfileirados"] == 0


async def test_weekly_limit_does_not_block_the_messages_of_a_hand_off(office: Office, doctor: str, chip: str) -> None:
    await open_handoff(office, doctor)
    poster = await one(office.work.database, "SELECT id FROM clientes WHERE telefone = :phone", phone=POSTER)
    for n in range(6):
        await office.put(poster["id"], texto=f"Aviso {n}", telefone_destino=POSTER, status="enviada")
    await write(
        office.work.database,
        "UPDATE fila_mensagens SET enviada_em = :now WHERE status = 'enviada' AND enviada_em IS NULL",
        now=office.clock.now(),
    )
    await office.later(2 * HOUR)
    await process(office)
    await office.works()
    assert [each["status"] for each in await messages(office, "lembrete_handoff")] == ["enviada"]


@pytest.mark.parametrize(("texto", "status"), [("confirmado!", "confirmed"), ("não confirmo", "not_confirmed")])
async def test_reply_of_the_poster_decides(office: Office, doctor: str, chip: str, texto: str, status: str) -> None:
    id = await open_handoff(office, doctor)
    await poster_writes(office, texto)
    row = await handoff(office, id)
    assert (row["status"], row["decidido_via"], row["decidido_por"]) == (status, "resposta", "divulgador")
    assert (await handoffs(office).ver(id)).historico[-1]["motivo"] == "resposta:p1"
    (thanks,) = await messages(office, "resposta")
    assert thanks["telefone_destino"] == POSTER
    await office.later(MINUTE)
    await office.works()
    assert (await messages(office, "resposta"))[0]["status"] == "enviada"
    assert await pending(office) == []


@pytest.mark.parametrize("texto", ["ainda não está fechado", "qual vaga?", "quero falar com um atendente"])
async def test_doubtful_reply_decides_nothing_and_a_person_reads_it(
    office: Office, doctor: str, chip: str, texto: str
) -> None:
    id = await open_handoff(office, doctor)
    await poster_writes(office, texto)
    assert (await handoff(office, id))["status"] == "contacted"
    assert await pending(office) == ["sem_resposta"]


async def test_reply_with_two_open_hand_offs_is_left_to_a_person(office: Office, doctor: str, chip: str) -> None:
    ids = [await open_handoff(office, doctor)]
    await office.later(MINUTE)
    ids.append(await open_handoff(office, doctor, data=date(2026, 3, 21)))
    await poster_writes(office, "confirmado")
    assert [(await handoff(office, id))["status"] for id in ids] == ["contacted", "contacted"]
    assert await pending(office) == ["sem_resposta"]


async def test_reply_to_another_message_decides_nothing(office: Office, doctor: str, chip: str) -> None:
    id = await open_handoff(office, doctor)
    poster = await one(office.work.database, "SELECT id FROM clientes WHERE telefone = :phone", phone=POSTER)
    await office.later(MINUTE)
    await office.put(poster["id"], texto="Qual o valor?", telefone_destino=POSTER)
    await office.works()
    await poster_writes(office, "fechado")
    assert (await handoff(office, id))["status"] == "contacted"
    assert await pending(office) == ["sem_resposta"]


async def test_opt_out_of_the_poster_leaves_the_vacancy_to_a_person(office: Office, doctor: str, chip: str) -> None:
    await turn_on(office)
    opened = await handoffs(office).abrir(await group_vaga(office), doctor, por="gestora", motivo="-")
    await poster_writes(office, "PARAR")
    assert (await messages(office, "handoff"))[0]["status"] == "cancelada"
    assert await pending(office) == ["confirmar_vaga"]
    assert (await handoff(office, opened.id))["status"] == "pending"


async def test_result_that_cannot_be_sent_to_the_doctor_is_left_to_a_person(
    office: Office, doctor: str, chip: str
) -> None:
    id = await open_handoff(office, doctor)
    await handoffs(office).confirmar(id, por="gestora", motivo="-")
    await write(
        office.work.database, "UPDATE fila_mensagens SET cancelamento_pedido = TRUE WHERE chave LIKE '%:confirmed'"
    )
    await office.later(MINUTE)
    await office.works()
    assert await pending(office) == ["resposta_nao_saiu"]


@pytest.mark.parametrize(
    ("tipo", "motivo"),
    [("handoff", "confirmar_vaga"), ("lembrete_handoff", "confirmar_vaga"), ("confirmacao", "resposta_nao_saiu")],
)
async def test_message_whose_worker_was_killed_three_times_is_left_to_a_person(
    office: Office, doctor: str, chip: str, tipo: str, motivo: str
) -> None:
    await turn_on(office)
    opened = await handoffs(office).abrir(await group_vaga(office), doctor, por="gestora", motivo="-")
    if tipo != "handoff":
        await office.later(MINUTE)
        await office.works()
    if tipo == "lembrete_handoff":
        await office.later(2 * HOUR)
        await process(office)
    elif tipo == "confirmacao":
        await handoffs(office).confirmar(opened.id, por="gestora", motivo="-")
    await write(
        office.work.database,
        "UPDATE fila_mensagens SET status = 'erro', erro = 'its worker died 3 times while running it' WHERE tipo = :tipo"
        " AND status = 'pendente'",
        tipo=tipo,
    )
    assert await pending(office) == []
    for _ in range(2):
        async with office.work.database.transaction() as transaction:
            registro = julia_of(office.work).sending.registro
            await registro.store_dead_letters(transaction, now=office.clock.now(), limit=10)
    assert await pending(office) == [motivo]


async def test_acceptance_of_a_group_vacancy_opens_the_hand_off(office: Office, doctor: str, chip: str) -> None:
    await turn_on(office)
    id = await offer(office, doctor)
    await write(
        office.work.database, "UPDATE vagas SET origem = 'grupo_whatsapp', contato_whatsapp = :phone", phone=POSTER
    )
    await receive(office, "aceito")
    assert (await vaga(office, id))["status"] == "aguardando_confirmacao"
    assert "ainda precisa confirmar" in await said(office)
    assert await pending(office) == []
    (row,) = await rows(office.work.database, "SELECT * FROM external_handoffs")
    assert (row["cliente_id"], row["status"]) == (doctor, "pending")
    await receive(office, "aceito", "m2")
    assert "espero a confirmação" in (await answers(office))[-1]["conteudo"]
    await office.later(MINUTE)
    await office.works()
    await poster_writes(office, "confirmo")
    assert (await vaga(office, id))["status"] == "reservada"
    talk = await one(office.work.database, "SELECT stage FROM conversations WHERE cliente_id = :id", id=doctor)
    assert talk["stage"] == "fechou"


async def test_refusal_of_the_doctor_while_the_poster_is_asked_is_left_to_a_person(
    office: Office, doctor: str, chip: str
) -> None:
    id = await open_handoff(office, doctor)
    await receive(office, "não posso nesse dia")
    assert (await handoff(office, id))["status"] == "contacted"
    assert await pending(office) == ["sem_resposta"]


async def test_acceptance_with_the_switch_off_is_reserved_and_left_to_a_person(
    office: Office, doctor: str, chip: str
) -> None:
    id = await offer(office, doctor)
    await write(
        office.work.database, "UPDATE vagas SET origem = 'grupo_whatsapp', contato_whatsapp = :phone", phone=POSTER
    )
    await receive(office, "aceito")
    assert (await vaga(office, id))["status"] == "reservada"
    assert await pending(office) == ["confirmar_vaga"]


async def test_vacancy_entered_by_hand_needs_no_hand_off(office: Office, doctor: str, chip: str) -> None:
    await turn_on(office)
    id = await offer(office, doctor)
    await receive(office, "aceito")
    assert (await vaga(office, id))["status"] == "reservada"
    assert await rows(office.work.database, "SELECT id FROM external_handoffs") == []


async def test_reservation_of_a_vacancy_that_waits_is_refused(office: Office, doctor: str, chip: str) -> None:
    id = await open_handoff(office, doctor)
    vaga_id = (await handoff(office, id))["vaga_id"]
    other = await add_doctor(office.work.database, "5511900000077")
    answer = await shifts(office).plantoes.reservar(vaga_id, other, por="gestora")
    assert type(answer).__name__ == "Ocupada"
    assert await add_vaga(office) != vaga_id


async def test_health_reports_hand_offs_that_no_run_ended(office: Office, doctor: str, chip: str) -> None:
    job = julia_of(office.work).handoffs.jobs
    await open_handoff(office, doctor)
    await office.later(48 * HOUR)
    assert (await job.ask()).findings == ()
    await office.later(timedelta(hours=2))
    (finding,) = (await job.ask()).findings
    assert finding.says == "handoffs_vencidos"
