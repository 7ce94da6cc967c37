"""Telegram workers that send messages to a simulated Telegram. Tests kill and restart the workers and the simulated
Telegram, whose receipts show which messages were sent.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from app.composition.julia import Julia
from batuta.kernel.waiting import insist
from batuta.testing import FastClock
from simulador.telegram.mundo import LOGIN_CODE
from tests.faults.forks import processes, processes_are_ready
from tests.faults.ladder_harness import Exit, notes_in
from tests.faults.tally import Tally
from tests.faults.telegram_plant import julia_at, simulate, work_off
from tests.faults.waiting import until
from tests.julia.tables import add_doctor, one, rows
from tests.servers import free_port

T = TypeVar("T")
# A Wednesday, ten o'clock in São Paulo.
MORNING = datetime(2026, 3, 11, 13, 0, tzinfo=UTC)
TEXT = "[SIMULADO] mensagem "


@dataclass
class Server:
    """The process of the simulated Telegram, and its control routes. If ``clock`` is None, it uses the machine's
    clock.
    """

    port: int
    journal: Path
    clock: str | None = None
    client: httpx2.AsyncClient = field(default_factory=lambda: httpx2.AsyncClient(trust_env=False, timeout=20))
    process: ForkServerProcess | None = None
    killed: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self.process = processes().Process(target=simulate, args=(self.port, str(self.journal), self.clock))
        self.process.start()
        async with asyncio.timeout(120):
            while True:
                try:
                    await self.client.get(f"{self.url}/health")
                except httpx2.HTTPError:
                    await asyncio.sleep(0.05)
                else:
                    return

    async def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        await asyncio.to_thread(self.process.join)
        self.killed += 1

    async def behave(self, conta: int | None = None, **how: Any) -> None:
        path = "/" if conta is None else f"/contas/{conta}"
        await self.client.patch(f"{self.url}/controle/telegram{path}", json=how)

    async def add(self, path: str, **body: Any) -> Any:
        return (await self.client.post(f"{self.url}/controle/telegram/{path}", json=body)).json()

    async def receipts(self) -> list[Any]:
        """Return the messages that were actually sent. If the server is being restarted, wait for it."""
        found: list[Any] = []
        async with asyncio.timeout(120):
            while True:
                try:
                    page = await self.client.get(f"{self.url}/controle/telegram/recibos?depois={len(found)}")
                except httpx2.HTTPError:
                    await asyncio.sleep(0.1)
                    continue
                if not page.json():
                    return found
                found += page.json()

    async def shown(self, conta: int | None = None) -> Any:
        path = "/" if conta is None else f"/contas/{conta}"
        return (await self.client.get(f"{self.url}/controle/telegram{path}")).json()


@dataclass
class Account:
    nome: str
    telefone: str
    id: str
    usuario: int


@dataclass
class TelegramOffice:
    server: Server
    julia: Julia  # Julia in the test's own process; it only enqueues and queries
    plan: dict[str, Any]
    accounts: list[Account] = field(default_factory=list)
    doctors: list[str] = field(default_factory=list)
    # maps the id of a message to the time at which it was queued
    accepted: dict[str, float] = field(default_factory=dict)
    worker: ForkServerProcess | None = None
    exits: list[Exit] = field(default_factory=list)
    killed: int = 0
    _keeping: asyncio.Task[None] | None = None

    def start_worker(self) -> None:
        """Start the worker, and restart it whenever it ends, as its parent would."""
        self._begin()
        self._keeping = asyncio.create_task(self._keep())

    def _begin(self) -> None:
        self.worker = processes().Process(target=work_off, args=(self.plan,))
        self.worker.start()

    async def _keep(self) -> None:
        while True:
            assert self.worker is not None
            if not self.worker.is_alive():
                self.exits.append(Exit(self.worker.pid or 0, self.worker.exitcode, time.monotonic()))
                self._begin()
            await asyncio.sleep(0.05)

    async def kill_worker(self) -> None:
        assert self.worker is not None
        self.worker.kill()
        self.killed += 1
        await asyncio.to_thread(self.worker.join)

    async def stop_worker(self) -> None:
        """Kill the worker and do not restart it."""
        if self._keeping is not None:
            self._keeping.cancel()
            (ending,) = await asyncio.gather(self._keeping, return_exceptions=True)
            assert isinstance(ending, asyncio.CancelledError), ending
        if self.worker is not None:
            self.worker.kill()
            self.worker.join()

    def notes(self, *words: str) -> list[list[str]]:
        """Return the lines of the worker's ``notes`` file that begin with these words."""
        return notes_in(Path(self.plan["folder"]), *words)

    async def noted(self, *words: str, count: int = 1) -> bool:
        return len(self.notes(*words)) >= count

    async def exited(self, count: int) -> bool:
        return len(self.exits) >= count

    def ask_for(self, file: str, words: str = "") -> None:
        (Path(self.plan["folder"]) / file).write_text(words)

    # The weekly limit per doctor is low, so each message of a test goes to another doctor.
    async def furnish(self, accounts: int, doctors: int) -> None:
        telegram, database = self.julia.telegram, self.julia.work.database
        for n in range(accounts):
            nome, telefone = f"conta-{n:03d}", f"551198{n:07d}"
            made = await self.server.add("contas", nome=nome, telefone=telefone)
            id = await telegram.contas.adicionar(nome, usuario_id=made["id"], by="teste")
            await telegram.sessoes.store(id, made["sessao"])
            self.accounts.append(Account(nome, telefone, id, made["id"]))
        phones = [f"551197{n:07d}" for n in range(doctors)]
        self.doctors += [await add_doctor(database, phone, now=self.now()) for phone in phones]
        for some in batched(phones, 20):
            await asyncio.gather(*(self.server.add("pessoas", nome="Pessoa", telefone=phone) for phone in some))

    async def put(
        self, count: int, accounts: Sequence[Account] = (), words: str = "", *, at_once: bool = False
    ) -> list[str]:
        """Queue ``count`` messages. Each goes to the next doctor and is sent by the next account in turn. Each text
        contains a unique number.
        """
        numbers = range(len(self.accepted), len(self.accepted) + count)
        queueing = [
            self._queue(n, (accounts or self.accounts)[n % len(accounts or self.accounts)], words) for n in numbers
        ]
        made = await asyncio.gather(*queueing) if at_once else [await each for each in queueing]
        self.accepted.update(made)
        return [id for id, _ in made]

    async def _queue(self, n: int, account: Account, words: str) -> tuple[str, float]:
        doctor, text = self.doctors[n % len(self.doctors)], f"{TEXT}{n}{words}"
        send = partial(self.julia.telegram.servico.enviar, doctor, text, by="teste", conta=account.nome)
        id = await insist(send, self.julia.work.clock)
        assert id is not None
        return id, self.now().timestamp()

    async def connected(self, count: int) -> bool:
        found = await rows(self.julia.work.database, "SELECT id FROM telegram_contas WHERE conectada")
        return len(found) == count

    async def connected_since(self, instant: datetime, count: int) -> bool:
        found = await rows(
            self.julia.work.database,
            "SELECT id FROM telegram_contas WHERE conectada AND conectada_em > :instant",
            instant=instant,
        )
        return len(found) == count

    async def heartbeats(self) -> list[dict[str, Any]]:
        return await rows(
            self.julia.work.database, "SELECT * FROM worker_heartbeats WHERE worker_name = 'telegram-main'"
        )

    async def beats_during(self, seconds: float) -> list[float]:
        """Record the worker's heartbeats for ``seconds`` seconds of the worker's clock. Return the intervals between
        heartbeats in seconds.
        """
        ends, beats = self.now() + timedelta(seconds=seconds), set[datetime]()
        while self.now() < ends:
            beats |= {each["last_heartbeat_at"] for each in await self.heartbeats() if each["status"] != "offline"}
            await asyncio.sleep(0.05)
        return [(later - earlier).total_seconds() for earlier, later in pairwise(sorted(beats))]

    def now(self) -> datetime:
        return self.julia.work.clock.now()

    async def account(self, conta: Account) -> dict[str, Any]:
        return await one(self.julia.work.database, "SELECT * FROM telegram_contas WHERE id = :id", id=conta.id)

    async def log_in_again(self, conta: Account) -> None:
        body = {"telefone": conta.telefone, "codigo": LOGIN_CODE}
        entered = await self.server.client.post(f"{self.server.url}/telegram/auth/sign_in", json=body)
        await self.julia.telegram.sessoes.store(conta.id, entered.json()["sessao"])
        await self.julia.telegram.contas.adicionar(conta.nome, by="teste")

    async def states(self) -> Counter[str]:
        found = await rows(
            self.julia.work.database, "SELECT status, envio_estado FROM fila_mensagens WHERE fila = 'telegram_saida'"
        )
        return Counter(f"{each['status']}/{each['envio_estado'] or '-'}" for each in found)

    async def latencies(self, ids: Sequence[str]) -> list[float]:
        """For each message with one of these ids, return the seconds from the moment it was queued until it reached the
        server. The shortest time comes first.
        """
        left = {
            number_of(each): datetime.fromisoformat(each["at"]).timestamp() for each in await self.server.receipts()
        }
        numbers = {id: n for n, id in enumerate(self.accepted)}
        return sorted(left[numbers[id]] - self.accepted[id] for id in ids)

    async def tally(self) -> Tally:
        """Count the accepted messages that the server has not sent, and those that it has sent twice."""
        sent = Counter(number_of(each) for each in await self.server.receipts())
        doubled = sum(each - 1 for each in sent.values())
        lost = sum(n not in sent for n in range(len(self.accepted)))
        return Tally(items=len(self.accepted), lost=lost, doubled=doubled, effects=sent.total(), in_vain=0)

    async def restarts(self, reason: str) -> list[dict[str, Any]]:
        found = await rows(self.julia.work.database, "SELECT * FROM worker_restarts ORDER BY at")
        return [each for each in found if each["reason"] == reason]

    async def until_sent(self, ids: Sequence[str] | None = None) -> float:
        """Wait until all messages, or those with the given ids, have been sent. Return how many seconds that took."""
        began, wanted = time.monotonic(), len(self.accepted if ids is None else ids)

        async def are_sent() -> bool:
            found = await rows(
                self.julia.work.database,
                "SELECT id FROM fila_mensagens WHERE fila = 'telegram_saida' AND status = 'enviada'",
            )
            sent = {str(each["id"]) for each in found}
            return len(sent if ids is None else sent & set(ids)) >= wanted

        await until("all are sent", are_sent, explain=self._state_of_things)
        return time.monotonic() - began

    async def _state_of_things(self) -> str:
        return f"{await self.states()}\n{self.log()[-4000:]}"

    async def storm(self, chance: random.Random, kills: int, behaviour: Mapping[str, Any]) -> None:
        """Kill the worker or the server ``kills`` times. The kills are spread evenly over the messages to be sent."""
        await self.server.behave(**behaviour)
        self.start_worker()
        for n in range(kills):
            wanted = (n + 1) * len(self.accepted) // (kills + 1)
            await until("messages are sent", partial(self._left, wanted))
            await asyncio.sleep(chance.uniform(0, 0.5))
            if chance.random() < 0.3:
                await self.server.kill()
                await self.server.start()
                await self.server.behave(**behaviour)
            else:
                await self.kill_worker()

    async def _left(self, count: int) -> bool:
        return bool((await self.server.shown())["recibos"] >= count)

    def log(self) -> str:
        file = Path(self.plan["folder"]) / "log"
        return file.read_text(errors="replace") if file.exists() else ""


