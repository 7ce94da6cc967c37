"""Alerts about how doctors are served. Each compares a count with a threshold. The tests run on both databases."""

import json
from datetime import timedelta
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.qualidade.alertas import Hospital, Limiares, Medidas, julgar
from batuta.health.alerts import Alert
from batuta.health.finding import Severity
from batuta.jobs import JobCall
from batuta.queue.outcome import Done
from batuta.testing.clock import settle
from tests.julia.conversas.test_atendimento import care, open_talk
from tests.julia.envio.sending import MINUTE, PHONE, Office
from tests.julia.plantoes.mesa import add_doctors, add_vaga, shifts
from tests.julia.respostas.test_respostas import NIGHT, go_to, offer, receive
from tests.julia.tables import rows, write

LIMITS = Limiares()


def severities(**figures: Any) -> dict[str, Severity]:
    return {each.cause.removeprefix("alertas."): each.severity for each in julgar(Medidas(**figures), LIMITS)}


@pytest.mark.parametrize(
    ("well", "ill", "what", "severity"),
    [
        ({"conversas": 10, "com_pessoa": 2}, {"conversas": 10, "com_pessoa": 3}, "taxa_handoff_alta", Severity.WARNING),
        ({"conversas": 4, "com_pessoa": 4}, {"conversas": 5, "com_pessoa": 4}, "taxa_handoff_alta", Severity.WARNING),
        ({"handoffs_dia": 4}, {"handoffs_dia": 5}, "pico_handoff", Severity.WARNING),
        ({"handoffs_dia": 5}, {"handoffs_dia": 8}, "pico_handoff", Severity.CRITICAL),
        (
            {"handoffs_dia": 9, "handoffs_semana": 35},
            {"handoffs_dia": 10, "handoffs_semana": 35},
            "pico_handoff",
            Severity.WARNING,
        ),
        (
            {"respostas": 3, "segundos": 120.0},
            {"respostas": 3, "segundos": 121.0},
            "tempo_resposta_alto",
            Severity.WARNING,
        ),
        (
            {"respostas": 2, "segundos": 900.0},
            {"respostas": 3, "segundos": 900.0},
            "tempo_resposta_alto",
            Severity.WARNING,
        ),
        ({"esperam": 1, "enviadas": 1}, {"esperam": 1}, "sem_respostas", Severity.CRITICAL),
        ({"esperam": 1, "no_horario": False}, {"esperam": 1}, "sem_respostas", Severity.CRITICAL),
        (
            {"chamadas": 5, "performance_ms": 1000.0},
            {"chamadas": 5, "performance_ms": 1001.0},
            "performance",
            Severity.WARNING,
        ),
        (
            {"chamadas": 4, "performance_ms": 9000.0},
            {"chamadas": 5, "performance_ms": 2001.0},
            "performance",
            Severity.CRITICAL,
        ),
        ({"ofertas": 10, "recusas": 4}, {"ofertas": 10, "recusas": 5}, "recusas_altas", Severity.WARNING),
        (
            {"ofertas": 10, "reservas": 7, "ofertas_semana": 10, "reservas_semana": 10},
            {"ofertas": 10, "reservas": 6, "ofertas_semana": 10, "reservas_semana": 10},
            "conversao_caiu",
            Severity.WARNING,
        ),
    ],
)
def test_figure_beyond_its_threshold_is_a_finding(
    well: dict[str, Any], ill: dict[str, Any], what: str, severity: Severity
) -> None:
    assert severities(**well).get(what) is not severity
    assert severities(**ill)[what] is severity


def test_nothing_measured_raises_no_alert() -> None:
    assert severities() == {}


async def verify(office: Office) -> dict[str, Any]:
    now = office.clock.now()
    call = JobCall(key="test", params={}, started_at=now, deadline=now + 5 * MINUTE)
    outcome = await julia_of(office.work).quality.alertas.verificar_alertas(call)
    assert isinstance(outcome, Done)
    assert isinstance(outcome.result, dict)
    assert outcome.items == len(outcome.result["alertas"])
    return dict(outcome.result)


