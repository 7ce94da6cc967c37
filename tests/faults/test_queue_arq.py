"""Tasks on ARQ while the processes around them stop, start and die. Each task runs once. A single ARQ worker next to
the api is enough to run the tasks.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from app.composition.julia import julia_of
from batuta.engine.batuta import Batuta
from batuta.stores.sql.queries import in_dialect, query_of
from tests.conftest import lack
from tests.faults import arq_plant
from tests.faults.arq_plant import Plan
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.forks import processes, processes_are_ready
from tests.faults.tally import Tally
from tests.faults.waiting import TIMEOUT, slowness, until
from tests.julia.agendamentos.sheets import HEADER, patient, xlsx
from tests.julia.tables import rows
from tests.servers import redis_server

TASKS = 1_000 if LONG else 80
ROUNDS = 5 if LONG else 2
ROLES = {"worker": arq_plant.worker, "arq": arq_plant.arq}


@dataclass
class Office:
    plan: Plan
    work: Batuta  # the engine of the test's own process; it only enqueues and reads
    living: list[ForkServerProcess] = field(default_factory=list)

    def begin(self, role: str) -> ForkServerProcess:
        process = processes().Process(target=ROLES[role], args=(self.plan.encode(),))
        process.start()
        self.living.append(process)
        return process

    async def stop(self, process: ForkServerProcess) -> float:
        """Stop a process with SIGTERM. Return how many seconds it took to exit."""
        assert process.pid is not None
        began = time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        await asyncio.to_thread(process.join, TIMEOUT)
        assert process.exitcode is not None, self.said()
        self.living.remove(process)
        return time.monotonic() - began

    def kill(self, process: ForkServerProcess) -> None:
        process.kill()
        process.join()
        self.living.remove(process)

    async def until(self, what: str, is_so: Callable[[], Awaitable[bool]]) -> None:
        await until(what, is_so, explain=self.said)

    def notes(self, word: str) -> list[str]:
        file = Path(self.plan.folder) / "runs"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split()[1] for line in lines if line.split()[0] == word]

    async def up(self, *started: ForkServerProcess) -> None:
        async def are_up() -> bool:
            return {str(process.pid) for process in started} <= set(self.notes("up"))

        await self.until("they are up", are_up)

    def said(self) -> str:
        log = Path(self.plan.folder) / "log"
        return log.read_text()[-3000:] if log.exists() else ""


@asynccontextmanager
async def office(folder: Path, url: str, arq_claims: int = 2) -> AsyncIterator[Office]:
    await processes_are_ready()
    with redis_server() as redis:
        if redis is None:
            lack("Redis", "install redis-server")
        plan = Plan(url=url, folder=str(folder), redis=redis, arq_claims=arq_claims, slowness=slowness())
        made = Office(plan, arq_plant.office(plan))
        async with made.work:
            try:
                yield made
            finally:
                for process in [*made.living]:
                    made.kill(process)


@pytest.mark.calm
async def test_stops_and_kills_of_workers_and_arq_workers_run_no_task_twice(places: dict[str, Path]) -> None:
    await together(*(_stops(url, folder) for url, folder in places.items()))


async def _stops(url: str, folder: Path) -> None:
    done = (
        f"under load, the worker is stopped {2 * ROUNDS} times and killed {ROUNDS} times,"
        f" and an ARQ worker is stopped {ROUNDS} times"
    )
    figures, chance = Figures("relay", kind(url), done), random.Random(20261116)
    async with office(folder, url) as there:
        worker, first, second = there.begin("worker"), there.begin("arq"), there.begin("arq")
        await there.up(worker, first, second)
        ids = await there.work.enqueue_many("conta", [(chance.uniform(0.02, 1.5),) for _ in range(TASKS)])
        took = [0.0]
        for _ in range(ROUNDS):
            for is_kill in (False, True, False):
                begun = len(there.notes("begun"))

                async def some_begun(begun: int = begun) -> bool:
                    return len(there.notes("begun")) >= min(TASKS, begun + 5)

                await there.until("some have begun", some_begun)
                if is_kill:
                    there.kill(worker)
                else:
                    took.append(await there.stop(worker))
                worker = there.begin("worker")
                await there.up(worker)
            took.append(await there.stop(first))
            first, second = second, there.begin("arq")

        async def all_complete() -> bool:
            (row,) = await rows(there.work.database, "SELECT count(*) AS n FROM tasks WHERE status = 'complete'")
            return bool(row["n"] == TASKS)

        await there.until("all are complete", all_complete)
        runs = Counter(there.notes("begun"))
        tally = Tally(
            items=TASKS,
            lost=sum(id not in runs for id in ids),
            doubled=sum(times > 1 for times in runs.values()),
            effects=len(there.notes("ended")),
            in_vain=runs.total() - len(there.notes("ended")),
        )
        assert (tally.lost, tally.doubled, tally.effects, tally.in_vain) == (0, 0, TASKS, 0), there.said()
        assert max(took) <= there.plan.drain + 3 * there.plan.slowness
        figures.record_items(
            tally, f"the slowest stop took {max(took):.1f} s; `BATUTA_DRAIN_SECONDS` was {there.plan.drain:g}"
        )


async def test_arq_worker_alone_recovers_work_of_dead_processes(places: dict[str, Path]) -> None:
    await together(*(_alone(url, folder) for url, folder in one_of(places, "postgresql").items()))


async def _alone(url: str, folder: Path) -> None:
    lines = 520  # two pieces of the file
    figures = Figures(
        "relay", kind(url), "the API process dies during an import and leaves leased tasks and unparsed appointments"
    )
    async with office(folder, url, arq_claims=80) as there:
        made = julia_of(there.work).appointments
        agendamentos, importacao = made.agendamentos, made.importacao
        await _interrupted(there, importacao, lines)
        there.begin("arq")

        async def is_whole() -> bool:
            counts = await agendamentos.contagem()
            (left,) = await rows(
                there.work.database, "SELECT count(*) AS n FROM importacoes WHERE status = 'em_andamento'"
            )
            return bool(counts.get("completed") == lines and left["n"] == 0)

        await there.until("everything is imported and read", is_whole)
        (found,) = await rows(
            there.work.database, "SELECT count(*) AS n, count(DISTINCT nome_paciente) AS names FROM appointments"
        )
        tally = Tally(items=lines, lost=0, doubled=found["n"] - found["names"], effects=found["n"], in_vain=0)
        assert (found["n"], found["names"]) == (lines, lines)
        figures.record_items(tally, "one ARQ worker parsed all appointments; no Batuta worker was running")


async def _interrupted(there: Office, importacao: object, lines: int) -> None:
    """Create the state that a killed api leaves: half an imported file, tasks leased by a dead process, and an
    appointment without its task.
    """

    class Killed(BaseException):
        """An exception that a test raises to simulate the death of the process."""

    def progress(done: int, at_most: int) -> None:
        raise Killed

    content = xlsx([HEADER, *(patient(n) for n in range(lines))])
    with suppress(Killed):
        await importacao.importar(content, "agenda.xlsx", by="alguém", progress=progress)  # type: ignore[attr-defined]
    ago = there.work.clock.now() - timedelta(hours=1)
    database = there.work.database
    for text in (
        "UPDATE importacoes SET updated_at = :ago",
        "UPDATE tasks SET status = 'in_progress', lease_until = :ago, owner = 'dead', fence = 1, attempts = 1",
        "UPDATE appointments SET updated_at = :ago",
        "DELETE FROM tasks WHERE id IN (SELECT id FROM tasks ORDER BY id LIMIT 5) AND created_at > :ago",
    ):
        await database.run(in_dialect(query_of("plant", text, writes=True), database.dialect), ago=ago)
    (row,) = await rows(database, "SELECT count(*) AS n FROM appointments")
    assert 5 < row["n"] < lines