def batched(items: Sequence[T], count: int) -> Iterator[Sequence[T]]:
    return (items[start : start + count] for start in range(0, len(items), count))


def number_of(receipt: Mapping[str, Any]) -> int:
    """Return the unique number in the text of a message queued by a test."""
    return int(receipt["texto"].removeprefix(TEXT).partition(" ")[0])


def p99(seconds: Sequence[float]) -> float:
    return seconds[min(len(seconds) - 1, int(len(seconds) * 0.99))]


@asynccontextmanager
async def telegram_office(
    folder: Path, url: str, *, accounts: int, doctors: int, rate: float = 1.0, blocked: float = 15.0, **settings: Any
) -> AsyncIterator[TelegramOffice]:
    """Start the simulated Telegram with accounts and doctors, but no worker. Kill every process at the end. The clock
    of all processes runs ``rate`` times as fast as the machine's.
    """
    await processes_are_ready()
    folder.mkdir(exist_ok=True)
    clock = FastClock.start(MORNING, rate).text()
    server = Server(free_port(), folder / "journal", clock)
    plan = {"url": url, "folder": str(folder), "port": server.port, "clock": clock, "settings": settings}
    await server.start()
    office = None
    try:
        julia = julia_at(plan)
        async with julia.work:
            office = TelegramOffice(server, julia, {**plan, "blocked": blocked})
            await office.furnish(accounts, doctors)
            yield office
    finally:
        if office is not None:
            await office.stop_worker()
        await server.kill()
        await server.client.aclose()
