"""Julia with the simulated Telegram: accounts, people, and a worker that the test drives step by step."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from app.composition.julia import Julia
from app.contexts.mensagens.fila import TELEGRAM_SAIDA
from app.contexts.telegram.entrada import TELEGRAM_ENTRADA
from app.main import build
from app.settings import Settings
from batuta.kernel import Ids
from batuta.processes.address import listen
from batuta.testing.clock import FastClock
from batuta.web.api import serve
from simulador.telegram.api import create_app
from simulador.telegram.mundo import Mundo
from tests.julia.tables import add_doctor, one, rows, write

# A Wednesday, eleven o'clock in São Paulo.
OPEN = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)
PHONE = "5511900000001"
LIMITS = {
    "rate_limit_per_hour": 10_000,
    "rate_limit_per_day": 10_000,
    "rate_limit_per_doctor_hour": 1_000,
    "send_min_gap_seconds": 1,
}


class Escritorio:
    def __init__(self, julia: Julia, mundo: Mundo, url: str) -> None:
        self.julia, self.work, self.mundo, self.url = julia, julia.work, mundo, url
        self.telegram, self.database = julia.telegram, julia.work.database
        self._ids = Ids(julia.work.clock)
        self.usuarios: dict[str, int] = {}  # user id by account
        self.people: dict[str, int] = {}  # user id by phone number

    async def account(self, nome: str = "conta-1") -> str:
        usuario = self.mundo.add_person(nome, telefone=f"55119{len(self.mundo.pessoas):08d}")
        id = await self.telegram.contas.adicionar(nome, usuario_id=usuario, by="teste")
        await self.telegram.sessoes.store(id, self.mundo.open_session(usuario))
        self.usuarios[id] = usuario
        return id

    async def doctor(self, telefone: str = PHONE, *, on_telegram: bool = True) -> tuple[str, int]:
        """Add a doctor, and the Telegram user who has the same phone number."""
        id = await add_doctor(self.database, telefone, now=OPEN)
        self.people[telefone] = self.mundo.add_person("Médica Teste", telefone=telefone) if on_telegram else 0
        return id, self.people[telefone]

    async def connect(self) -> None:
        """Tick until every active account is connected."""
        conexoes = self.telegram.conexoes
        async with asyncio.timeout(30):
            while True:
                await conexoes.tick()
                active = await self.telegram.contas.ativas()
                if all(conexoes.linha(each.id) is not None for each in active):
                    return
                await self._step_ends()

    async def sync(self, until: str) -> None:
        """Tick until the SQL query in ``until`` returns a row."""
        async with asyncio.timeout(30):
            while not await rows(self.database, until):
                await self.telegram.conexoes.tick()
                await self._step_ends()

    async def _step_ends(self) -> None:
        """Wait until the next step of an account's connection, or the pause after the step, has ended. Wait at most
        half a second.
        """
        wakeup = self.telegram.conexoes.wakeup
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await wakeup.wait()
        wakeup.clear()

    async def send(self, quem: str, texto: str, **more: Any) -> str:
        id = await self.telegram.servico.enviar(quem, texto, by="teste", **more)
        assert id is not None
        return id

    async def works(self, queue: str = TELEGRAM_SAIDA) -> None:
        """Process all rows in a queue that are due now or within a second."""
        async with asyncio.timeout(30):
            while await self.work.work_once(queue, 100):
                pass

    async def rests(self) -> None:
        """End the required pause between two messages to the same number."""
        await write(self.database, "DELETE FROM rate_tokens")

    async def is_due(self, id: str) -> None:
        at = self.work.clock.now() - timedelta(seconds=10)
        await write(self.database, "UPDATE fila_mensagens SET agendar_para = :at WHERE id = :id", id=id, at=at)

    async def settles_doubt(self, id: str) -> None:
        """Check immediately whether Telegram has a message whose sending is uncertain, instead of after the usual
        delay.
        """
        at = self.work.clock.now() - timedelta(seconds=10)
        doubt = "UPDATE fila_mensagens SET envio_desde = :at WHERE id = :id AND envio_estado IS NOT NULL"
        await write(self.database, doubt, id=id, at=at)
        await self.is_due(id)
        await self.connect()
        await self.telegram.reconciliador.look()

    async def reads_inbox(self) -> None:
        await self.work.work_once(TELEGRAM_ENTRADA.name, 100)

    async def message(self, id: str) -> dict[str, Any]:
        return await one(self.database, "SELECT * FROM fila_mensagens WHERE id = :id", id=id)

    @property
    def receipts(self) -> list[Any]:
        return list(self.mundo.receipts)


@asynccontextmanager
async def open_office(database_url: str, *, at: datetime = OPEN, **settings: Any) -> AsyncIterator[Escritorio]:
    clock = FastClock.start(at, 1.0)
    app, listening, stop = create_app(clock), listen("127.0.0.1", 0), asyncio.Event()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    serving = asyncio.create_task(serve(app, listening, stop, timedelta(seconds=1)))
    known = {
        "telegram_simulador_url": f"{url}/telegram",
        "telegram_session_keys": "synthetic key",
        **LIMITS,
        **settings,
    }
    julia = build(Settings(database_url=database_url, **known), clock=clock)
    try:
        async with julia.work:
            office = Escritorio(julia, app.state.telegram.mundo, url)
            try:
                yield office
            finally:
                office.mundo.restore()
                await office.telegram.conexoes.drain(timedelta(seconds=5))
    finally:
        stop.set()
        await serving
