"""Rolling deploys with real schedulers. Only the newest timetable fires, and every run stays with its owner while a
database row is locked.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from batuta.kernel.clock import SystemClock
from batuta.stores import connect
from batuta.stores.sql.queries import in_dialect, query_of
from tests.faults import forks
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.harness import MINUTE, MOMENT, ORIGIN, SECOND, Plant, Spec, expected, plant
from tests.faults.simulated import HOUR
from tests.judges.evidence import Rules
from tests.judges.scheduler import judge

RESTARTS = 10 if LONG else 1
KEPT = Spec(name="kept", catch_up="all", max_age=3600)
MOVED = Spec(name="moved", schedule="*/2 * * * *", catch_up="all", max_age=3600)
OLD = [KEPT, MOVED]
NEW = [KEPT, replace(MOVED, schedule="*/3 * * * *"), replace(KEPT, name="added")]
RUNNING = "SELECT id, owner FROM job_executions WHERE status = 'running'"


@pytest.mark.calm
async def test_old_version_restarted_during_a_deploy_fires_nothing(places: Mapping[str, Path]) -> None:
    await together(*(_deployed(url, folder) for url, folder in places.items()))


async def _deployed(url: str, folder: Path) -> None:
    done = f"a new version of the program runs next to the old version, which is killed and restarted {RESTARTS} times"
    figures = Figures("T20", kind(url), done)
    async with plant(folder, url, OLD, rate=30.0, lease=90, drain=600) as running:
        await running.begin_first()
        before = running.since["moved"]
        running.jobs = NEW
        running.begin()
        await running.until("the new version is active", running.answers_for_all)
        for n in range(1, RESTARTS + 1):
            running.kill(running.schedulers[0])
            _begin_old(running)
            await running.until("the old version stands by", partial(_stand_by, folder, n))
            await running.passes(2 * MINUTE)
        schedules = await running.ask("SELECT job_name, schedule FROM job_schedules WHERE active")
        await _judge(running, before, figures)
        assert {row["schedule"] for row in schedules if row["job_name"] == "moved"} == {"*/3 * * * *"}


def _begin_old(running: Plant) -> None:
    running.jobs = OLD
    running.begin()
    running.schedulers.insert(0, running.schedulers.pop())
    running.jobs = NEW


def _stand_by(folder: Path, count: int) -> bool:
    return (folder / "log").read_text().count('"scheduler stands by') >= count


async def _judge(running: Plant, before: datetime, figures: Figures) -> None:
    """Check the fires. Until the new version became active, the job ``moved`` fired on its old schedule."""
    deployed_at, end = running.since["moved"], running.clock.now()
    early = [replace(target, must_run=False) for target in expected(MOVED, before, deployed_at, ())]
    await running.until("every fire has its end", lambda: running.are_settled(running.targets(end)))
    await running.stop()
    await running.reconnect()
    rules = Rules(read_at=end + HOUR, epsilon=HOUR / 2, longest_run=10 * SECOND)
    log = await running.log()
    verdict = judge([*early, *running.targets(end)], running.receipts(), log, rules)
    late = {row.id for row in log if row.scheduled_for is not None and row.scheduled_for > end + MOMENT}
    found = [each for each in verdict.violations if not any(id in each.what for id in late)]
    assert found == [], verdict
    figures.record(verdict, "after the deploy, only the new schedules fired")


async def test_row_locked_for_longer_than_the_lease_costs_no_run_its_owner(
    places: Mapping[str, Path],
) -> None:
    await together(*(_locked(url, folder) for url, folder in places.items() if not url.startswith("sqlite")))


async def _locked(url: str, folder: Path) -> None:
    """Lock a row during a deploy. In real time, the lease is 6 s in the long form of the test (``FAULTS=long``), and 2
    s in the short form unless the machine is busy.
    """
    rate, lease = (1.0, 6.0) if LONG else (10.0, 20.0)
    locked = 1.5 * lease
    figures = Figures(
        "T21",
        kind(url),
        f"another program locks one row of `job_executions` for {locked:g} s; a lease lasts {lease:g} s",
    )
    jobs = [Spec(name=f"slow_{n}", category=f"lane_{n}", takes=2 * lease) for n in range(3)]
    origin = ORIGIN if not LONG else ORIGIN + 15 * SECOND
    async with plant(folder, url, jobs, rate=rate, lease=lease, drain=600, origin=origin) as running:
        await running.begin_first()
        await running.begin_more(1)

        async def all_run() -> bool:
            return len(await running.ask(RUNNING)) == len(jobs)

        await running.until("all run", all_run)
        rows = await running.ask(RUNNING)
        session = connect(url, SystemClock())
        await session.open()
        text = f"SELECT id FROM job_executions WHERE id = '{rows[0]['id']}' FOR UPDATE"
        async with session.transaction() as transaction:
            await transaction.all(in_dialect(query_of("lock", text, writes=True), "postgres"))
            await running.passes(locked * SECOND)
        await session.close()
        chosen = ", ".join(f"'{row['id']}'" for row in rows)
        ended = f"SELECT status, attempt, reason FROM job_executions WHERE id IN ({chosen})"

        async def all_ended() -> bool:
            return all(row["status"] != "running" for row in await running.ask(ended))

        await running.until("all ended", all_ended)
        endings = await running.ask(ended)
        assert [(row["status"], row["attempt"]) for row in endings] == [("success", 1)] * len(jobs), endings
        figures.record_bare(len(jobs), "no run was taken over or abandoned")
        for each in running.schedulers:
            forks.stop(each)
