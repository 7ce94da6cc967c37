"""Group messages pass through a pipeline whose stages fail, are repeated, or kill their worker. Every row reaches a
final state, and every vacancy exists once.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from datetime import timedelta
from pathlib import Path

from app.contexts.grupos.fila import Estagio
from batuta.kernel.clock import SystemClock
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.waiting import insist
from batuta.testing import FakeClock
from batuta.testing.clock import FastClock
from tests.faults.conftest import one_of
from tests.faults.figures import LONG, Figures, kind
from tests.faults.grupos_plant import unlucky
from tests.faults.processes import ROOT
from tests.faults.tally import Tally
from tests.julia.grupos.bancada import Bancada, bancada, vaga

RATE = 20.0
OVER = ("finalizado", "descartado", "erro")
WAITING = f"SELECT count(*) AS n FROM fila_processamento_grupos WHERE estagio NOT IN {OVER}"
# PostgreSQL counts the deadlocks that it resolved.
DEADLOCKS = "SELECT deadlocks AS n FROM pg_stat_database WHERE datname = current_database()"
STEP = timedelta(minutes=16)


class GroupMessages:
    """The messages posted in the groups, and the vacancies that the pipeline must find in them. ``ids_by_line`` maps a
    vacancy's line to the ids of the messages that mention it.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.ids_by_line: dict[str, set[str]] = defaultdict(set)
        self._texts: list[list[str]] = []

    async def say(self, mesa: Bancada, count: int) -> None:
        for n in range(count):
            id, lines = f"3EB0{n:08d}", self._lines()
            for line in lines:
                self.ids_by_line[line].add(id)
            text = "Plantões:\n" + "\n".join(lines) if lines else f"bom dia a todos, {n}"
            group = f"1203630000{self.chance.randrange(60):08d}@g.us"
            # The gateway repeats a message, possibly through several chips.
            again = 1 + (self.chance.random() < 0.2) + (self.chance.random() < 0.05)
            await asyncio.gather(*(self._deliver(mesa, text, group, id) for _ in range(again)))

    async def _deliver(self, mesa: Bancada, text: str, group: str, id: str) -> None:
        """Deliver a message as the worker does: retry while the database is unavailable or refuses the write."""
        await insist(lambda: mesa.dizem(text, grupo=group, id=id), SystemClock())

    def _lines(self) -> list[str]:
        if self.chance.random() < 0.5:
            return []
        if self._texts and self.chance.random() < 0.3:
            return self.chance.choice(self._texts)
        made = {
            vaga(f"Hospital Inventado {self.chance.randrange(300)}", dia=f"2030-{1 + self.chance.randrange(12):02d}-11")
            for _ in range(1 + self.chance.randrange(3))
        }
        self._texts.append(sorted(made))
        return self._texts[-1]


async def judge(mesa: Bancada, said: GroupMessages) -> Tally:
    """Assert that every row has reached a final state, that every vacancy exists once, and that all messages that
    mention a vacancy are recorded as its sources.
    """
    assert set(await mesa.fila()) <= {"finalizado", "descartado"}
    vacancies = await mesa.rows("SELECT vaga_grupo_id FROM vagas")
    assert len(vacancies) == len(said.ids_by_line)
    sources = await mesa.rows(
        "SELECT fonte.vaga_grupo_id AS id, mensagem.message_id AS message FROM vagas_grupo_fontes AS fonte"
        " JOIN mensagens_grupo AS mensagem ON mensagem.id = fonte.mensagem_id"
    )
    found: dict[str, set[str]] = defaultdict(set)
    for row in sources:
        found[row["id"]].add(row["message"])
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, said.ids_by_line.values()))
    counted = await mesa.rows("SELECT id, qtd_fontes FROM vagas_grupo WHERE status = 'importada'")
    assert {row["id"]: row["qtd_fontes"] for row in counted} == {id: len(messages) for id, messages in found.items()}
    open_messages = await mesa.rows(
        "SELECT id FROM mensagens_grupo WHERE vagas_a_caminho <> 0 OR processado_em IS NULL"
    )
    assert open_messages == []
    rows = (await mesa.one("SELECT count(*) AS n FROM fila_processamento_grupos"))["n"]
    return Tally(items=rows, lost=0, doubled=0, effects=len(vacancies), in_vain=0)


