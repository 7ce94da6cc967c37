"""Fifty doctors request one vacancy at once, while the processes that serve them are killed and restarted. One doctor
gets it, and 49 learn that it is taken.
"""

import asyncio
import itertools
import time
from collections import defaultdict
from datetime import timedelta
from pathlib import Path

from app.contexts.leitura_grupos.api import Periodo
from app.contexts.plantoes.model import NovaVaga
from app.main import build
from app.settings import Settings
from batuta.kernel.clock import SystemClock
from batuta.stores.sql.database import Database
from tests.faults.conftest import one_of
from tests.faults.figures import LONG, Figures, kind
from tests.faults.forks import kill, processes_are_ready
from tests.faults.tally import Tally
from tests.faults.vacancy_plant import begin, read_answers
from tests.julia.tables import add_doctor, rows

DOCTORS, PROCESSES = 50, 4
WITHIN = 1800.0


async def test_one_doctor_gets_the_vacancy_and_the_others_learn_that_it_is_taken(places: dict[str, Path]) -> None:
    vacancies = 40 if LONG else 2
    for url, folder in one_of(places, "postgres").items():
        what = f"{DOCTORS} doctors request each of {vacancies} vacancies; processes are killed shortly before and after commits"
        figures = Figures("T45", kind(url), what)
        settings = Settings(database_url=url, optout_journal=str(folder / "optouts"))
        async with (julia := build(settings)).work as work:
            day = (SystemClock().now() + timedelta(days=3)).date()
            for n in range(vacancies):
                nova = NovaVaga(
                    hospital=f"Hospital Inventado {n}", especialidade="Pediatria", data=day, periodo=Periodo.NOTURNO,
                    novo_hospital=True,
                )  # fmt: skip
                await julia.shifts.plantoes.criar(nova, por="gestora")
            for n in range(DOCTORS):
                await add_doctor(work.database, f"55119{10_000_000 + n}")
            kills = await _until_all_answered(url, folder, vacancies * DOCTORS)
            figures.record_items(await _judge(work.database, folder), f"kills: {kills}")


async def _until_all_answered(url: str, folder: Path, wanted: int) -> int:
    """Start each process again when it dies, until every doctor has an answer. Return the number of kills."""
    await processes_are_ready()
    seeds, kills, ends = itertools.count(45), 0, time.monotonic() + WITHIN
    running = {share: begin(url, folder, share, PROCESSES, next(seeds)) for share in range(PROCESSES)}
    try:
        while len(_answers(folder)) < wanted:
            assert time.monotonic() < ends, f"{len(_answers(folder))} of {wanted} answers"
            for share, process in running.items():
                if (code := process.exitcode) is not None and code != 0:
                    assert code == -9, (folder / "log").read_text()
                    kills += 1
                    running[share] = begin(url, folder, share, PROCESSES, next(seeds))
            await asyncio.sleep(0.1)
    finally:
        for process in running.values():
            kill(process)
    return kills


async def _judge(database: Database, folder: Path) -> Tally:
    """Check that the answers, the vacancy's state, its history and the events all name the same doctor."""
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for vacancy, doctor, answer in _answers(folder):
        assert doctor not in answers[vacancy]
        answers[vacancy][doctor] = answer
    doubled = 0
    for row in await rows(database, "SELECT id, status, cliente_id FROM vagas"):
        heard = answers[row["id"]]
        winners = [doctor for doctor, answer in heard.items() if answer in ("Feita", "Repetida")]
        doubled += len(winners) - 1
        assert winners == [row["cliente_id"]]
        assert row["status"] == "reservada"
        assert sum(answer == "Ocupada" for answer in heard.values()) == DOCTORS - 1
        history = await rows(
            database,
            "SELECT ordem, de, para, cliente_id FROM vagas_historico WHERE vaga_id = :id ORDER BY ordem",
            id=row["id"],
        )
        assert [tuple(line.values()) for line in history] == [
            (1, None, "aberta", None),
            (2, "aberta", "reservada", winners[0]),
        ]
        events = await rows(
            database,
            "SELECT cliente_id FROM business_events WHERE vaga_id = :id AND event_type = 'vaga_reservada'",
            id=row["id"],
        )
        assert [event["cliente_id"] for event in events] == winners
    total = sum(map(len, answers.values()))
    return Tally(items=total, lost=0, doubled=doubled, effects=len(answers), in_vain=0)


def _answers(folder: Path) -> list[list[str]]:
    return [line for share in range(PROCESSES) for line in read_answers(folder / f"answers-{share}")]
