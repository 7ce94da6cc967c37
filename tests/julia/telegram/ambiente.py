"""Both implementations of the Telegram interface, on the same simulated Telegram."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from app.composition.telegram.port import LateRing
from app.contexts.telegram.contas import Contas
from app.contexts.telegram.porta import (
    Atualizacao,
    Entidade,
    Linha,
    Login,
    MensagemVista,
    Novidades,
    Peer,
    Telegram,
    TipoDeChat,
)
from app.contexts.telegram.sessoes import Sessoes
from app.integrations.telegram.login import LoginSimulado
from app.integrations.telegram.simulado import LinhaSimulada, TelegramSimulado
from app.integrations.telethon.linha import LinhaTelethon, TelegramTelethon
from app.integrations.telethon.login import LoginTelethon
from batuta.kernel import Ids, SystemClock
from batuta.processes.address import listen
from batuta.sql import Database
from batuta.web.api import serve
from simulador.telegram.api import create_app
from simulador.telegram.mundo import Mundo
from tests.julia.telegram.tl_server import client_maker, login_maker, session_of

# LONG is a limit that no call of a test reaches, even on a busy machine. SHORT is the limit of a call that is expected
# to time out.
LONG, SHORT = timedelta(seconds=90), timedelta(milliseconds=300)
SECRET = "synthetic key"


@dataclass(slots=True)
class EntidadesEmMemoria:
    """The Telegram entities that each account knows, kept in memory."""

    known: dict[tuple[str, str], Entidade] = field(default_factory=dict)

    async def find(self, conta: str, destino: str) -> Entidade | None:
        names = {destino, f"pessoa:{destino}"}
        for (owner, chave), each in self.known.items():
            if owner == conta and (chave in names or destino in (f"@{each.username}", f"+{each.telefone}")):
                return each
        return None

    async def keep(self, conta: str, entidades: Sequence[Entidade]) -> None:
        self.known |= {(conta, each.peer.chave): each for each in entidades}

    async def forget(self, conta: str, peer: Peer) -> None:
        self.known.pop((conta, peer.chave), None)


@dataclass(frozen=True, slots=True)
class Conta:
    id: str  # id of the database row
    usuario: int  # user id at Telegram


class Ambiente:
    def __init__(self, name: str, mundo: Mundo, url: str, database: Database) -> None:
        self.name = name
        self.mundo = mundo
        self.entidades = EntidadesEmMemoria()
        self.clock = SystemClock()
        self._url = url
        self._database = database
        self._ids = Ids(self.clock)
        self.sessoes = self.vault("this process")
        self.telegram = self.port(self.sessoes)
        self.lines: list[Linha] = []

    def vault(self, dono: str) -> Sessoes:
        return Sessoes(self._database, LateRing((SECRET,)), self.clock, dono)

    def port(self, sessoes: Sessoes) -> Telegram:
        if self.name == "simulador":
            return TelegramSimulado(f"{self._url}/telegram", sessoes, self.entidades, self.clock)
        return TelegramTelethon(sessoes, self.entidades, self.clock, client_maker(self.mundo))

    def login(self) -> Login:
        if self.name == "simulador":
            return LoginSimulado(f"{self._url}/telegram", self.clock)
        return LoginTelethon(login_maker(self.mundo), self.clock)

    async def account(self, nome: str = "Conta Sintética") -> Conta:
        """Add an account to the simulated Telegram and to Julia's database, with a stored session."""
        usuario = self.mundo.add_person(nome, telefone=f"55119{len(self.mundo.pessoas):08d}")
        token = self.mundo.open_session(usuario)
        id = await self.add_row(nome)
        await self.sessoes.store(id, token if self.name == "simulador" else session_of(token))
        return Conta(id, usuario)

    async def add_row(self, nome: str) -> str:
        """Insert a Telegram account into Julia's database, and return its id."""
        contas = Contas(self._database, self._ids, self.clock)
        return await contas.adicionar(f"{nome} {len(self.mundo.pessoas)}", by="teste")

    async def line(self, conta: Conta, marca: str | None = None) -> Linha:
        line = await self.telegram.connect(conta.id, marca=marca, limit=LONG)
        assert isinstance(line, LinhaSimulada | LinhaTelethon), line
        self.lines.append(line)
        return line

    async def connected(self) -> tuple[Linha, Conta]:
        conta = await self.account()
        return await self.line(conta), conta

    def person(self, nome: str = "Pessoa Sintética", **more: str) -> int:
        return self.mundo.add_person(nome, **more)

    def peer(self, conta: Conta, usuario: int) -> Peer:
        return Peer(TipoDeChat.PESSOA, usuario, self.mundo.hash_for(conta.usuario, f"pessoa:{usuario}"))


async def messages(line: Linha, count: int) -> tuple[list[MensagemVista], str]:
    """Receive updates until this many messages from other people have arrived. Return the messages, and the position in
    the update stream after the last one.
    """
    found, marca = await updates(line, count)
    return [each for each in found if isinstance(each, MensagemVista)], marca


async def updates(line: Linha, count: int) -> tuple[list[Atualizacao], str]:
    found: list[Atualizacao] = []
    marca = ""
    async with asyncio.timeout(LONG.total_seconds()):
        while len(found) < count:
            received = await line.receive(limit=timedelta(seconds=1))
            assert isinstance(received, Novidades), received
            found += [each for each in received.atualizacoes if not (isinstance(each, MensagemVista) and each.is_own)]
            marca = received.marca
    return found, marca


@asynccontextmanager
async def opened(name: str, database: Database) -> AsyncIterator[Ambiente]:
    app, listening, stop = create_app(SystemClock()), listen("127.0.0.1", 0), asyncio.Event()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    serving = asyncio.create_task(serve(app, listening, stop, timedelta(seconds=1)))
    ambiente = Ambiente(name, app.state.telegram.mundo, url, database)
    try:
        yield ambiente
    finally:
        ambiente.mundo.restore()
        for line in ambiente.lines:
            await line.close(limit=LONG)
        stop.set()
        await serving
