"""The demonstration started by `make run` acts through the API and the simulator, and keeps acting over time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import httpx2
import pytest
from pydantic import SecretStr
from starlette.applications import Starlette

from app.composition.development.demo import LISTENER, MORE_SENDERS, SENDER
from app.composition.development.demonstration import (
    DOCTORS,
    SWITCHES,
    TELEGRAM_ACCOUNT,
    Demonstration,
    last_period,
)
from app.composition.development.simulator import SIMULATED
from app.composition.julia import julia_of
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.engine.batuta import Batuta
from batuta.processes.address import listen
from batuta.testing import FakeClock
from batuta.web.api import serve
from simulador.main import create_app as create_simulator
from simulador.telegram.api import create_app as create_telegram
from tests.julia.tables import rows

ZONE = ZoneInfo("America/Sao_Paulo")
TWO_MINUTES = timedelta(minutes=2, seconds=30)


class Shown:
    """The demonstration together with Julia and a simulator. ``commands`` lists the commands that the demonstration
    ran.
    """

    def __init__(self, work: Batuta, clock: FakeClock, simulator: Starlette) -> None:
        self.work = work
        self.clock = clock
        self.commands: list[tuple[str, ...]] = []
        self.simulator = simulator
        self.telegram = create_telegram(clock)
        self.loop = self.start()

    def start(self) -> Demonstration:
        api, simulator = self._client(create_app(julia_of(self.work))), self._client(self.simulator)
        return Demonstration(api, simulator, self._client(self.telegram), self.clock, ZONE, self._command)

    def _client(self, app: object) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=app, client=("127.0.0.1", 5000))  # type: ignore[arg-type]
        return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")

    async def _command(self, *words: str, typed: str = "") -> int:
        self.commands.append(words)
        if typed:
            # `batuta telegram login --importar` stores the session from its standard input in this way.
            telegram, session = julia_of(self.work).telegram, typed.strip()
            usuario = self.telegram.state.telegram.mundo.account(session)
            conta = await telegram.contas.adicionar(words[2], usuario_id=usuario, by="teste")
            await telegram.sessoes.store(conta, session)
        return 0

    async def play(self, lasts: timedelta) -> int:
        """Perform each action of the demonstration when it is due, until the time ``lasts`` has passed. Return how many
        actions were performed.
        """
        ends, count = self.clock.now() + lasts, 0
        while self.clock.now() < ends:
            pace = await self.loop.tick()
            count += 1
            assert pace.until is not None  # type: ignore[union-attr]
            await self.clock.advance(pace.until - self.clock.now())  # type: ignore[union-attr]
        return count


@pytest.fixture
async def shown(database_url: str, clock: FakeClock) -> AsyncIterator[Shown]:
    listening, stop = listen("127.0.0.1", 0), asyncio.Event()
    simulator = create_simulator(clock, instances=[LISTENER, *MORE_SENDERS])
    serving = asyncio.create_task(serve(simulator, listening, stop, timedelta(0)))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/evolution"
    settings = Settings(
        database_url=database_url,
        evolution_api_url=url,
        evolution_api_key=SecretStr(SIMULATED),
        telegram_session_keys=SecretStr(SIMULATED),
        demo=True,
    )
    work = build(settings, clock=clock).work
    async with work:
        found = Shown(work, clock, simulator)
        yield found
        await found.loop.drain(timedelta(0))
    stop.set()
    await serving


async def test_two_minutes_show_doctors_vacancies_people_and_a_report(shown: Shown) -> None:
    assert await shown.play(TWO_MINUTES) >= 15
    database = shown.work.database
    assert len(await rows(database, "SELECT id FROM clientes")) == DOCTORS
    vagas = Counter(row["status"] for row in await rows(database, "SELECT status FROM vagas"))
    assert vagas == {"anunciada": 1, "realizada": 1, "cancelada": 1}
    assert await rows(database, "SELECT vaga_id FROM vagas_ofertas")
    assert [row["tipo"] for row in await rows(database, "SELECT tipo FROM relatorios")]
    assert [row["status"] for row in await rows(database, "SELECT status FROM campanhas")] == ["agendada"]
    login = ("telegram", "login", TELEGRAM_ACCOUNT)
    assert {words[:3] for words in shown.commands} == {login, *(("switch", *each) for each in SWITCHES)}


async def test_two_minutes_show_a_conversation_on_telegram(shown: Shown) -> None:
    await shown.play(TWO_MINUTES)
    (account,) = await rows(shown.work.database, "SELECT nome, usuario_id, estado FROM telegram_contas")
    assert (account["nome"], account["estado"]) == (TELEGRAM_ACCOUNT, "ativa")
    queued = await rows(shown.work.database, "SELECT conteudo FROM fila_mensagens WHERE fila = 'telegram_saida'")
    assert len(queued) == 1
    mundo = shown.telegram.state.telegram.mundo
    received = [each["mensagem"] for each in mundo.difference(account["usuario_id"], 0)]
    assert [each["is_own"] for each in received] == [False]


async def test_later_start_keeps_the_account_on_telegram(shown: Shown) -> None:
    await shown.play(timedelta(seconds=60))
    people = len(shown.telegram.state.telegram.mundo.pessoas)
    await shown.loop.drain(timedelta(0))
    shown.loop = shown.start()
    await shown.play(timedelta(seconds=60))
    assert len(shown.telegram.state.telegram.mundo.pessoas) == people
    assert len(await rows(shown.work.database, "SELECT id FROM telegram_contas")) == 1


async def test_routine_repeats_without_an_error_for_an_hour(shown: Shown) -> None:
    await shown.play(timedelta(hours=1))
    found = await rows(shown.work.database, "SELECT status FROM vagas")
    assert Counter(row["status"] for row in found)["realizada"] > 3


async def test_demonstration_waits_for_an_api_that_has_not_started(clock: FakeClock) -> None:
    calls: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        calls.append(request.url.path)
        if len(calls) == 1:
            raise httpx2.ConnectError("no api yet")
        return httpx2.Response(201, json={"novos": [str(n) for n in range(DOCTORS)]})

    async def command(*words: str, typed: str = "") -> int:
        return 0

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url="http://127.0.0.1:1")
    loop = Demonstration(client, client, client, clock, ZONE, command)
    for _ in range(3):
        await loop.tick()
    assert calls == ["/api/v1/medicos", "/api/v1/medicos"]
    await loop.drain(timedelta(0))


async def test_instances_of_the_gateway_become_trusted_chips(shown: Shown) -> None:
    await shown.play(timedelta(seconds=5))
    await shown.loop.register_chips()
    found = await rows(
        shown.work.database, "SELECT instance_name, tipo, status, pode_prospectar FROM chips ORDER BY instance_name"
    )
    assert [row["instance_name"] for row in found] == sorted([SENDER, LISTENER, *MORE_SENDERS])
    assert {(row["tipo"], row["status"], row["pode_prospectar"]) for row in found} == {
        ("julia", "active", True),
        ("listener", "active", False),
    }


async def test_later_start_continues_with_the_doctors_of_the_first(shown: Shown) -> None:
    await shown.play(timedelta(seconds=60))
    before = len(await rows(shown.work.database, "SELECT id FROM vagas"))
    await shown.loop.drain(timedelta(0))
    shown.loop = shown.start()
    await shown.play(timedelta(seconds=60))
    assert len(await rows(shown.work.database, "SELECT id FROM vagas")) == 2 * before
    assert len(await rows(shown.work.database, "SELECT id FROM clientes")) == DOCTORS
    assert len(await rows(shown.work.database, "SELECT id FROM campanhas")) == 1


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
    steps = list(islice(Demonstration(client, client, client, clock, ZONE).script(), 16))
    assert all(step.rest <= timedelta(seconds=20) for step in steps)
    assert sum((step.rest for step in steps), timedelta(0)) < timedelta(minutes=2)