async def revive(mesa: Bancada) -> int:
    dead = await mesa.operacao.mortas(None, 100_000)
    return sum([each async for each in mesa.operacao.reprocessar(dead)])


async def test_every_row_ends_and_every_vaga_exists_once(places: dict[str, Path]) -> None:
    if LONG:
        for url, folder in places.items():
            await _in_processes(url, folder, 10_000, kills=40)
        return
    for url in one_of(places, "sqlite"):
        await _in_one(url, 80)


async def _in_one(url: str, count: int) -> None:
    """Run the groups pipeline in one process, step by step. A lease holder that claims items but never settles them
    plays the part of a dead worker.
    """
    clock, said = FakeClock(), GroupMessages(31)
    async with bancada(url, clock, around=unlucky(random.Random(7))) as mesa:
        await said.say(mesa, count)
        gone = LeaseHolder(owner="gone", lease=timedelta(seconds=30))
        for n in range(60):
            for stage in Estagio:
                if n < 2:
                    await mesa.work.queues[stage].settle_and_claim([], gone, 3)
                await mesa.work.work_once(stage, 1000)
            clock.step(timedelta(seconds=31) if n < 3 else STEP)
            await mesa.work.queues[Estagio.PENDENTE].rescue(1000)
            if (await mesa.one(WAITING))["n"] == 0 and not await revive(mesa):
                break
        await judge(mesa, said)


async def _in_processes(url: str, folder: Path, count: int, *, kills: int) -> None:
    figures = Figures(
        "T31",
        kind(url),
        f"{count} group messages are processed while stages fail, workers are killed {kills} times and webhooks arrive repeatedly",
    )
    clock = FastClock.start(SystemClock().now(), RATE, folder / "steps")
    said, chance, revived = GroupMessages(31), random.Random(5), 0
    async with bancada(url, clock) as mesa:
        workers = [_begin(url, clock, n) for n in range(3)]
        try:
            saying = asyncio.create_task(said.say(mesa, count))
            for n in range(kills):
                await asyncio.sleep(1)
                place = chance.randrange(len(workers))
                _kill(workers[place])
                workers[place] = _begin(url, clock, 100 + n)
            await saying
            ends = time.monotonic() + 900
            while time.monotonic() < ends:
                _replace_dead(workers, url, clock)
                before = (await mesa.one(WAITING))["n"]
                revived += await revive(mesa)
                await asyncio.sleep(1)
                left = (await mesa.one(WAITING))["n"]
                if not before and not left:
                    break
                if left and left == before:
                    clock.step(STEP)
            note = f"vacancies found: {len(said.ids_by_line)}; "
            note += f"rows that were declared dead and then retried by the test: {revived}"
            if kind(url) == "PostgreSQL":
                note += f"; deadlocks: {(await mesa.one(DEADLOCKS))['n']}"
            figures.record_items(await judge(mesa, said), note)
        finally:
            for worker in workers:
                _kill(worker)


def _begin(url: str, clock: FastClock, seed: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.faults.grupos_plant", url, clock.text(), str(seed)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _kill(worker: "subprocess.Popen[bytes]") -> None:
    if worker.poll() is None:
        os.kill(worker.pid, signal.SIGKILL)
    worker.wait()


def _replace_dead(workers: "list[subprocess.Popen[bytes]]", url: str, clock: FastClock) -> None:
    for n, worker in enumerate(workers):
        if worker.poll() is not None:
            workers[n] = _begin(url, clock, 1000 + n)
