"""Several schedulers on one database. Each fire happens once, whichever schedulers are alive."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from batuta import Batuta
from batuta.testing import FakeClock
from batuta.testing.clock import START
from tests.engine.dispatch.scheduling import House
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.harness import MINUTE, SECOND, Plant, Spec, expected, plant
from tests.faults.plant import noted
from tests.faults.simulated import HOUR, RecordingEndpoint, as_registry, decide, declared, fires_of, judged, look
from tests.judges.evidence import Receipt, Rules
from tests.judges.scheduler import judge

CRONS = ["* * * * *", "*/2 * * * *", "1-59/2 * * * *", "*/5 * * * *", "0-30 * * * *", "* 12-13 * * 1"]
# Cron expressions with one fire a day. However late a fire is on a slow machine, the job's next fire is not due yet.
ONCE_A_DAY = [f"{minute} 12 * * *" for minute in range(16)]
# A fire of this schedule that is older than a minute is missed. The oracle then requires a row with the reason.
ROW = Spec(name="each_minute", schedule="* * * * *", catch_up="skip")
LAST = "SELECT owner FROM job_executions WHERE owner IS NOT NULL ORDER BY started_at DESC, id DESC LIMIT 1"


def many(count: int, takes: float = 0.0, crons: Sequence[str] = CRONS) -> list[Spec]:
    """Return jobs in several categories, because jobs in the same category share a limit on concurrent runs."""
    return [
        Spec(name=f"job_{n}", schedule=crons[n % len(crons)], category=f"lane_{n % 12}", takes=takes * (n % 3))
        for n in range(count)
    ]


async def test_three_schedulers_at_the_same_instant_fire_everything_once(
    house: House, clock: FakeClock, database_url: str
) -> None:
    count, minutes = (200, 120) if LONG else (40, 30)
    figures = Figures(
        "T10", kind(database_url), f"for {minutes} min, three schedulers with {count} jobs tick at the same instants"
    )
    endpoint = RecordingEndpoint(clock)
    jobs = [declared(endpoint, each.name, each.schedule, category=each.category) for each in many(count)]
    schedulers = [house.scheduler(registry=as_registry(jobs)) for _ in range(3)]
    for each in schedulers:
        await look(each, clock, START)
    for minute in range(1, minutes + 1):
        clock.step(START + minute * MINUTE - clock.now())
        await asyncio.gather(*(decide(each) for each in schedulers))
        await asyncio.gather(*(each.runner.finish() for each in schedulers))
    targets = fires_of(jobs, START, clock.now())
    verdict = await judged(house, endpoint, targets, Rules(read_at=clock.now() + MINUTE, epsilon=SECOND))
    figures.record(verdict, "each fire was recorded once")


async def test_repeated_kills_of_the_last_firing_scheduler_lose_and_double_nothing(
    places: Mapping[str, Path],
) -> None:
    await together(*(_kill_loop(url, folder) for url, folder in places.items()))


async def _kill_loop(url: str, folder: Path) -> None:
    rate, kills, lease, epsilon = (3.0, 12, 6, 10 * SECOND) if LONG else (40.0, 2, 24, HOUR)
    jobs = many(24, takes=2) if LONG else many(48, 2, ONCE_A_DAY)
    figures = Figures("T11", kind(url), f"{kills} times, the scheduler that fired last is killed")
    chance = random.Random(20260105)
    async with plant(folder, url, jobs, rate=rate, lease=lease, drain=600) as running:
        await running.begin_first()
        await running.begin_more(2)
        for _ in range(kills):
            await _near_the_next_minute(running, chance)
            await _kill_the_one_that_fired_last(running)
            running.begin()
        await running.passes(MINUTE)
        verdict = await running.verdict(epsilon, longest_run=4 * SECOND)
        (taken,) = await running.ask("SELECT count(*) AS runs FROM job_executions WHERE attempt > 1")
        taken_over = f"runs taken over: {taken['runs']}; repeated requests, none of which caused a second run: {running.repeats()}"
        figures.record(verdict, f"{taken_over}; {running.lateness(await running.log())}")


async def test_kills_lose_and_double_no_fire_of_a_schedule_in_the_database(places: Mapping[str, Path]) -> None:
    await together(*(_kill_schedulers_of_a_row(url, folder) for url, folder in places.items()))


async def _kill_schedulers_of_a_row(url: str, folder: Path) -> None:
    figures = Figures("T11", kind(url), "2 times, a scheduler that fires a schedule of the database is killed")
    async with plant(folder, url, many(1), rate=40.0, lease=24, drain=600) as running:
        await running.begin_first()
        async with Batuta(url, timezone="UTC", clock=running.clock, migrate=False) as work:
            work.task(name="noted")(noted)
            made = await work.schedules.create(
                ROW.name, task="noted", cron=ROW.schedule, overlap="allow", catch_up="all"
            )
        await running.begin_more(2)
        for _ in range(2):
            await running.passes(2 * MINUTE)
            running.kill(running.schedulers[0])
        await running.passes(2 * MINUTE)
        end = running.clock.now()
        targets = list(expected(ROW, made.decided_until, end, ()))
        await running.until("every fire has its row", lambda: running.are_settled(targets))
        await running.stop()
        await running.reconnect()
        fires = list(expected(ROW, made.decided_until, running.clock.now(), ()))
        log = [row for row in await running.log() if row.job == ROW.name]
        verdict = judge(fires, await _tasks_of_the_row(running), log, Rules(read_at=end + HOUR + MINUTE, epsilon=HOUR))
    assert len(targets) >= 4
    assert verdict.ok, f"{verdict}\n{folder}"
    figures.record(verdict, "each fire enqueued its task once")


async def _tasks_of_the_row(running: Plant) -> list[Receipt]:
    """Return a receipt for each stored task, keyed by the id of the execution that enqueued the task. If a task has no
    execution, its own id is the key, which the judge reports as unknown.
    """
    rows = await running.ask(f"SELECT id, scheduled_for, result FROM job_executions WHERE job_name = '{ROW.name}'")
    fired = {row["result"]["task"]: row for row in rows if row["result"] and "task" in row["result"]}
    tasks = await running.ask("SELECT id, created_at FROM tasks WHERE name = 'noted'")
    return [
        Receipt(
            job=ROW.name,
            key=str(fired.get(str(task["id"]), task)["id"]),
            scheduled_for=fired.get(str(task["id"]), {}).get("scheduled_for"),
            attempt=1,
            start=task["created_at"],
            end=task["created_at"],
        )
        for task in tasks
    ]


async def _near_the_next_minute(running: Plant, chance: random.Random) -> None:
    """Wait until a random moment in the first seconds of the next minute, when fires are being decided, delivered or
    run.
    """
    into = timedelta(seconds=running.clock.now().second, microseconds=running.clock.now().microsecond)
    await running.passes(MINUTE - into + chance.uniform(0, 6) * SECOND)


async def _kill_the_one_that_fired_last(running: Plant) -> None:
    rows = await running.ask(LAST)
    fired = rows and running.fired_last(rows[0]["owner"])
    running.kill(fired or running.schedulers[0])
