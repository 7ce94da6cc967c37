"""Workers that send messages to the simulated WhatsApp, and are killed and restarted. They are judged by the
simulator's record of the messages that were sent.
"""

import asyncio
import random
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, TypeAlias

import httpx2

from app.composition.julia import julia_of
from app.contexts.comum.telefone import Address
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.webhooks.api import Recebida
from batuta.engine.batuta import Batuta
from batuta.queue.item import NewItem
from batuta.testing import FastClock
from scripts import ensaio
from scripts.ensaio import Plano
from tests.faults.figures import LONG
from tests.faults.forks import processes, processes_are_ready
from tests.faults.tally import Tally
from tests.faults.waiting import TIMEOUT, slowness, until
from tests.judges.messages import Accepted, Delivery, End, MessageViolation, SendRules, judge_messages
from tests.julia.filled import fill
from tests.julia.tables import add_chip, rows, write
from tests.servers import free_port

# A Wednesday, ten o'clock in São Paulo.
MORNING = datetime(2026, 3, 11, 13, 0, tzinfo=UTC)
# Pause between two steps of the clock, so that due work can begin.
PAUSE = 1.0 if LONG else 0.4
CAMPAIGN = 77
# The main function of a process; its argument is the encoded plan.
Life: TypeAlias = Callable[[Mapping[str, Any]], None]
_NAMED = re.compile(r"\[([0-9a-f-]{36})\]")
_ENDS = {
    "enviada": End.DELIVERED,
    "erro": End.FAILED,
    "bloqueada": End.FAILED,
    "cancelada": End.CANCELLED,
}
ABLE = (
    "UPDATE chips SET trust_score = 90, pode_prospectar = TRUE, pode_followup = TRUE, pode_responder = TRUE,"
    " limite_hora = 1000000, limite_dia = 1000000, delay_minimo_segundos = 0 WHERE tipo = 'julia'"
)