def kinds(result: dict[str, Any]) -> list[str]:
    return [each["tipo"] for each in result["alertas"]]


async def test_doctor_who_waits_while_nothing_is_sent_is_critical_until_the_answer_is_sent(
    office: Office, doctor: str, chip: str
) -> None:
    await offer(office, doctor)
    await office.later(31 * MINUTE)
    await receive(office, "qual o valor?")
    await office.later(4 * MINUTE)
    assert kinds(await verify(office)) == []
    await office.later(2 * MINUTE)
    found = await verify(office)
    assert (kinds(found), found["medidas"]["esperam"]) == (["sem_respostas"], 1)
    await office.works()
    found = await verify(office)
    assert (kinds(found), found["medidas"]["enviadas"]) == ([], 1)
    assert (found["medidas"]["respostas"], found["medidas"]["segundos"]) == (1, 360)


async def test_messages_for_a_person_opt_outs_and_messages_of_the_night_do_not_count_as_waiting(
    office: Office, doctor: str, chip: str
) -> None:
    await receive(office, "oi", "m1")  # an entry of the pending list
    other, third = await add_doctors(office, 2)
    for n, (id, texto) in enumerate(((other, "PARAR"), (third, "qual o valor?"))):
        talk = await open_talk(office, id)
        await write(
            office.work.database,
            "INSERT INTO interacoes (conversation_id, cliente_id, tipo, autor_tipo, conteudo, classe, provider_message_id,"
            " created_at) VALUES (:talk, :id, 'entrada', 'medico', :texto, :classe, :message, :now)",
            talk=talk,
            id=id,
            texto=texto,
            classe="opt_out" if n == 0 else "pergunta",
            message=f"x{n}",
            now=office.clock.now(),
        )
    await care(office).assumir(talk, por="ana", motivo="negocia")
    await office.later(10 * MINUTE)
    assert (await verify(office))["medidas"]["esperam"] == 0
    await go_to(office, NIGHT)
    await receive(office, "qual o valor?", "m2")
    await office.later(10 * MINUTE)
    found = await verify(office)
    assert (found["medidas"]["esperam"], found["medidas"]["no_horario"]) == (0, False)


async def test_hand_overs_of_the_hour_and_of_the_day_are_counted_once_for_each_conversation(office: Office) -> None:
    doctors = await add_doctors(office, 6)
    for n, id in enumerate(doctors):
        talk = await open_talk(office, id)
        await write(
            office.work.database,
            "INSERT INTO interacoes (conversation_id, cliente_id, tipo, autor_tipo, conteudo, created_at)"
            " VALUES (:talk, :id, 'entrada', 'medico', '-', :now)",
            talk=talk,
            id=id,
            now=office.clock.now(),
        )
        if n < 2:
            async with office.work.database.transaction() as transaction:
                await julia_of(office.work).messages.estagios.escalar(
                    transaction, talk, por="julia", motivo="pede_pessoa", now=office.clock.now()
                )
            await care(office).assumir(talk, por="ana", motivo="negocia")
    found = await verify(office)
    counted = found["medidas"]
    assert (counted["conversas"], counted["com_pessoa"], counted["handoffs_dia"]) == (6, 2, 2)
    assert kinds(found) == ["taxa_handoff_alta"]
    assert (counted["nota"], counted["segundos"], counted["performance_ms"]) == (None, None, None)
    await office.later(timedelta(hours=2))
    counted = (await verify(office))["medidas"]
    assert (counted["conversas"], counted["com_pessoa"], counted["handoffs_dia"]) == (0, 0, 2)


def test_peak_of_each_hospital_is_a_finding_of_its_own() -> None:
    quiet, peak = Hospital("h1", "Hospital A", 6, 28), Hospital("h2", "Hospital B", 8, 0)
    (found,) = julgar(Medidas(hospitais=[quiet, peak]), LIMITS)
    assert (found.cause, found.severity) == ("alertas.pico_handoff_hospital.h2", Severity.CRITICAL)
    assert found.facts == {"medida": "8", "limite": "5", "hospital": "Hospital B"}


