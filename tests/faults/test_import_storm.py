"""The api, a worker, an ARQ worker and Redis are killed during an import. Every row is stored once, and every row is
read.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx2
import pytest

from app.composition.julia import julia_of
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import StoreUnavailable
from batuta.testing import FastClock
from tests.conftest import lack
from tests.faults import import_plant
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.forks import processes, processes_are_ready
from tests.faults.import_plant import TOKEN, Plan
from tests.faults.tally import Tally
from tests.faults.waiting import TIMEOUT
from tests.julia.agendamentos.sheets import HEADER, patient, xlsx
from tests.julia.tables import rows
from tests.servers import free_port, redis_server

RATE = 10.0
ROWS = 10_000 if LONG else 600
KILLS = 30
LIVES = {"api": import_plant.api, "worker": import_plant.worker, "arq": import_plant.arq}


@dataclass
class Office:
    plan: Plan
    work: Batuta  # the engine of the test's own process; it only reads
    redis: ExitStack
    living: dict[str, ForkServerProcess] = field(default_factory=dict)
    killed: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)  # number of exits that the test did not cause

    @property
    def roles(self) -> list[str]:
        return ["api", "worker"] if self.plan.redis is None else ["api", "worker", "arq", "redis"]

    def begin(self, role: str) -> None:
        if role == "redis":
            self.redis.enter_context(redis_server(int(str(self.plan.redis).rpartition(":")[2])))
            return
        process = processes().Process(target=LIVES[role], args=(self.plan.encode(),))
        process.start()
        self.living[role] = process

    def kill(self, role: str) -> None:
        """Kill a process without warning and start another one, as a supervisor does."""
        self.killed[role] += 1
        self.end(role)
        self.begin(role)

    def end(self, role: str) -> None:
        if role == "redis":
            self.redis.close()  # SIGKILL, so its data is lost
        elif process := self.living.pop(role, None):
            process.kill()
            process.join()

    async def keep(self) -> None:
        """Restart processes that exit by themselves, such as a plain ARQ worker, which exits when Redis dies."""
        while True:
            for role, process in list(self.living.items()):
                if not process.is_alive():
                    self.ended[role] += 1
                    self.begin(role)
            await asyncio.sleep(0.1)

    async def upload(self, content: bytes) -> int:
        """Send the file until a response confirms that every row is stored. Return how many times the file was sent."""
        address, headers = f"http://127.0.0.1:{self.plan.api}", {"Authorization": f"Bearer {TOKEN}"}
        ends, sent = time.monotonic() + TIMEOUT, 0
        async with httpx2.AsyncClient(base_url=address, headers=headers, timeout=TIMEOUT, trust_env=False) as client:
            while time.monotonic() < ends:
                sent += 1
                try:
                    answer = await client.post("/api/v1/appointments/import", files={"file": ("agenda.xlsx", content)})
                except httpx2.HTTPError:
                    await asyncio.sleep(0.1)
                    continue
                if answer.status_code == 200 and answer.json()["success"]:
                    return sent
                # 409 means that the process that resumes the interrupted import wrote the same rows at the same time.
                assert answer.status_code >= 500 or answer.status_code == 409, answer.text
                await asyncio.sleep(0.1)
        raise AssertionError(f"the file was not accepted: {self.said()}")

    async def until_begun(self) -> None:
        """Wait until the api has received the file but has not responded yet."""
        ends = time.monotonic() + TIMEOUT
        while not await rows(self.work.database, "SELECT id FROM importacoes LIMIT 1"):
            assert time.monotonic() < ends, self.said()
            await asyncio.sleep(0.005)

    async def until_read(self) -> int:
        """Wait until every row is read. Revive rows that died after three kills, as an operator would. Return how many
        were revived.
        """
        agendamentos = julia_of(self.work).appointments.agendamentos
        ends, given_up = time.monotonic() + TIMEOUT, 0
        while time.monotonic() < ends:
            if await self._is_read():
                again = await agendamentos.reprocessar(limit=ROWS, by="ensaio")
                given_up += len(again)
                if not again:
                    return given_up
            await asyncio.sleep(0.1)
        counts = await rows(self.work.database, "SELECT status, count(*) AS n FROM tasks GROUP BY status")
        raise AssertionError(f"not everything is read: {await self._states()} {counts} {self.said()}")

    async def _is_read(self) -> bool:
        try:
            states = await self._states()
            left = await rows(self.work.database, "SELECT id FROM importacoes WHERE status = 'em_andamento'")
        except StoreUnavailable:  # a killed process still holds the lock for a moment
            return False
        return sum(states.values()) >= ROWS and not left and not {"pending", "processing"} & states.keys()

    async def _states(self) -> dict[str, int]:
        found = await rows(
            self.work.database, "SELECT normalization_status AS s, count(*) AS n FROM appointments GROUP BY 1"
        )
        return {row["s"]: row["n"] for row in found}

    def said(self) -> str:
        log = Path(self.plan.folder) / "log"
        return log.read_text()[-3000:] if log.exists() else ""

    async def tally(self) -> Tally:
        found = await rows(
            self.work.database,
            "SELECT nome_paciente, normalization_status AS status, cpf, endereco_normalizado FROM appointments",
        )
        times = Counter(row["nome_paciente"] for row in found)
        is_read = {
            row["nome_paciente"]
            for row in found
            if row["status"] == "completed" and row["cpf"] and row["endereco_normalizado"]
        }
        wanted = {str(patient(n)[0]) for n in range(ROWS)}
        return Tally(
            items=ROWS,
            lost=len(wanted - is_read),
            doubled=sum(times.values()) - len(times),
            effects=len(found),
            in_vain=0,
        )


@asynccontextmanager
async def office(folder: Path, url: str, *, with_arq: bool) -> AsyncIterator[Office]:
    await processes_are_ready()
    clock = FastClock.start(datetime(2026, 3, 11, 13, 0, tzinfo=UTC), RATE)
    redis = f"redis://127.0.0.1:{free_port()}" if with_arq else None
    plan = Plan(url=url, folder=str(folder), clock=clock.text(), api=free_port(), redis=redis)
    with ExitStack() as servers:
        made = Office(plan, import_plant.office(plan), servers)
        async with made.work:
            try:
                for role in reversed(made.roles):
                    made.begin(role)
                keeping = asyncio.create_task(made.keep())
                try:
                    yield made
                finally:
                    keeping.cancel()
                    await asyncio.gather(keeping, return_exceptions=True)
            finally:
                for role in made.living.copy():
                    made.end(role)


async def storm(there: Office, chance: random.Random) -> None:
    """Kill processes during the import. The short form of the test kills each role once. The last process to be killed
    is Redis or, without ARQ, the worker. Killing Redis removes the locks of killed ARQ workers, so the test need not
    wait until they expire.
    """
    await there.until_begun()
    if not LONG:
        for role in there.roles:
            await asyncio.sleep(chance.uniform(0.0, 0.3) if there.killed else 0)
            there.kill(role)
        return
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(0.3, 2.5))
        there.kill(chance.choice(there.roles))
    there.kill(there.roles[-1])


@pytest.mark.parametrize("backend", ["sql", "arq"])
async def test_kills_during_an_import_neither_lose_nor_double_a_row(places: dict[str, Path], backend: str) -> None:
    with redis_server() as there:
        if backend == "arq" and there is None:
            lack("Redis", "install redis-server")
    chosen = one_of(places, "sqlite" if backend == "sql" else "postgresql")
    await together(*(_import(url, folder, backend) for url, folder in chosen.items()))


async def _import(url: str, folder: Path, backend: str) -> None:
    roles = "API, worker, ARQ and Redis" if backend == "arq" else "API and worker"
    done = f"{roles} are killed repeatedly during an import of {ROWS} rows"
    figures, chance = Figures("S4", kind(url), done), random.Random(20260311)
    content = xlsx([HEADER, *(patient(n) for n in range(ROWS))])
    async with office(folder, url, with_arq=backend == "arq") as there:
        uploading = asyncio.create_task(there.upload(content))
        await storm(there, chance)
        sent = await uploading
        given_up = await there.until_read()
        found = await there.tally()
        assert (found.lost, found.doubled, found.effects) == (0, 0, ROWS), f"{found} {there.said()}"
        kills = ", ".join(f"{role} {times}" for role, times in there.killed.items())
        ended = ", ".join(f"{role} {times}" for role, times in there.ended.items())
        kills += f"; other process exits: {ended or 'none'}"
        figures.record_items(
            found,
            f"kills: {kills}; uploads of the file: {sent}; appointments abandoned and parsed again later: {given_up}",
        )
