"""``/health/fila``, the health page of the message queue. The tests include a past incident: fifty messages waited
without an alert because the consumer had never been started.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from app.composition.julia import julia_of
from app.contexts.comum.whatsapp import NO_LINE
from app.contexts.envio.saude import MedidasDaFila, documento
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.engine.batuta import Batuta
from batuta.kernel.reasons import encode
from batuta.testing import FakeClock
from tests.julia.tables import add_doctor, write

# A Friday, five to three in São Paulo.
INCIDENT = datetime(2026, 1, 23, 17, 55, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
THRESHOLDS = {
    "backlog_warning": 100,
    "backlog_critical": 500,
    "travadas_warning": 1,
    "travadas_critical": 10,
    "erros_hora_warning": 10,
    "idade_warning_min": 60,
}
PUT = (
    "INSERT INTO fila_mensagens (id, cliente_id, telefone_destino, conteudo, status, agendar_para, processando_desde,"
    " lease_until, enviada_em, finalizada_em, envio_estado, envio_desde, erro, created_at)"
    " VALUES (:id, :doctor, 'x', 'x', :status, :at, :since, :lease, :sent, :ended, :doubt, :doubted, :why, :now)"
)


class Julia:
    def __init__(self, work: Batuta, settings: Settings, clock: FakeClock) -> None:
        self.work, self.clock, self._count = work, clock, 0
        self.doctor = ""
        self._client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000)),
            base_url="http://127.0.0.1:8000",
        )

    async def get(self, path: str) -> Any:
        return (await self._client.get(path, headers={"Accept-Language": "en"})).json()

    async def put(self, status: str = "pendente", **values: Any) -> None:
        self._count += 1
        now = self.clock.now()
        known = {
            "at": now,
            "since": None,
            "lease": None,
            "sent": None,
            "ended": None,
            "doubt": None,
            "why": None,
            **values,
        }
        known["doubted"] = None if known["doubt"] is None else now
        id = f"00000000-0000-7000-8000-{self._count:012d}"
        await write(self.work.database, PUT, id=id, doctor=self.doctor, status=status, now=now, **known)

    async def beats(self, loop: str = "worker:fila_mensagens") -> None:
        now = self.clock.now()
        loops = {loop: {"last_progress_ago": 0.01, "failures": 0}}
        await self.work.beats.beat("w1", "worker", loops, now=now)


@pytest.fixture
async def julia(database_url: str, clock: FakeClock) -> AsyncIterator[Julia]:
    clock.step(INCIDENT - clock.now())
    settings = Settings(database_url=database_url)
    async with build(settings, clock).work as work:
        found = Julia(work, settings, clock)
        found.doctor = await add_doctor(work.database)
        yield found


async def test_empty_queue_is_healthy_and_shows_its_limits(julia: Julia) -> None:
    found = await julia.get("/health/fila")
    assert (found["status"], found["alerts"], found["thresholds"]) == ("healthy", [], THRESHOLDS)
    assert found["metrics"] == {
        "pendentes": 0,
        "processando": 0,
        "enviadas_ultima_hora": 0,
        "erros_ultima_hora": 0,
        "mensagem_mais_antiga_min": 0,
        "travadas": 0,
        "agendadas": 0,
        "sem_gateway": 0,
        "em_duvida": 0,
        "para_decisao": 0,
        "dlq": 0,
        "tem_consumidor": False,
        "pausada": False,
    }
    assert found["timestamp"] == "2026-01-23T14:55:00-03:00"


async def test_only_due_messages_are_a_backlog_and_doubts_count_apart(julia: Julia) -> None:
    now = INCIDENT
    await julia.put(at=now - 7 * MINUTE)
    await julia.put(at=now + MINUTE)
    await julia.put("enviada", sent=now - 59 * MINUTE)
    await julia.put("enviada", sent=now - 61 * MINUTE)
    await julia.put("erro", ended=now - MINUTE)
    await julia.put("erro", ended=now - 61 * MINUTE)
    await julia.put("processando", since=now - MINUTE, lease=now + MINUTE)
    await julia.put("processando", since=now - 61 * MINUTE, lease=now + MINUTE)
    await julia.put("processando", since=now - 2 * MINUTE, lease=now - SECOND)
    await julia.put(doubt="unknown")
    await julia.put(doubt="parked")
    await julia.beats()
    found = (await julia.get("/health/fila"))["metrics"]
    assert found == {
        "pendentes": 1,
        "processando": 3,
        "enviadas_ultima_hora": 1,
        "erros_ultima_hora": 1,
        "mensagem_mais_antiga_min": 7,
        "travadas": 2,
        "agendadas": 1,
        "sem_gateway": 0,
        "em_duvida": 1,
        "para_decisao": 1,
        "dlq": 0,
        "tem_consumidor": True,
        "pausada": False,
    }


async def test_consumer_that_never_started_is_critical_within_two_minutes(julia: Julia) -> None:
    await julia.work.reports.expect(now=INCIDENT)
    for _ in range(50):
        await julia.put()
    assert (await julia.get("/health/fila"))["status"] == "healthy"
    for _ in range(4):
        await julia.clock.advance(20 * SECOND)
        await julia.beats("campanhas")  # a process is alive, but does not serve the queue
    await julia.clock.advance(20 * SECOND)
    found = await julia.get("/health/fila")
    assert (found["status"], found["alerts"]) == ("critical", ["consumidores 0 < 1"])
    alerts = await julia.get("/health/alerts")
    (alert,) = [each for each in alerts["alerts"] if each["cause"] == "queue.deserted.fila_mensagens"]
    assert (alert["severity"], alert["source"], alert["value"]) == ("critical", "fila", 50)
    assert "batuta worker" in alert["next_step"]
    score = await julia.get("/health/score")
    assert score["score"] < 40
    assert score["breakdown"]["fila"] == {"score": 0, "max": 20}
    await julia.beats()
    await julia.clock.advance(15 * SECOND)
    assert (await julia.get("/health/fila"))["status"] == "healthy"


async def test_backlog_is_judged_once_by_the_queues_own_limits(julia: Julia) -> None:
    for _ in range(101):
        await julia.put()
    await julia.clock.advance(70 * SECOND)
    await julia.beats()
    alerts = await julia.get("/health/alerts")
    found = [each for each in alerts["alerts"] if each["source"] == "fila"]
    assert [(each["cause"], each["threshold"]) for each in found] == [("queue.backlog.fila_mensagens", 100)]
    assert (await julia.get("/health/score"))["breakdown"]["fila"] == {"score": 15, "max": 20}


async def test_paused_queue_raises_no_backlog_alert(julia: Julia) -> None:
    for _ in range(101):
        await julia.put()
    await julia.work.switches.set("pause.queue.fila_mensagens", True, by="ana", reason="-", now=julia.clock.now())
    await julia.clock.advance(70 * SECOND)
    found = await julia.get("/health/fila")
    assert (found["status"], found["metrics"]["pausada"], found["metrics"]["pendentes"]) == ("healthy", True, 101)


async def test_messages_delayed_by_a_process_without_a_gateway_are_reported(julia: Julia) -> None:
    await julia.beats()
    await julia.put(at=INCIDENT + MINUTE, why=encode(NO_LINE()))
    found = await julia.get("/health/fila")
    assert (found["status"], found["alerts"]) == ("degraded", ["sem_gateway 1 > 0"])
    by_cause = {each["cause"]: each for each in (await julia.get("/health/alerts"))["alerts"]}
    assert "EVOLUTION_API_URL" in by_cause["fila.sem_gateway"]["next_step"]
    # the reason is a minute old, so by now another process may have claimed the message
    await julia.clock.advance(MINUTE + SECOND)
    assert (await julia.get("/health/fila"))["metrics"]["sem_gateway"] == 0


async def test_message_parked_for_a_decision_is_an_alert_with_its_next_step(julia: Julia) -> None:
    await julia.put(doubt="parked")
    by_cause = {each["cause"]: each for each in (await julia.get("/health/alerts"))["alerts"]}
    alert = by_cause["fila.para_decisao"]
    assert (alert["severity"], alert["value"]) == ("warning", 1)
    assert "batuta decidir" in alert["next_step"]


@pytest.mark.parametrize(
    ("measured", "status"),
    [
        ({"pendentes": 100}, "healthy"),
        ({"pendentes": 101}, "degraded"),
        ({"pendentes": 501}, "critical"),
        ({"travadas": 1}, "degraded"),
        ({"travadas": 10}, "degraded"),
        ({"travadas": 11}, "critical"),
        ({"erros_ultima_hora": 10}, "healthy"),
        ({"erros_ultima_hora": 11}, "degraded"),
        ({"mais_antiga": INCIDENT - 60 * MINUTE}, "healthy"),
        ({"mais_antiga": INCIDENT - 61 * MINUTE}, "degraded"),
        ({"pendentes": 501, "erros_ultima_hora": 11}, "critical"),  # a later rule does not improve the status
    ],
)
def test_worst_rule_decides_the_status(measured: dict[str, Any], status: str) -> None:
    assert documento(MedidasDaFila(now=INCIDENT, **measured))["status"] == status
