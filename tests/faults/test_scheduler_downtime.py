"""All schedulers are down for a while. Afterwards each missed fire runs or is skipped, as the job's catch-up policy
requires, and the execution log has a row for it.
"""

import random
from datetime import UTC, datetime, timedelta

import pytest

from batuta.kernel.clock import exact
from batuta.testing import FakeClock
from tests.engine.dispatch.scheduling import House
from tests.faults.figures import LONG, Figures, kind
from tests.faults.simulated import (
    HOUR,
    MINUTE,
    SECOND,
    RecordingEndpoint,
    as_registry,
    declared,
    fires_of,
    judged,
    look,
)
from tests.judges.evidence import Rules, Target

T0 = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # start of the fake clock
SCHEDULES = ["* * * * *", "*/5 * * * *", "*/7 8-20 * * *", "0 * * * *", "30 */2 * * *", "0 13 * * *", "0 12 * * 1"]
AGES = [timedelta(minutes=3), timedelta(minutes=20), timedelta(hours=2)]


@pytest.mark.parametrize("policy", ["skip", "latest", "all"])
async def test_hours_without_a_scheduler_are_caught_up_as_the_policy_says(
    house: House, clock: FakeClock, database_url: str, policy: str
) -> None:
    down = timedelta(hours=12 if LONG else 3)
    figures = Figures(
        "T13", kind(database_url), f"no process runs for {exact(down)}; the jobs have `catch_up={policy}`"
    )
    endpoint = RecordingEndpoint(clock)
    ages = {f"job_{n}_{m}": age for n in range(len(SCHEDULES)) for m, age in enumerate(AGES)}
    jobs = [
        declared(endpoint, name, SCHEDULES[int(name.split("_")[1])], catch_up=policy, max_age=age, category=name)
        for name, age in ages.items()
    ]
    await look(house.scheduler(registry=as_registry(jobs)), clock, T0 + 30 * SECOND)
    back = T0 + down + 17 * SECOND
    scheduler = house.scheduler(registry=as_registry(jobs))
    await look(scheduler, clock, back)
    while policy == "all" and clock.now() < back + 3 * MINUTE:  # the fires run one after the other, a second each
        await look(scheduler, clock, clock.now() + SECOND)
    targets = []
    for job in jobs:
        fires = [target.at for target in fires_of([job], T0 + 30 * SECOND, clock.now())]
        targets += [_wanted(job.name, fire, fires, back, policy, ages[job.name]) for fire in fires]
    rules = Rules(read_at=clock.now() + HOUR, epsilon=2 * SECOND)
    verdict = await judged(house, endpoint, targets, rules)
    figures.record(verdict, f"fires caught up: {verdict.served}; fires recorded as missed: {verdict.explained}")
    assert {(each.job, each.scheduled_for) for each in endpoint.receipts.values()} == {
        (target.job, target.at) for target in targets if target.must_run
    }


def _wanted(job: str, fire: datetime, fires: list[datetime], back: datetime, policy: str, max_age: timedelta) -> Target:
    if fire > back:
        # this fire waits for the earlier fires
        return Target(job, fire, back + 3 * MINUTE if policy == "all" else None)
    young = back - fire <= max_age
    owed = [each for each in fires if each <= back]
    runs = {"skip": False, "latest": young and fire == owed[-1], "all": young}[policy]
    return Target(job, fire, back + 3 * MINUTE, must_run=runs)


async def test_restart_across_the_due_second_neither_skips_nor_doubles_the_fire(
    house: House, clock: FakeClock, database_url: str
) -> None:
    restarts = 1000 if LONG else 100
    figures = Figures(
        "T14", kind(database_url), f"the scheduler restarts {restarts} times, each time within 2 s of a fire"
    )
    chance = random.Random(20260105)
    endpoint = RecordingEndpoint(clock)
    jobs = [declared(endpoint, "pulse", "* * * * *"), declared(endpoint, "skips", "* * * * *", catch_up="skip")]
    await look(house.scheduler(registry=as_registry(jobs)), clock, T0)
    at = T0
    for _ in range(restarts):
        at += MINUTE
        stopped = at + chance.uniform(-2, 2) * SECOND
        started = stopped + chance.uniform(0, 2) * SECOND
        last = house.scheduler(registry=as_registry(jobs))
        await look(last, clock, at - 3 * SECOND)
        if stopped >= at:
            await look(last, clock, stopped)
        following = house.scheduler(registry=as_registry(jobs))
        await look(following, clock, max(started, stopped))
        await look(following, clock, at + 5 * SECOND)
    rules = Rules(read_at=clock.now() + MINUTE, epsilon=6 * SECOND)
    figures.record(await judged(house, endpoint, fires_of(jobs, T0, clock.now()), rules))
    assert len(endpoint.receipts) == 2 * restarts
