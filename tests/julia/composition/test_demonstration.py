"""The demonstration of `make run` acts through the API and the simulator, and keeps going."""

from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import httpx2
import pytest

from app.composition.development.demo import LISTENER, MORE_SENDERS, SENDER
from app.composition.development.demonstration import DOCTORS, SWITCHES, Demonstration, last_period
from app.composition.development.simulator import SIMULATED
from app.composition.julia import julia_of
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.engine.batuta import Batuta
from batuta.testing import FakeClock
from simulador.main import create_app as create_simulator
from tests.julia.tables import rows

ZONE = ZoneInfo("America/Sao_Paulo")
TWO_MINUTES = timedelta(minutes=2, seconds=30)


class Shown:
    """The demonstration beside Julia and a simulator. ``commands`` are the commands that it ran."""

    def __init__(self, work: Batuta, clock: FakeClock) -> None:
        self.work = work
        self.clock = clock
        self.commands: list[tuple[str, ...]] = []
        self.simulator = create_simulator(clock, instances=[LISTENER, *MORE_SENDERS])
        self.loop = self.start()

    def start(self) -> Demonstration:
        api, simulator = self._client(create_app(julia_of(self.work))), self._client(self.simulator)
        return Demonstration(api, simulator, self.clock, ZONE, self._command)

    def _client(self, app: object) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=app, client=("127.0.0.1", 5000))  # type: ignore[arg-type]
        return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")

    async def _command(self, *words: str) -> int:
        self.commands.append(words)
        return 0

    async def play(self, lasts: timedelta) -> int:
        """Perform the actions of a time, each when it is due. Return how many there were."""
        ends, count = self.clock.now() + lasts, 0
        while self.clock.now() < ends:
            pace = await self.loop.tick()
            count += 1
            assert pace.until is not None  # type: ignore[union-attr]
            await self.clock.advance(pace.until - self.clock.now())  # type: ignore[union-attr]
        return count


@pytest.fixture
async def shown(database_url: str, clock: FakeClock) -> AsyncIterator[Shown]:
    settings = Settings(database_url=database_url, evolution_api_url="http://127.0.0.1:1", demo=True)
    work = build(settings, clock=clock).work
    async with work:
        assert await julia_of(work).demo.begin(now=clock.now())
        found = Shown(work, clock)
        yield found
        await found.loop.drain(timedelta(0))


async def test_two_minutes_show_doctors_vacancies_people_and_a_report(shown: Shown) -> None:
    assert await shown.play(TWO_MINUTES) >= 15
    database = shown.work.database
    assert len(await rows(database, "SELECT id FROM clientes")) == DOCTORS
    vagas = Counter(row["status"] for row in await rows(database, "SELECT status FROM vagas"))
    assert vagas == {"anunciada": 1, "realizada": 1, "cancelada": 1}
    assert await rows(database, "SELECT vaga_id FROM vagas_ofertas")
    assert [row["tipo"] for row in await rows(database, "SELECT tipo FROM relatorios")]
    assert [row["status"] for row in await rows(database, "SELECT status FROM campanhas")] == ["agendada"]
    assert {words[:3] for words in shown.commands} == {("switch", *each) for each in SWITCHES}


async def test_routine_repeats_without_an_error_for_an_hour(shown: Shown) -> None:
    await shown.play(timedelta(hours=1))
    found = await rows(shown.work.database, "SELECT status FROM vagas")
    assert Counter(row["status"] for row in found)["realizada"] > 3


async def test_demonstration_waits_for_an_api_that_is_not_there_yet(clock: FakeClock) -> None:
    calls: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        calls.append(request.url.path)
        if len(calls) == 1:
            raise httpx2.ConnectError("no api yet")
        return httpx2.Response(201, json={"novos": [str(n) for n in range(DOCTORS)]})

    async def command(*words: str) -> int:
        return 0

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url="http://127.0.0.1:1")
    loop = Demonstration(client, client, clock, ZONE, command)
    for _ in range(3):
        await loop.tick()
    assert calls == ["/api/v1/medicos", "/api/v1/medicos"]
    await loop.drain(timedelta(0))


async def test_later_start_continues_with_the_same_chips(shown: Shown) -> None:
    assert await julia_of(shown.work).demo.begin(now=shown.clock.now())
    found = await rows(shown.work.database, "SELECT instance_name FROM chips ORDER BY instance_name")
    assert [row["instance_name"] for row in found] == sorted([SENDER, LISTENER, *MORE_SENDERS])


async def test_later_start_continues_with_the_doctors_of_the_first(shown: Shown) -> None:
    await shown.play(timedelta(seconds=60))
    before = len(await rows(shown.work.database, "SELECT id FROM vagas"))
    await shown.loop.drain(timedelta(0))
    shown.loop = shown.start()
    await shown.play(timedelta(seconds=60))
    assert len(await rows(shown.work.database, "SELECT id FROM vagas")) == 2 * before
    assert len(await rows(shown.work.database, "SELECT id FROM clientes")) == DOCTORS
    assert len(await rows(shown.work.database, "SELECT id FROM campanhas")) == 1


async def test_instances_of_the_simulator_have_the_numbers_of_the_chips(shown: Shown) -> None:
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=shown.simulator), base_url="http://127.0.0.1"
    ) as client:
        answer = await client.get("/evolution/instance/fetchInstances", headers={"apikey": SIMULATED})
    numbers = {each["name"]: each["ownerJid"].partition("@")[0] for each in answer.json()}
    found = await rows(shown.work.database, "SELECT instance_name, telefone FROM chips")
    assert {row["instance_name"]: row["telefone"] for row in found} == numbers


@pytest.mark.parametrize(
    ("hour", "tipo", "day"),
    [
        (0, "fim_dia", 10),
        (9, "fim_dia", 10),
        (10, "manha", 11),
        (16, "almoco", 11),
        (19, "tarde", 11),
        (23, "fim_dia", 11),
    ],
)
def test_report_is_of_the_part_of_the_day_that_ended_last(hour: int, tipo: str, day: int) -> None:
    last = last_period(datetime(2026, 3, 11, hour, 30, tzinfo=ZONE))
    assert (last.tipo, last.inicio.day) == (tipo, day)


def test_first_two_minutes_act_every_few_seconds(clock: FakeClock) -> None:
    client = httpx2.AsyncClient()
    steps = list(islice(Demonstration(client, client, clock, ZONE).script(), 16))
    assert all(step.rest <= timedelta(seconds=20) for step in steps)
    assert sum((step.rest for step in steps), timedelta(0)) < timedelta(minutes=2)
