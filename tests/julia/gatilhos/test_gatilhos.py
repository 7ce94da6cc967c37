"""Triggers that write to doctors without an operator's involvement: which doctors they select, which texts they send,
and what holds their messages back. The tests run on both databases.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.gatilhos.model import REGRAS, Gatilho
from app.contexts.gatilhos.service import Gatilhos
from batuta.jobs import JobCall
from batuta.queue.outcome import Done
from tests.julia.envio.sending import MINUTE, PHONE, Office
from tests.julia.plantoes.mesa import UNKNOWN_ID, add_doctors, add_vaga
from tests.julia.respostas.test_respostas import pending, receive
from tests.julia.tables import add_doctor, one, rows, write

DAY = timedelta(days=1)
DOCTORS = (Gatilho.DISCOVERY, Gatilho.REATIVACAO, Gatilho.FEEDBACK)


def triggers(office: Office) -> Gatilhos:
    return julia_of(office.work).triggers.gatilhos


async def switch(office: Office, key: str, on: bool) -> None:
    await office.work.switches.set(key, on, by="ana", reason="-", now=office.clock.now())


@pytest.fixture(autouse=True)
async def _all_on(office: Office) -> None:
    await switch(office, "pilot_mode", False)
    for rule in REGRAS.values():
        await switch(office, rule.chave, True)


async def run(office: Office, gatilho: Gatilho) -> dict[str, Any]:
    now = office.clock.now()
    call = JobCall(key="test", params={}, started_at=now, deadline=now + 5 * MINUTE)
    endpoint = office.work.endpoints.find(f"executar-{gatilho.value.replace('_', '-')}")
    assert endpoint is not None
    answer = await endpoint.handler(call)
    assert isinstance(answer, Done), answer
    assert isinstance(answer.result, dict)
    return {**answer.result, "items": answer.items}


async def messages(office: Office) -> list[dict[str, Any]]:
    return await rows(office.work.database, "SELECT * FROM fila_mensagens ORDER BY created_at, id")


async def contacts(office: Office) -> list[dict[str, Any]]:
    return await rows(office.work.database, "SELECT * FROM gatilhos_contatos ORDER BY created_at, mensagem_id")


async def set_state(office: Office, doctor: str, **columns: Any) -> None:
    now = office.clock.now()
    known = {"permission_state": "active", "updated_at": now, **columns}
    names = ", ".join(known)
    await write(
        office.work.database,
        f"INSERT INTO doctor_state (cliente_id, {names}) VALUES (:doctor, {', '.join(f':{name}' for name in known)})"
        f" ON CONFLICT (cliente_id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in known)}",
        doctor=doctor,
        **known,
    )


async def unknown_doctor(office: Office, n: int = 0) -> str:
    """Add a doctor with a validated number but without a speciality. The trigger for first contacts therefore selects
    this doctor.
    """
    id = await add_doctor(office.work.database, f"55119{20_000_000 + n:08d}", now=office.clock.now() - 100 * DAY)
    await write(office.work.database, "UPDATE clientes SET status_telefone = 'validado' WHERE id = :id", id=id)
    return id


async def silent_doctor(office: Office, n: int = 0, days: int = 61) -> str:
    (id,) = (await add_doctor(office.work.database, f"55119{30_000_000 + n:08d}", now=office.clock.now() - 200 * DAY),)
    await write(
        office.work.database,
        "UPDATE clientes SET especialidade = 'Pediatria', total_interacoes = 3, status_telefone = 'validado' WHERE id = :id",
        id=id,
    )
    last = office.clock.now() - days * DAY
    await set_state(office, id, last_inbound_at=last, last_outbound_at=last)
    return id


async def worked(office: Office, n: int = 0, ago: timedelta = timedelta(hours=3)) -> str:
    """Add a doctor who worked a shift that an operator has confirmed."""
    id = await add_doctor(office.work.database, f"55119{40_000_000 + n:08d}", now=office.clock.now() - 100 * DAY)
    await write(
        office.work.database,
        "UPDATE clientes SET especialidade = 'Pediatria', status_telefone = 'validado' WHERE id = :id",
        id=id,
    )
    await finish_shift(office, id, ago)
    return id


async def finish_shift(office: Office, doctor: str, ago: timedelta = timedelta(hours=3)) -> str:
    vaga = await add_vaga(office)
    await write(
        office.work.database,
        "UPDATE vagas SET status = 'realizada', cliente_id = :doctor, realizada_em = :at, data = :day WHERE id = :id",
        doctor=doctor,
        at=office.clock.now() - ago,
        day=date(2026, 3, 10),
        id=vaga,
    )
    return vaga


CANDIDATE: dict[Gatilho, Callable[..., Awaitable[str]]] = {
    Gatilho.DISCOVERY: unknown_doctor,
    Gatilho.REATIVACAO: silent_doctor,
    Gatilho.FEEDBACK: worked,
}
SAYS = {
    Gatilho.DISCOVERY: "especialidade",
    Gatilho.REATIVACAO: "dois meses",
    Gatilho.FEEDBACK: "Como foi o seu plantão (Hospital Fictício, terça-feira, 10/03/2026)?",
}


@pytest.mark.parametrize("gatilho", DOCTORS)
async def test_selected_doctor_gets_one_truthful_message_and_never_a_second(
    office: Office, chip: str, gatilho: Gatilho
) -> None:
    doctor = await CANDIDATE[gatilho](office)
    result = await run(office, gatilho)
    assert result == {
        "encontrados": 1, "enfileirados": 1, "restantes": 0, "por_motivo": {}, "sem_selecao": None, "items": 1,
    }  # fmt: skip
    (message,) = await messages(office)
    assert (message["cliente_id"], message["tipo"]) == (doctor, REGRAS[gatilho].tipo)
    assert message["metadata"]["gatilho"] == REGRAS[gatilho].chave
    assert (await run(office, gatilho))["por_motivo"] == {"na_fila": 1}
    await office.works()
    (receipt,) = office.line.receipts
    assert "Aqui é a Julia, assistente virtual" in receipt.texto
    assert SAYS[gatilho] in receipt.texto
    assert "responda PARAR" in receipt.texto
    (contact,) = await contacts(office)
    assert (contact["enviada_em"], contact["encerrada_em"]) == (office.clock.now(), None)
    await office.later(DAY)
    again = await run(office, gatilho)
    assert (again["enfileirados"], len(await messages(office))) == (0, 1)
    if gatilho is Gatilho.REATIVACAO:  # after the message, the doctor was no longer silent for 60 days
        assert again["sem_selecao"] == "sem_candidatos"
        await office.later(61 * DAY)
        again = await run(office, gatilho)
    assert again["por_motivo"] == {"ja_contatado": 1}
    assert again["sem_selecao"] == "todos_impedidos"


@pytest.mark.parametrize("gatilho", DOCTORS)
async def test_every_exclusion_is_applied_and_reported(office: Office, gatilho: Gatilho) -> None:
    database, now = office.work.database, office.clock.now()
    names = (
        "optout", "optout_provavel", "telefone_invalido", "conversa_humana", "em_pausa", "esfriando", "proximo_contato",
        "limite_contatos", "na_fila", "em_duvida", "bem",
    )  # fmt: skip
    doctors = {name: await CANDIDATE[gatilho](office, n) for n, name in enumerate(names)}
    await write(database, "UPDATE clientes SET opted_out = TRUE WHERE id = :id", id=doctors["optout"])
    await write(
        database, "UPDATE clientes SET status_telefone = 'invalido' WHERE id = :id", id=doctors["telefone_invalido"]
    )
    await write(
        database,
        "INSERT INTO optouts_provaveis (id, telefone, telefone_chave, provider_message_id, regra, created_at)"
        " SELECT :new, telefone, telefone_chave, 'x', 'x', :now FROM clientes WHERE id = :id",
        new=UNKNOWN_ID,
        id=doctors["optout_provavel"],
        now=now,
    )
    for name, columns, values in (
        ("conversa_humana", "controlled_by", "'human'"),
        ("em_pausa", "pausado_ate", ":later"),
    ):
        sql = (
            f"INSERT INTO conversations (id, cliente_id, {columns}, created_at, updated_at)"
            f" VALUES (:new, :id, {values}, :now, :now)"
        )
        extra = {"later": now + DAY} if name == "em_pausa" else {}
        await write(database, sql, new=office.work.ids.new(), id=doctors[name], now=now, **extra)
    await set_column(office, doctors["esfriando"], "cooling_off_until", now + DAY, permission_state="cooling_off")
    await set_column(office, doctors["proximo_contato"], "next_allowed_at", now + DAY)
    for _ in range(5):
        sent = await office.put(doctors["limite_contatos"])
        await write(
            database,
            "UPDATE fila_mensagens SET status = 'enviada', enviada_em = :at WHERE id = :id",
            id=sent,
            at=now - 2 * DAY,
        )
    await office.put(doctors["na_fila"])
    doubt = await office.put(doctors["em_duvida"])
    await write(
        database,
        "UPDATE fila_mensagens SET status = 'erro', envio_estado = 'parked', envio_desde = :now WHERE id = :id",
        id=doubt,
        now=now,
    )
    simulated = await triggers(office).simular(gatilho)
    assert [str(row["id"]) for row in simulated.selecao.escolhidos] == [doctors["bem"]]
    expected = {name: 1 for name in names if name not in ("bem", "em_duvida", "na_fila")} | {"na_fila": 2}
    assert simulated.selecao.impedidos == expected
    assert simulated.selecao.exemplos["optout"] == (doctors["optout"],)
    result = await run(office, gatilho)
    assert (result["encontrados"], result["enfileirados"], result["por_motivo"]) == (len(names), 1, expected)


async def set_column(office: Office, doctor: str, column: str, value: datetime, **more: Any) -> None:
    found = await rows(office.work.database, "SELECT * FROM doctor_state WHERE cliente_id = :id", id=doctor)
    kept = {name: found[0][name] for name in ("last_inbound_at", "last_outbound_at")} if found else {}
    await set_state(office, doctor, **{**kept, column: value, **more})


@pytest.mark.parametrize("gatilho", DOCTORS)
async def test_run_stops_at_its_limit_and_reports_the_rest(office: Office, gatilho: Gatilho) -> None:
    limit = REGRAS[gatilho].limite
    for n in range(limit + 2):
        await CANDIDATE[gatilho](office, n)
    first = await run(office, gatilho)
    assert (first["enfileirados"], first["restantes"]) == (limit, 2)
    second = await run(office, gatilho)  # the queue is full of messages of this trigger
    assert (second["enfileirados"], second["restantes"], second["sem_selecao"]) == (0, 2, "fila_cheia")
    await write(
        office.work.database, "UPDATE fila_mensagens SET status = 'enviada', enviada_em = :now", now=office.clock.now()
    )
    assert (await run(office, gatilho))["enfileirados"] == 2
    assert len({each["cliente_id"] for each in await messages(office)}) == limit + 2


@pytest.mark.parametrize("gatilho", DOCTORS)
@pytest.mark.parametrize("key", ["pilot_mode", "own"])
async def test_message_queued_before_a_switch_changed_waits_until_it_changes_back(
    office: Office, chip: str, gatilho: Gatilho, key: str
) -> None:
    await CANDIDATE[gatilho](office)
    await run(office, gatilho)
    key = REGRAS[gatilho].chave if key == "own" else key
    await switch(office, key, key == "pilot_mode")
    await office.works()
    (message,) = await messages(office)
    assert (message["status"], office.line.receipts) == ("pendente", [])
    assert message["erro"] == f"switch {key} is holding back messages from this automatic trigger"
    (held,) = (each for each in await triggers(office).listar() if each.gatilho is gatilho)
    assert (held.suspenso_por, held.na_fila, held.enviados) == (key, 1, 0)
    assert [each.facts for each in (await triggers(office).ask()).findings] == [{"count": 1}]
    await switch(office, key, key != "pilot_mode")
    await office.later(11 * MINUTE)
    await office.works()
    assert len(office.line.receipts) == 1
    (after,) = (each for each in await triggers(office).listar() if each.gatilho is gatilho)
    assert (after.suspenso_por, after.na_fila, after.enfileiradas, after.enviados) == (None, 0, 1, 1)


async def test_offer_queued_before_pilot_mode_waits(office: Office, chip: str) -> None:
    await add_doctors(office, 1)
    await add_vaga(office)
    assert (await run(office, Gatilho.OFERTA))["ofertas_enfileiradas"] == 1
    await switch(office, "pilot_mode", True)
    await office.works()
    assert office.line.receipts == []
    await switch(office, "pilot_mode", False)
    await office.later(11 * MINUTE)
    await office.works()
    assert len(office.line.receipts) == 1


@pytest.mark.parametrize("gatilho", list(Gatilho))
async def test_trigger_does_not_run_in_pilot_mode_or_with_its_switch_off(office: Office, gatilho: Gatilho) -> None:
    for key, off in (("pilot_mode", True), (REGRAS[gatilho].chave, False)):
        await switch(office, key, off)
        with pytest.raises(AssertionError, match=key):
            await run(office, gatilho)
        await switch(office, key, not off)
    assert (await run(office, gatilho))["sem_selecao"] == "sem_candidatos"


@pytest.mark.parametrize("gatilho", DOCTORS)
async def test_two_runs_at_the_same_time_write_to_each_doctor_once(office: Office, gatilho: Gatilho) -> None:
    for n in range(5):
        await CANDIDATE[gatilho](office, n)
    results = await asyncio.gather(run(office, gatilho), run(office, gatilho))
    assert sorted(each["enfileirados"] for each in results) == [0, 5]
    assert len(await messages(office)) == 5


async def test_discovery_leaves_out_doctors_who_were_written_to_or_are_not_validated(office: Office) -> None:
    database, now = office.work.database, office.clock.now()
    pending_phone, recent, talking, campaign = [await unknown_doctor(office, n) for n in range(4)]
    await write(database, "UPDATE clientes SET status_telefone = 'pendente' WHERE id = :id", id=pending_phone)
    await set_state(office, recent, last_outbound_at=now - 2 * DAY)
    await set_state(office, talking, last_inbound_at=now - MINUTE)
    await write(
        database,
        "INSERT INTO campanhas (id, nome_template, tipo_campanha, created_at, updated_at)"
        " VALUES (7, 'teste', 'discovery', :now, :now)",
        now=now,
    )
    await write(
        database,
        "INSERT INTO campaign_contact_history (cliente_id, campaign_id, sent_at) VALUES (:id, 7, :at)",
        id=campaign,
        at=now - 90 * DAY,
    )
    (known,) = await add_doctors(office, 1)
    assert (await run(office, Gatilho.DISCOVERY))["por_motivo"] == {
        "telefone_nao_validado": 1, "contatado_ha_pouco": 1, "conversa_agora": 1, "ja_contatado": 1,
    }  # fmt: skip
    assert known not in {each["cliente_id"] for each in await messages(office)}


async def test_message_that_was_never_sent_is_queued_again_after_a_week_at_most_three_times(office: Office) -> None:
    await unknown_doctor(office)
    for attempt in range(1, 4):
        assert (await run(office, Gatilho.DISCOVERY))["enfileirados"] == 1
        await cancel_all(office)
        assert (await contacts(office))[-1]["encerrada_em"] is not None
        assert (await run(office, Gatilho.DISCOVERY))["por_motivo"] == {"tentado_ha_pouco": 1}, attempt
        await office.later(8 * DAY)
    assert (await run(office, Gatilho.DISCOVERY))["por_motivo"] == {"tentativas_esgotadas": 1}


async def cancel_all(office: Office) -> None:
    now, mensagens = office.clock.now(), julia_of(office.work).messages.mensagens
    doctors = {row["cliente_id"] for row in await messages(office)}
    async with office.work.database.transaction() as transaction:
        for doctor in doctors:
            await mensagens.cancelar(transaction, doctor, outcome="FAILED_EXPIRED", reason="teste", now=now)


async def test_feedback_that_was_not_sent_is_not_asked_again(office: Office) -> None:
    await worked(office)
    await run(office, Gatilho.FEEDBACK)
    await cancel_all(office)
    assert (await run(office, Gatilho.FEEDBACK))["por_motivo"] == {"ja_contatado": 1}


async def test_feedback_asks_about_one_shift_of_a_doctor_at_a_time_and_only_about_recent_ones(office: Office) -> None:
    doctor = await worked(office)
    await finish_shift(office, doctor, timedelta(hours=1))
    await finish_shift(office, doctor, timedelta(days=3))
    result = await run(office, Gatilho.FEEDBACK)
    assert (result["encontrados"], result["enfileirados"]) == (2, 1)
    assert result["por_motivo"] == {"outro_plantao_antes": 1}


async def test_two_shifts_of_one_day_at_one_hospital_are_one_question(office: Office, chip: str) -> None:
    """A doctor who worked two shifts in one hospital on the same day is asked only once. The question mentions only the
    hospital and the day, so a second question would be identical.
    """
    doctor = await worked(office)
    second = await finish_shift(office, doctor, timedelta(hours=1))
    assert (await run(office, Gatilho.FEEDBACK))["enfileirados"] == 1
    await office.later(MINUTE)
    await office.works()
    await office.later(DAY)
    assert (await run(office, Gatilho.FEEDBACK))["por_motivo"] == {"ja_contatado": 2}
    day_before = date(2026, 3, 9)
    await write(office.work.database, "UPDATE vagas SET data = :day WHERE id = :id", day=day_before, id=second)
    assert (await run(office, Gatilho.FEEDBACK))["enfileirados"] == 1  # the shift of another day


@pytest.mark.parametrize("gatilho", DOCTORS)
async def test_message_whose_subject_changed_is_cancelled_before_it_is_sent(
    office: Office, chip: str, gatilho: Gatilho
) -> None:
    doctor = await CANDIDATE[gatilho](office)
    await run(office, gatilho)
    await office.later(MINUTE)
    match gatilho:
        case Gatilho.DISCOVERY:
            await write(
                office.work.database, "UPDATE clientes SET especialidade = 'Pediatria' WHERE id = :id", id=doctor
            )
        case Gatilho.REATIVACAO:
            await set_state(office, doctor, last_inbound_at=office.clock.now())
        case _:
            await write(office.work.database, "UPDATE vagas SET status = 'cancelada'")
    await office.works()
    (message,) = await messages(office)
    assert (message["status"], office.line.receipts) == ("cancelada", [])
    assert message["outcome_reason_code"] == "the reason for the message no longer applies"
    assert (await contacts(office))[0]["encerrada_em"] is not None


async def test_reactivation_needs_an_earlier_answer_and_sixty_days_of_silence_in_both_directions(
    office: Office,
) -> None:
    lately, written = await silent_doctor(office, 0, days=59), await silent_doctor(office, 1)
    await set_state(
        office, written, last_inbound_at=office.clock.now() - 90 * DAY, last_outbound_at=office.clock.now() - DAY
    )
    never = await silent_doctor(office, 2)
    await write(office.work.database, "UPDATE clientes SET total_interacoes = 0 WHERE id = :id", id=never)
    held = await silent_doctor(office, 3)
    vaga = await add_vaga(office)
    await write(
        office.work.database, "UPDATE vagas SET status = 'reservada', cliente_id = :d WHERE id = :id", d=held, id=vaga
    )
    oldest, older = await silent_doctor(office, 4, days=300), await silent_doctor(office, 5, days=90)
    result = await triggers(office).simular(Gatilho.REATIVACAO)
    assert [str(row["id"]) for row in result.selecao.escolhidos] == [oldest, older]
    assert result.selecao.impedidos == {"ja_tem_plantao": 1}
    assert lately not in str(result)


async def test_open_vacancies_are_offered_soonest_first_to_five_doctors_and_never_twice_to_one(
    office: Office, chip: str
) -> None:
    doctors = await add_doctors(office, 7)
    today = office.clock.now().date()
    later, sooner = await add_vaga(office, data=today + 9 * DAY), await add_vaga(office, data=today + 2 * DAY)
    far = await add_vaga(office, data=today + 21 * DAY)
    simulated = await triggers(office).simular(Gatilho.OFERTA)
    assert [(each.vaga_id, len(each.medicos)) for each in simulated.ofertas] == [(sooner, 5), (later, 2)]
    assert await messages(office) == []
    result = await run(office, Gatilho.OFERTA)
    assert (result["vagas_encontradas"], result["ofertas_enfileiradas"], result["medicos_escolhidos"]) == (2, 7, 7)
    offers = await rows(office.work.database, "SELECT vaga_id, cliente_id, por FROM vagas_ofertas")
    assert {each["por"] for each in offers} == {"oferta_autonoma"}
    assert sorted((each.vaga_id, doctor) for each in simulated.ofertas for doctor in each.medicos) == sorted(
        (each["vaga_id"], each["cliente_id"]) for each in offers
    )
    assert {each["metadata"]["gatilho"] for each in await messages(office)} == {"oferta_automatica_enabled"}
    again = await run(office, Gatilho.OFERTA)
    assert (again["ofertas_enfileiradas"], again["por_motivo"]) == (0, {"ja_anunciada": 2})
    for _ in range(8):
        await office.works()
        await office.later(MINUTE)
    assert len(office.line.receipts) == 7
    for _ in range(30):
        await office.later(DAY)
        await run(office, Gatilho.OFERTA)
    pairs = [(each["metadata"]["vaga_id"], each["cliente_id"]) for each in await messages(office)]
    assert len(pairs) == len(set(pairs))
    assert {vaga for vaga, _ in pairs} == {later, sooner, far}
    assert {doctor for _, doctor in pairs} == set(doctors)


async def test_equal_vacancy_is_not_offered_to_a_doctor_who_was_offered_the_first(office: Office) -> None:
    (doctor,) = await add_doctors(office, 1)
    first = await add_vaga(office)
    await run(office, Gatilho.OFERTA)
    await write(
        office.work.database, "UPDATE fila_mensagens SET status = 'enviada', enviada_em = :now", now=office.clock.now()
    )
    await add_vaga(office)
    result = await run(office, Gatilho.OFERTA)
    assert (result["ofertas_enfileiradas"], result["vagas_sem_medico"]) == (0, 1)
    (offer,) = await rows(office.work.database, "SELECT vaga_id, cliente_id FROM vagas_ofertas")
    assert offer == {"vaga_id": first, "cliente_id": doctor}


async def test_vacancy_without_a_doctor_says_why_and_a_blocked_hospital_is_left_out(office: Office) -> None:
    (doctor,) = await add_doctors(office, 1)
    await write(office.work.database, "UPDATE clientes SET opted_out = TRUE WHERE id = :id", id=doctor)
    open_one = await add_vaga(office)
    blocked = await add_vaga(office, hospital="Hospital Inventado")
    await write(
        office.work.database,
        "INSERT INTO hospitais_bloqueados (hospital_id, motivo, bloqueado_por, bloqueado_em, status)"
        " SELECT hospital_id, 'x', 'ana', :now, 'bloqueado' FROM vagas WHERE id = :id",
        id=blocked,
        now=office.clock.now(),
    )
    (offer,) = (await triggers(office).simular(Gatilho.OFERTA)).ofertas
    assert (offer.vaga_id, offer.medicos, offer.impedidos) == (open_one, (), {"optout": 1})
    result = await run(office, Gatilho.OFERTA)
    assert (result["vagas_sem_medico"], result["por_motivo"]) == (1, {"hospital_bloqueado": 1})
    assert (await one(office.work.database, "SELECT status FROM vagas WHERE id = :id", id=open_one))[
        "status"
    ] == "aberta"


async def test_started_shift_is_not_offered(office: Office) -> None:
    await add_doctors(office, 1)
    await add_vaga(office, data=office.clock.now().date(), hora_inicio="11:00", hora_fim="19:00")
    result = await run(office, Gatilho.OFERTA)
    assert (result["ofertas_enfileiradas"], result["vagas_ocupadas"]) == (0, 1)


async def ask_about_shift(office: Office) -> str:
    doctor = await worked(office)
    await write(office.work.database, "UPDATE clientes SET telefone = :phone WHERE id = :id", phone=PHONE, id=doctor)
    await run(office, Gatilho.FEEDBACK)
    await office.works()
    assert len(office.line.receipts) == 1
    await office.later(60 * MINUTE)
    return doctor


@pytest.mark.parametrize(
    ("texto", "avaliacao", "nota", "thanks", "reader"),
    [
        ("5", "positiva", 5, "Registrei sua avaliação", []),
        ("foi ótimo, obrigada", "positiva", None, "Registrei sua avaliação", []),
        ("2, faltou equipe", "negativa", 2, "a uma pessoa da equipe", ["avaliacao_negativa"]),
        ("qual o valor do próximo?", "indefinida", None, "Não tenho essa informação", ["sem_resposta"]),
        ("oi", "indefinida", None, None, ["sem_resposta"]),
    ],
)
async def test_answer_to_a_feedback_is_stored_with_its_class(
    office: Office, chip: str, texto: str, avaliacao: str, nota: int | None, thanks: str | None, reader: list[str]
) -> None:
    await ask_about_shift(office)
    await receive(office, texto)
    (contact,) = await contacts(office)
    assert (contact["avaliacao"], contact["nota"], contact["respondida_em"]) == (avaliacao, nota, office.clock.now())
    answered = [each["conteudo"] for each in await messages(office) if each["tipo"] == "resposta"]
    assert [thanks in each for each in answered if thanks] == ([True] if thanks else [])
    assert len(answered) == (thanks is not None)
    assert await pending(office) == reader
    (shown,) = (each for each in await triggers(office).listar() if each.gatilho is Gatilho.FEEDBACK)
    assert (shown.enviados, shown.respondidos, shown.avaliacoes) == (1, 1, {avaliacao: 1})


async def test_unclear_answer_is_replaced_by_a_clear_one_and_a_clear_one_stays(office: Office, chip: str) -> None:
    await ask_about_shift(office)
    await receive(office, "oi", "m1")
    await receive(office, "4", "m2")
    await receive(office, "1", "m3")
    (contact,) = await contacts(office)
    assert (contact["avaliacao"], contact["nota"]) == ("positiva", 4)


async def test_opt_out_after_a_feedback_is_an_opt_out_and_no_mark(office: Office, chip: str) -> None:
    doctor = await ask_about_shift(office)
    await receive(office, "PARAR")
    (contact,) = await contacts(office)
    assert (contact["classe"], contact["avaliacao"]) == ("opt_out", None)
    assert (await one(office.work.database, "SELECT opted_out FROM clientes WHERE id = :id", id=doctor))["opted_out"]


async def test_interest_after_a_reactivation_is_recorded_and_reserves_nothing(office: Office, chip: str) -> None:
    doctor = await silent_doctor(office)
    await write(office.work.database, "UPDATE clientes SET telefone = :phone WHERE id = :id", phone=PHONE, id=doctor)
    await run(office, Gatilho.REATIVACAO)
    await office.works()
    await receive(office, "sim, quero")
    (contact,) = await contacts(office)
    assert contact["classe"] == "aceite"
    (answer,) = [each["conteudo"] for each in await messages(office) if each["tipo"] == "resposta"]
    assert "Registrei que você quer receber ofertas" in answer
    assert await rows(office.work.database, "SELECT id FROM vagas WHERE status = 'reservada'") == []


@pytest.mark.parametrize(
    ("texto", "especialidade"),
    [
        ("Pediatria", "Pediatria"),
        ("sou anestesista, atendo em Santo André", "Anestesiologia"),
        ("UTI e pediatria", "Medicina Intensiva / Pediatria"),
        ("não sou pediatra", None),
        ("faço residência em pediatria", None),
        ("precisa ser pediatra?", None),
        ("oi", None),
    ],
)
async def test_speciality_in_the_answer_to_a_first_contact_is_stored_if_it_is_clear(
    office: Office, chip: str, texto: str, especialidade: str | None
) -> None:
    doctor = await unknown_doctor(office)
    await write(office.work.database, "UPDATE clientes SET telefone = :phone WHERE id = :id", phone=PHONE, id=doctor)
    await run(office, Gatilho.DISCOVERY)
    await office.works()
    await receive(office, texto)
    row = await one(office.work.database, "SELECT especialidade FROM clientes WHERE id = :id", id=doctor)
    assert row["especialidade"] == especialidade
    answers = [each["conteudo"] for each in await messages(office) if each["tipo"] == "resposta"]
    assert [f"sua especialidade: {especialidade}." in each for each in answers if especialidade] == (
        [True] if especialidade else []
    )
    assert (await contacts(office))[0]["respondida_em"] is not None