@dataclass
class SendingWorkers:
    plan: Plano
    work: Batuta  # the engine of the test's own process; it only enqueues and queries
    clock: FastClock
    client: httpx2.AsyncClient
    doctors: list[tuple[str, str]] = field(default_factory=list)  # id and phone number of each doctor
    accepted: list[Accepted] = field(default_factory=list)
    living: list[ForkServerProcess] = field(default_factory=list)
    left: list[dict[str, Any]] = field(default_factory=list)  # receipts read so far
    killed: int = 0

    def begin(self, life: Life = ensaio.work, **other: Any) -> ForkServerProcess:
        process = processes().Process(target=life, args=(replace(self.plan, **other).encode(),))
        process.start()
        self.living.append(process)
        return process

    async def begin_until_up(self, count: int = 1, life: Life = ensaio.work) -> list[ForkServerProcess]:
        begun = [self.begin(life) for _ in range(count)]
        pids = {str(each.pid) for each in begun}
        await self.until("they are up", lambda: pids <= {pid for word, pid, *_ in self.notes() if word == "up"})
        return begun

    def kill(self, process: ForkServerProcess) -> None:
        process.kill()
        process.join()
        self.living.remove(process)
        self.killed += 1

    async def stop(self, *some: ForkServerProcess) -> None:
        for process in some:
            assert process.pid is not None
            process.terminate()
        for process in some:
            await asyncio.to_thread(process.join, TIMEOUT)
            assert process.exitcode in (0, -signal.SIGTERM), self.log()
            self.living.remove(process)

    @asynccontextmanager
    async def storm(
        self, count: int, chance: random.Random, pause: tuple[float, float], life: Life = ensaio.work
    ) -> AsyncIterator[None]:
        """Run ``count`` processes. Repeatedly kill a random one with SIGKILL and replace it. On a busy machine the
        intervals are longer, because a process that dies before it can send proves nothing.
        """
        slow = slowness()
        workers = await self.begin_until_up(count, life)

        async def kill_some() -> None:
            while True:
                await asyncio.sleep(slow * chance.uniform(*pause))
                doomed = chance.choice(workers)
                workers.remove(doomed)
                self.kill(doomed)
                workers.extend(await self.begin_until_up(1, life))

        killing = asyncio.create_task(kill_some())
        try:
            yield
        finally:
            killing.cancel()
            (ending,) = await asyncio.gather(killing, return_exceptions=True)
        assert isinstance(ending, asyncio.CancelledError), ending

    async def put(self, count: int, tipo: str = "followup", **values: Any) -> list[str]:
        """Enqueue one message to each of the next ``count`` doctors in turn. The text of each message contains its
        id.
        """
        now, first = self.clock.now(), len(self.accepted)
        whom = [self.doctors[(first + n) % len(self.doctors)] for n in range(count)]
        ids = [self.work.ids.new() for _ in whom]
        items = [
            NewItem(
                values={
                    "id": id,
                    "cliente_id": doctor,
                    "telefone_destino": phone,
                    "conteudo": f"[SIMULADO] [{id}] Bom dia",
                    "tipo": tipo,
                    "devida_em": now,
                    **values,
                }
            )
            for id, (doctor, phone) in zip(ids, whom, strict=True)
        ]
        assert await self.work.queues[FILA_MENSAGENS.name].put(items) == ids
        self.accepted += [Accepted(id, phone, now) for id, (_, phone) in zip(ids, whom, strict=True)]
        return ids

    async def receive(self, phone: str, texto: str, message_id: str) -> None:
        """Record an inbound message from a doctor, as the worker does when the gateway delivers one."""
        now = self.clock.now()
        fato = Recebida(
            message_id=message_id, instance="julia-sim", de=Address(f"{phone}@s.whatsapp.net", phone), nome=None,
            texto=texto, midia=None, em=now,
        )  # fmt: skip
        async with self.work.database.transaction() as transaction:
            await julia_of(self.work).messages.conversas.recebida(transaction, fato, now=now)

    def go_to(self, at: datetime) -> None:
        assert at > self.clock.now()
        self.clock.step(at - self.clock.now())

    async def behave(self, **behaviour: Any) -> None:
        answer = await self.client.patch("/controle/evolution/", json=behaviour)
        assert answer.status_code == 200, answer.text

    async def instance(self, name: str, **words: Any) -> None:
        answer = await self.client.post(f"/controle/evolution/instancias/{name}", json=words)
        assert answer.status_code == 200, answer.text

    async def receipts(self) -> list[dict[str, Any]]:
        """Return all messages that were actually sent. Each call reads only the new receipts from the simulator."""
        while page := (await self.client.get(f"/controle/evolution/recibos?depois={len(self.left)}")).json():
            self.left += page
        return list(self.left)

    async def refusals(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.client.get("/controle/evolution/recusas")).json()
        return found

    async def deliveries(self) -> list[Delivery]:
        """Return the messages that were sent. If a message's text contains no id, its recipient identifies it, because
        a campaign sends one message to each recipient.
        """
        known = {each.recipient: each.id for each in self.accepted}
        return [delivery(each, known) for each in await self.receipts()]

    async def rows(self) -> dict[str, dict[str, Any]]:
        found = await rows(self.work.database, "SELECT * FROM fila_mensagens")
        return {row["id"]: row for row in found}

    async def ends(self) -> dict[str, End]:
        return {id: end_of(row) for id, row in (await self.rows()).items()}

    async def until_over(self, within: float = TIMEOUT, by: timedelta = timedelta(minutes=3)) -> None:
        """Wait until every message has reached a final state."""

        async def is_over() -> bool:
            return End.OPEN not in (await self.ends()).values()

        await self.hurry("every message has an end", is_over, by, within)

    async def hurry(
        self, what: str, true: Callable[[], Any], by: timedelta, within: float = TIMEOUT, every: float = PAUSE
    ) -> None:
        """Wait until ``true`` returns a true value. Every ``every`` seconds, step the clock forward by ``by`` if no
        worker is processing a message, because messages may be waiting for proof of delivery or for a retry.
        """
        stepped = time.monotonic()

        async def is_true() -> bool:
            nonlocal stepped
            if await true():
                return True
            if time.monotonic() - stepped > every:
                stepped = time.monotonic()
                if not any(row["lease_until"] for row in (await self.rows()).values()):
                    self.clock.step(by)
            return False

        await self.until(what, is_true, within)

    async def judge(self, **rules: Any) -> list[Delivery]:
        """Check the messages against the simulator's receipts, using rules M1 to M6 in tests/judges/messages.py."""
        left = await self.deliveries()
        rules = {"read_at": self.clock.now(), "within": timedelta(0), **rules}
        wrong = judge_messages(self.accepted, left, await self.ends(), SendRules(**rules))
        assert not wrong, self._explained(wrong, await self.rows())
        return left

    def _explained(self, wrong: Sequence[MessageViolation], known: Mapping[str, Any]) -> str:
        lines = [f"{each}\n    {known.get(each.id)}" for each in wrong[:10]]
        return f"{len(wrong)} wrong\n" + "\n".join(lines) + f"\n{self.plan.folder}"

    async def until(self, what: str, true: Callable[[], Any], within: float = TIMEOUT) -> Any:
        return await until(what, true, within, self._state_of_things)

    async def _state_of_things(self) -> str:
        counts = Counter((row["status"], row["envio_estado"], row["erro"]) for row in (await self.rows()).values())
        return f"{counts}\n{self.log()}"

    async def until_left(self, count: int, within: float = TIMEOUT, by: timedelta | None = None) -> None:
        """Wait until ``count`` messages have been sent. With ``by``, step the clock forward as ``hurry`` does, because
        all chips may be resting.
        """

        async def have_left() -> bool:
            return len(await self.receipts()) >= count

        what = f"{count} have left"
        await (self.until(what, have_left, within) if by is None else self.hurry(what, have_left, by, within))

    async def passes(self, span: timedelta) -> None:
        await self.clock.sleep(span.total_seconds())

    def notes(self) -> list[list[str]]:
        file = Path(self.plan.folder) / "notes"
        return [line.split(maxsplit=1) for line in file.read_text().splitlines()] if file.exists() else []

    def log(self) -> str:
        log = Path(self.plan.folder) / "log"
        return log.read_text()[-3000:] if log.exists() else ""

    async def campaign(self, tipo: str = "oferta") -> int:
        await write(
            self.work.database,
            "INSERT INTO campanhas (id, nome_template, tipo_campanha, status, enfileirada_em, created_at, updated_at)"
            " VALUES (:id, 'teste', :tipo, 'ativa', :now, :now, :now)",
            id=CAMPAIGN,
            tipo=tipo,
            now=self.clock.now(),
        )
        return CAMPAIGN


