"""A process that plays doctors who request vacancies. It dies at random: while it holds the lock, before the commit, or
after it.

Each answer is a line in a file, synced to disk before the next step, so that a restarted process plays only the doctors
who have no answer yet.
"""

import asyncio
import os
import random
import signal
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from app.main import build
from app.settings import Settings
from tests.faults.forks import log_into, processes
from tests.julia.tables import rows

DIES = 0.03


def begin(url: str, folder: Path, share: int, of: int, seed: int) -> ForkServerProcess:
    process = processes().Process(target=_run, args=(url, folder, share, of, seed))
    process.start()
    return process


def _run(url: str, folder: Path, share: int, of: int, seed: int) -> None:
    log_into(str(folder))
    asyncio.run(_reserve(url, folder, share, of, seed))


class Chance:
    def __init__(self, seed: int) -> None:
        self._lots = random.Random(seed)

    def die_perhaps(self) -> None:
        if self._lots.random() < DIES:
            os.kill(os.getpid(), signal.SIGKILL)


def read_answers(file: Path) -> list[list[str]]:
    """Return the vacancy, the doctor and the answer from each complete line."""
    return [line.split() for line in file.read_text().splitlines() if line.count(" ") == 2] if file.exists() else []


async def _reserve(url: str, folder: Path, share: int, of: int, seed: int) -> None:
    chance, file = Chance(seed), folder / f"answers-{share}"
    julia = build(Settings(database_url=url, optout_journal=str(folder / "optouts")))
    async with julia.work:
        plantoes = julia.shifts.plantoes
        _die_inside(plantoes, chance)
        answered = {(vacancy, doctor) for vacancy, doctor, _ in read_answers(file)}
        doctors = [row["id"] for row in await rows(julia.work.database, "SELECT id FROM clientes ORDER BY id")]
        mine = doctors[share::of]

        async def want(vacancy: str, doctor: str) -> None:
            answer = await plantoes.reservar(vacancy, doctor, por=f"process-{share}")
            chance.die_perhaps()
            _keep(file, f"{vacancy} {doctor} {type(answer).__name__}\n")

        for row in await rows(julia.work.database, "SELECT id FROM vagas ORDER BY id"):
            left = [doctor for doctor in mine if (row["id"], doctor) not in answered]
            await asyncio.gather(*(want(row["id"], doctor) for doctor in left))


def _die_inside(plantoes: Any, chance: Chance) -> None:
    """Make the process die at random: while it holds the lock on a vacancy, or after it has changed the vacancy but
    before the commit.
    """
    transitions = plantoes._transicoes
    hold, change = transitions.travar, transitions.mudar

    async def travar(*values: Any) -> Any:
        row = await hold(*values)
        chance.die_perhaps()
        return row

    async def mudar(*values: Any, **more: Any) -> Any:
        made = await change(*values, **more)
        chance.die_perhaps()
        return made

    transitions.travar, transitions.mudar = travar, mudar


def _keep(file: Path, line: str) -> None:
    with file.open("a") as book:
        book.write(line)
        book.flush()
        os.fsync(book.fileno())