async def test_hand_offs_to_authors_are_counted_by_hospital(office: Office, doctor: str) -> None:
    vaga, message, now = await add_vaga(office), await office.put(doctor), office.clock.now()
    others = await add_doctors(office, 6)
    for n, id in enumerate(others):
        await write(
            office.work.database,
            "INSERT INTO external_handoffs (id, vaga_id, cliente_id, divulgador_id, status, reserved_until, mensagem_id,"
            " decidido_em, decidido_via, decidido_por, created_at, updated_at)"
            " VALUES (:id, :vaga, :doctor, :poster, 'expired', :at, :message, :at, 'prazo', 'sistema', :at, :at)",
            id=office.work.ids.new(),
            vaga=vaga,
            doctor=id,
            poster=doctor,
            message=message,
            at=now - timedelta(hours=30 if n == 0 else n),
        )
    found = await verify(office)
    (place,) = found["medidas"]["hospitais"]
    assert (place["nome"], place["dia"], place["semana"]) == ("Hospital Fictício", 5, 1)
    assert [each.partition(".")[0] for each in kinds(found)] == ["pico_handoff_hospital"]


async def test_refusals_and_reservations_are_counted_against_the_offers_that_were_sent(
    office: Office, doctor: str, chip: str
) -> None:
    await offer(office, doctor)
    await shifts(office).anuncios.anunciar(
        (await rows(office.work.database, "SELECT id FROM vagas"))[0]["id"], [doctor], por="x"
    )
    await receive(office, "não posso nesse dia")
    counted = (await verify(office))["medidas"]
    assert (counted["ofertas"], counted["recusas"], counted["reservas"]) == (1, 1, 0)
    await office.later(timedelta(hours=25))
    counted = (await verify(office))["medidas"]
    assert (counted["ofertas"], counted["recusas"], counted["ofertas_semana"]) == (0, 0, 1)


async def test_duration_of_the_heartbeat_is_measured_from_its_runs(office: Office) -> None:
    now = office.clock.now()
    for n in range(5):
        await write(
            office.work.database,
            "INSERT INTO job_executions (id, job_name, categoria, started_at, finished_at, status, duration_ms, trigger)"
            " VALUES (:id, 'heartbeat', 'critico', :now, :now, 'success', :ms, 'schedule')",
            id=office.work.ids.new(),
            now=now - n * MINUTE,
            ms=2000 + n,
        )
    found = await verify(office)
    assert (found["medidas"]["chamadas"], json.dumps(found["medidas"]["performance_ms"])) == (5, "2002.0")
    assert found["alertas"] == [{"tipo": "performance", "severidade": "critical", "valor": 2002, "limite": 2000}]


class Recorder:
    name = "recorder"

    def __init__(self) -> None:
        self.alerts: list[Alert] = []

    async def send(self, alert: Alert) -> None:
        self.alerts.append(alert)


async def test_alert_is_sent_once_at_the_start_and_once_at_the_end_without_personal_data(
    office: Office, doctor: str, chip: str
) -> None:
    await offer(office, doctor)
    await office.later(31 * MINUTE)
    await receive(office, "qual o valor?")
    await office.later(6 * MINUTE)
    sink, hub = Recorder(), office.work.observability.hub()
    hub.make_sinks = lambda: [sink]
    hub._quiet_until = 0.0
    for _ in range(3):
        await hub.tick()
        await office.later(MINUTE)
    mine = [each for each in sink.alerts if each.cause == "alertas.sem_respostas"]
    assert [each.kind.value for each in mine] == ["alert"]
    await office.works()
    await settle()
    for _ in range(3):
        await hub.tick()
        await office.later(MINUTE)
    mine = [each for each in sink.alerts if each.cause == "alertas.sem_respostas"]
    assert [each.kind.value for each in mine] == ["alert", "recovery"]
    said = " ".join(f"{each.message} {each.next_step}" for each in mine)
    assert not [word for word in (PHONE, "Teste", "valor?", doctor) if word in said]