async def revive(office: SendingWorkers, within: float = TIMEOUT) -> int:
    """Revive messages that died after three worker crashes and were certainly not sent, as an operator would. Return
    how many were revived.
    """
    await office.until_over(within)
    dead = [row for row in (await office.rows()).values() if row["status"] == "erro"]
    for row in dead:
        assert row["erro"] in ("its worker died 3 times while running it", "the message never reached the gateway"), row
        assert await office.work.queues[FILA_MENSAGENS.name].revive(row["id"])
    await office.until_over(within)
    return len(dead)


async def tally(office: SendingWorkers, left: Sequence[Delivery]) -> Tally:
    """Count the results of all accepted messages. A parked message is waiting for an operator and does not count as
    lost.
    """
    times, ends = Counter(each.id for each in left), await office.ends()
    unsent = [each for each in office.accepted if not times[each.id] and ends[each.id] is not End.PARKED]
    return Tally(
        items=len(office.accepted),
        lost=len(unsent),
        doubled=sum(count > 1 for count in times.values()),
        effects=len(left),
        in_vain=0,
    )


def delivery(receipt: Mapping[str, Any], known: Mapping[str, str]) -> Delivery:
    named, number = _NAMED.search(receipt["text"]), receipt["number"]
    id = named[1] if named else known.get(number, receipt["text"])
    return Delivery(id, number, datetime.fromisoformat(receipt["at"]))


def end_of(row: Mapping[str, Any]) -> End:
    match row["envio_estado"]:
        case "parked":
            return End.PARKED
        case None:
            return _ENDS.get(row["status"], End.OPEN)
        case _:
            return End.OPEN


@asynccontextmanager
async def sending_workers(
    folder: Path,
    url: str,
    *,
    doctors: int,
    rate: float = 1.0,
    origin: datetime = MORNING,
    hears: bool = False,
    **options: Any,
) -> AsyncIterator[SendingWorkers]:
    """Start the simulated WhatsApp but no worker. With ``hears``, start the api too. Kill every remaining process at
    the end.

    Whatever the clock's rate, two real seconds may pass between the decision to send a message and the call to the
    gateway. On a busy machine the short form of the fault tests uses a slower clock.
    """
    if not LONG:
        rate = max(min(rate, 1.0), rate / max(1.0, slowness() / 2))
    await processes_are_ready()
    clock = FastClock.start(origin, rate, folder / "steps")
    plan = Plano(
        url=url,
        folder=str(folder),
        clock=clock.text(),
        simulador=free_port(),
        api=free_port() if hears else 0,
        **{"call_within": 2 * rate, **options},
    )
    async with ensaio.office(plan) as work, httpx2.AsyncClient(base_url=plan.outside, trust_env=False) as client:
        made = SendingWorkers(plan, work, clock, client)
        try:
            made.begin(ensaio.simulate)
            if hears:
                made.begin(ensaio.answer)
            await fill(work.database, doctors, now=clock.now())
            for name in plan.instances:
                await add_chip(work.database, name)
            await write(work.database, ABLE)
            known = await rows(work.database, "SELECT id, telefone FROM clientes ORDER BY telefone")
            made.doctors = [(row["id"], row["telefone"]) for row in known]
            await made.until("the gateway answers", lambda: _answers(client, "/health"))
            if hears:
                await made.until("the api answers", lambda: _answers(client, f"http://127.0.0.1:{plan.api}/health"))
            yield made
        finally:
            for process in made.living:
                process.kill()
                process.join()


async def _answers(client: httpx2.AsyncClient, path: str) -> bool:
    try:
        return (await client.get(path)).status_code == 200
    except httpx2.HTTPError:
        return False
