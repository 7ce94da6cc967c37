"""Each inbound message is answered, queued for the morning or left for an operator. The tests run on both databases."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.comum.telefone import Address
from app.contexts.leitura_conversas.api import Classe, Leitura, OptOut, ler
from app.contexts.respostas.decisao import Fatos, Reacao, decidir
from app.contexts.webhooks.api import Recebida
from batuta.jobs import JobCall
from batuta.queue.outcome import Done, Skipped
from tests.julia.envio.sending import MINUTE, PHONE, Office
from tests.julia.plantoes.mesa import add_vaga, shifts, vaga
from tests.julia.tables import add_doctor, one, rows, write

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# The office opens on Wednesday, 11 March 2026, at eleven o'clock in São Paulo.
NIGHT = datetime(2026, 3, 12, 1, 30, tzinfo=UTC)  # Wednesday 22:30
MORNING = datetime(2026, 3, 12, 11, 0, tzinfo=UTC)  # Thursday 08:00
FRIDAY_NIGHT = datetime(2026, 3, 14, 0, 30, tzinfo=UTC)  # Friday 21:30
MONDAY = datetime(2026, 3, 16, 11, 0, tzinfo=UTC)  # 08:00
TEXTS = {
    Classe.ACEITE: "aceito",
    Classe.RECUSA: "não posso nesse dia",
    Classe.PERGUNTA: "qual o valor?",
    Classe.HUMANO: "quero falar com um atendente",
    Classe.OBJECAO: "muito longe",
    Classe.CONFIRMACAO: "confirmado",
    Classe.OPT_OUT: "PARAR",
    Classe.OUTRO: "oi",
}


async def receive(office: Office, texto: str, message_id: str = "m1", em: datetime | None = None) -> None:
    now = office.clock.now()
    fato = Recebida(
        message_id=message_id, instance="julia-sim", de=Address(f"{PHONE}@s.whatsapp.net", PHONE), nome=None,
        texto=texto, midia=None, em=em or now,
    )  # fmt: skip
    async with office.work.database.transaction() as transaction:
        await office.conversas.recebida(transaction, fato, now=now)


async def go_to(office: Office, at: datetime) -> None:
    await office.later(at - office.clock.now())


async def answers(office: Office) -> list[dict[str, Any]]:
    kinds = "('resposta', 'recebimento', 'retomada')"
    return await rows(
        office.work.database, f"SELECT * FROM fila_mensagens WHERE tipo IN {kinds} ORDER BY created_at, id"
    )


async def said(office: Office) -> str:
    (answer,) = await answers(office)
    return str(answer["conteudo"])


async def pending(office: Office) -> list[str]:
    return [each.motivo for each in await julia_of(office.work).messages.pendencias.listar(limite=10)]


async def offer(office: Office, doctor: str, **values: Any) -> str:
    """Add a vacancy, announce it to the doctor, and send the announcement."""
    await write(office.work.database, "UPDATE clientes SET especialidade = 'Pediatria' WHERE id = :id", id=doctor)
    id = await add_vaga(office, **values)
    await shifts(office).anuncios.anunciar(id, [doctor], por="gestora")
    await office.works()
    await office.later(MINUTE)
    assert [row["status"] for row in await rows(office.work.database, "SELECT status FROM fila_mensagens")][
        -1
    ] == "enviada"
    return id


async def resume(office: Office) -> dict[str, Any]:
    now = office.clock.now()
    call = JobCall(key="test", params={}, started_at=now, deadline=now + 5 * MINUTE)
    outcome = await julia_of(office.work).answers.retomadas.processar_retomadas(call)
    assert isinstance(outcome, Done)
    assert isinstance(outcome.result, dict)
    return dict(outcome.result)


def test_texts_of_the_property_have_their_class() -> None:
    assert {classe: ler(text).classe for classe, text in TEXTS.items()} == {classe: classe for classe in TEXTS}


@pytest.mark.parametrize("at", [None, NIGHT, FRIDAY_NIGHT, MORNING], ids=["day", "night", "weekend", "opening"])
@pytest.mark.parametrize("classe", list(Classe))
@pytest.mark.parametrize("offered", [False, True], ids=["unasked", "offered"])
async def test_no_message_is_lost(
    office: Office, doctor: str, chip: str, classe: Classe, at: datetime | None, offered: bool
) -> None:
    if offered:
        await offer(office, doctor)
    if at is not None:
        await go_to(office, at)
    await receive(office, TEXTS[classe])
    await receive(office, TEXTS[classe])
    opted_out = (await one(office.work.database, "SELECT opted_out FROM clientes"))["opted_out"]
    nights = await rows(office.work.database, "SELECT id FROM mensagens_fora_horario WHERE processada_em IS NULL")
    given = [each for each in await answers(office) if each["metadata"]["inbound_message_id"] == "m1"]
    assert given or nights or opted_out or await pending(office)
    assert len(given) <= 1
    if nights:
        await go_to(office, MONDAY)
        await resume(office)
        assert len(await answers(office)) == 2


async def test_acceptance_reserves_the_offered_vacancy_and_says_so(office: Office, doctor: str, chip: str) -> None:
    id = await offer(office, doctor)
    await receive(office, "aceito")
    row = await vaga(office, id)
    assert (row["status"], row["cliente_id"]) == ("reservada", doctor)
    (answer,) = await answers(office)
    assert "reservado para você" in answer["conteudo"]
    talk = await one(office.work.database, "SELECT stage FROM conversations")
    assert (talk["stage"], await pending(office)) == ("fechou", [])
    await office.works()
    assert (await answers(office))[0]["status"] == "enviada"


async def test_answer_to_the_second_acceptance_says_that_the_vacancy_is_taken(
    office: Office, doctor: str, chip: str
) -> None:
    id = await offer(office, doctor)
    other = await add_doctor(office.work.database, "5511900000077")
    await shifts(office).plantoes.reservar(id, other, por="gestora")
    await receive(office, "aceito")
    assert (await vaga(office, id))["cliente_id"] == other
    assert "não consegui reservá-lo" in await said(office)


async def test_acceptance_with_two_open_offers_or_another_last_message_reserves_nothing(
    office: Office, doctor: str, chip: str
) -> None:
    first, second = await offer(office, doctor), await offer(office, doctor, valor=1800)
    await receive(office, "aceito", "m1")
    assert [(await vaga(office, id))["status"] for id in (first, second)] == ["anunciada", "anunciada"]
    assert "ainda não reservei nada" in await said(office)
    assert await pending(office) == ["sem_resposta"]


def test_acceptance_of_low_confidence_goes_to_a_person() -> None:
    reading = Leitura(classe=Classe.ACEITE, opt_out=OptOut.NAO, confianca=0.49, regra="")
    reaction = decidir(reading, "aceito", Fatos(abertas=1))
    assert isinstance(reaction, Reacao)
    assert reaction.motivo == "aceite_incerto"


@pytest.mark.parametrize("at", [None, NIGHT], ids=["day", "night"])
async def test_acceptance_under_a_condition_reserves_nothing_and_goes_to_a_person(
    office: Office, doctor: str, chip: str, at: datetime | None
) -> None:
    unsure = "aceito, mas só até as 13h"
    assert ler(unsure).classe is Classe.ACEITE
    id = await offer(office, doctor)
    if at is not None:
        await go_to(office, at)
    await receive(office, unsure)
    assert (await vaga(office, id))["status"] == "anunciada"
    assert await pending(office) == ["aceite_incerto"]
    if at is not None:
        await go_to(office, MORNING)
        await resume(office)
    assert "ainda não reservei nada" in (await answers(office))[-1]["conteudo"]
    assert (await vaga(office, id))["status"] == "anunciada"


async def test_acceptance_at_night_is_decided_immediately(office: Office, doctor: str, chip: str) -> None:
    id = await offer(office, doctor)
    await go_to(office, NIGHT)
    await receive(office, "aceito")
    assert (await vaga(office, id))["status"] == "reservada"
    night = await one(office.work.database, "SELECT processada_resultado FROM mensagens_fora_horario")
    assert night["processada_resultado"] == "respondida"
    await office.works()
    assert (await answers(office))[0]["status"] == "enviada"


async def test_vacancy_of_a_group_is_reserved_and_a_person_confirms_it(office: Office, doctor: str, chip: str) -> None:
    await offer(office, doctor)
    await write(office.work.database, "UPDATE vagas SET origem = 'grupo_whatsapp'")
    await receive(office, "aceito")
    assert "ainda precisa confirmar" in await said(office)
    assert await pending(office) == ["confirmar_vaga"]


async def test_refusal_never_cancels_a_reserved_shift(office: Office, doctor: str, chip: str) -> None:
    id = await add_vaga(office)
    await shifts(office).plantoes.reservar(id, doctor, por="gestora")
    await receive(office, "não posso nesse dia")
    assert (await vaga(office, id))["status"] == "reservada"
    assert await pending(office) == ["sem_resposta"]


@pytest.mark.parametrize(("texto", "known"), [("qual o valor?", True), ("qual o prazo de pagamento?", False)])
async def test_question_is_answered_if_the_fact_is_known_and_goes_to_a_person_otherwise(
    office: Office, doctor: str, chip: str, texto: str, known: bool
) -> None:
    await offer(office, doctor)
    await receive(office, texto)
    assert ("R$ 1.500" in await said(office)) is known
    assert await pending(office) == ([] if known else ["sem_resposta"])


async def test_julia_says_that_it_is_a_program(office: Office, doctor: str) -> None:
    await receive(office, "você é um robô?")
    assert "um programa, não uma pessoa" in await said(office)


async def test_request_for_a_person_is_acknowledged_and_then_julia_is_silent(
    office: Office, doctor: str, chip: str
) -> None:
    await receive(office, "quero falar com um atendente")
    assert await pending(office) == ["pede_pessoa"]
    await office.works()
    assert (await answers(office))[0]["status"] == "enviada"
    talk = await one(office.work.database, "SELECT status, controlled_by FROM conversations")
    assert (talk["status"], talk["controlled_by"]) == ("escalated", "human")
    await receive(office, "qual o valor?", "m2")
    assert len(await answers(office)) == 1


async def test_grave_objection_begins_seven_days_of_rest(office: Office, doctor: str) -> None:
    await receive(office, "isso é golpe")
    row = await one(
        office.work.database, "SELECT permission_state, cooling_off_until, objection_severity FROM doctor_state"
    )
    assert (row["permission_state"], row["objection_severity"]) == ("cooling_off", "grave")
    assert row["cooling_off_until"] == office.clock.now() + 7 * DAY
    assert await pending(office) == ["objecao_grave"]


async def test_answer_that_is_not_sent_is_left_to_a_person(office: Office, doctor: str, chip: str) -> None:
    await receive(office, "confirmado")
    await write(office.work.database, "UPDATE fila_mensagens SET cancelamento_pedido = TRUE")
    await office.works()
    assert await pending(office) == ["resposta_nao_saiu"]


async def test_night_gets_one_acknowledgement_in_six_hours(office: Office, doctor: str, chip: str) -> None:
    await go_to(office, FRIDAY_NIGHT)
    await receive(office, "oi", "m1")
    await office.later(HOUR)
    await receive(office, "qual o valor?", "m2")
    (only,) = await answers(office)
    assert only["tipo"] == "recebimento"
    assert "respondo na segunda-feira a partir das 8h" in only["conteudo"]
    await office.later(6 * HOUR)
    await receive(office, "bom dia", "m3")
    assert len(await answers(office)) == 2
    assert len(await rows(office.work.database, "SELECT id FROM mensagens_fora_horario")) == 3


async def test_morning_answers_all_messages_of_the_night_once(office: Office, doctor: str, chip: str) -> None:
    await go_to(office, NIGHT)
    await receive(office, "não posso nesse dia", "m1")
    await receive(office, "qual o prazo de pagamento?", "m2")
    await office.works()
    await go_to(office, MORNING)
    assert await resume(office) == {"enfileiradas": 1, "com_pessoa": 0, "ignoradas": 0}
    assert await resume(office) == {"enfileiradas": 0, "com_pessoa": 0, "ignoradas": 0}
    _, retomada = await answers(office)
    assert "Sobre sua mensagem de ontem" in retomada["conteudo"]
    assert ("obrigada por avisar" in retomada["conteudo"], "Não tenho essa informação" in retomada["conteudo"]) == (
        True, True,
    )  # fmt: skip
    open_rows = await rows(office.work.database, "SELECT id FROM mensagens_fora_horario WHERE processada_em IS NULL")
    assert len(open_rows) == 2
    await office.works()
    assert (await answers(office))[1]["status"] == "enviada"
    done = await rows(office.work.database, "SELECT processada_resultado FROM mensagens_fora_horario")
    assert [row["processada_resultado"] for row in done] == ["sucesso", "sucesso"]


@pytest.mark.parametrize(("came", "says"), [(FRIDAY_NIGHT, "de sexta-feira"), (MONDAY - 20 * HOUR, "de domingo")])
async def test_monday_does_not_say_yesterday(office: Office, doctor: str, came: datetime, says: str) -> None:
    await go_to(office, came)
    await receive(office, "oi")
    await go_to(office, MONDAY)
    await resume(office)
    retomada = (await answers(office))[1]["conteudo"]
    assert (says in retomada, "ontem" in retomada) == (True, False)


async def test_answer_of_monday_to_a_message_of_friday_night_is_sent_as_an_answer(
    office: Office, doctor: str, chip: str
) -> None:
    await go_to(office, FRIDAY_NIGHT)
    await receive(office, "oi")
    await office.works()
    await go_to(office, MONDAY)
    # A doctor in a rest period gets only answers.
    await write(office.work.database, "UPDATE doctor_state SET permission_state = 'cooling_off'")
    await resume(office)
    await office.works()
    assert [each["status"] for each in await answers(office)] == ["enviada", "enviada"]


async def test_job_that_dies_before_the_commit_has_done_nothing(
    office: Office, doctor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await go_to(office, NIGHT)
    await receive(office, "oi")
    await go_to(office, MORNING)
    respostas = julia_of(office.work).answers.respostas

    async def die(*_: object, **__: object) -> str:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(respostas._parts.pendencias, "abrir", die)
        with pytest.raises(SystemExit):
            await resume(office)
    assert len(await answers(office)) == 1
    await resume(office)
    await resume(office)
    assert len(await answers(office)) == 2


async def test_blocked_answer_of_the_morning_is_left_to_a_person(office: Office, doctor: str, chip: str) -> None:
    await go_to(office, NIGHT)
    await receive(office, "confirmado")
    await office.works()
    await go_to(office, MORNING)
    await resume(office)
    await write(office.work.database, "UPDATE fila_mensagens SET cancelamento_pedido = TRUE WHERE tipo = 'retomada'")
    await office.works()
    row = await one(office.work.database, "SELECT processada_resultado FROM mensagens_fora_horario")
    assert row["processada_resultado"] == "bloqueado: FAILED_EXPIRED"
    assert await pending(office) == ["resposta_nao_saiu"]


async def test_morning_job_answers_neither_a_conversation_of_a_person_nor_an_opt_out(
    office: Office, doctor: str
) -> None:
    await go_to(office, NIGHT)
    await receive(office, "oi")
    await write(office.work.database, "UPDATE conversations SET controlled_by = 'human'")
    await go_to(office, MORNING)
    assert (await resume(office))["com_pessoa"] == 1
    assert await pending(office) == ["com_pessoa"]
    assert len(await answers(office)) == 1


async def test_opt_out_after_the_question_gets_no_answer(office: Office, doctor: str) -> None:
    await go_to(office, NIGHT)
    await receive(office, "qual o valor?", "m1")
    await receive(office, "PARAR", "m2")
    await go_to(office, MORNING)
    assert (await resume(office))["ignoradas"] == 1
    assert [each["tipo"] for each in await answers(office)] == ["recebimento"]


async def test_job_is_skipped_outside_the_sending_hours(office: Office) -> None:
    await go_to(office, NIGHT)
    call = JobCall(key="test", params={}, started_at=NIGHT, deadline=NIGHT + MINUTE)
    outcome = await julia_of(office.work).answers.retomadas.processar_retomadas(call)
    assert isinstance(outcome, Skipped)


async def test_health_reports_a_message_of_the_night_without_an_answer(office: Office, doctor: str) -> None:
    retomadas = julia_of(office.work).answers.retomadas
    await go_to(office, NIGHT)
    await receive(office, "oi")
    assert (await retomadas.ask()).findings == ()
    await office.later(4 * DAY)
    (finding,) = (await retomadas.ask()).findings
    assert finding.says == "respostas_retomadas_atrasadas"
