"""The page that shows everything that can hold back work: pauses, switches, circuit breakers, limits and windows."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from fastapi import Request
from fastapi.responses import HTMLResponse

from batuta.dispatch.plan import PAUSE_ALL, pause_of_category, pause_of_job
from batuta.engine.batuta import Batuta
from batuta.guard.breaker import Circuit, CircuitState
from batuta.guard.switches import Switch
from batuta.kernel.reasons import Reason, decode
from batuta.kernel.values import dataclass
from batuta.queue.inspection import ItemFilter
from batuta.queue.item import ItemState, pause_of_queue
from batuta.schedule.window import Window
from batuta.stores.sql.queue.inspection import QueueInspection
from batuta.web.context import state_of
from batuta.web.panel.frame import show, words_of
from batuta.web.panel.words import Words

HOURS = 24
DAY = timedelta(hours=HOURS)
MOST_TRANSITIONS = 10  # newest changes of a circuit that are searched for the reason why it was opened
MOST_COMPARED = 200  # maximum waiting items per queue that are grouped by reason
MOST_NAMES = 6


@dataclass(frozen=True, slots=True)
class ActivePause:
    """A pause in force. ``target`` names the paused job, category or queue, in the form that the actions ``pause`` and
    ``resume`` accept.
    """

    target: str
    switch: Switch
    waiting: int  # number of jobs and items that are waiting because of the pause
    names: Sequence[str] = ()  # names of some of these jobs


@dataclass(frozen=True, slots=True)
class WaitGroup:
    """Items in a queue that are waiting for the same reason: a limit, a circuit breaker, or the retry after an
    error.
    """

    queue: str
    reason: str
    items: int
    circuit: str | None  # the circuit that holds the items, if any


@dataclass(frozen=True, slots=True)
class SwitchRow:
    name: str
    key: str
    is_on: bool
    is_set: bool
    holds: bool
    switch: Switch | None
    jobs: Sequence[str]  # the jobs that depend on the circuit


@dataclass(frozen=True, slots=True)
class DrawnWindow:
    """A window to be drawn as a week: for each weekday from Monday, the start and the length of its open hours."""

    name: str
    is_open: bool
    changes_at: datetime
    bars: Sequence[tuple[int, float, float]]
    jobs: int


async def brakes(request: Request) -> HTMLResponse:
    work, words = state_of(request).work, words_of(request)
    switches = await work.switches.all()
    used = await work.rates.count_used([limit for limit in work.limits.values() if not limit.each])
    controls = await work.controls.read()
    of_tasks = [task.limits for task in work.task_registry if task.limits is not None]
    values = {
        "pauses": await _pauses(work, switches, words.now),
        "switches": _switches(work, switches, words.now),
        "circuits": (
            circuits := sorted(await work.circuits.look(), key=lambda each: each.state is CircuitState.CLOSED)
        ),
        "opened": {each.name: await _why_open(work, each, words) for each in circuits if each.opened_at is not None},
        "limits": [(limit, None if limit.each else used[limit.name]) for limit in work.limits.values()],
        "windows": [_draw(name, each, work, words) for name, each in work.registry.windows_now(controls).items()],
        "task_limits": sorted([*of_tasks, *work.stage_limits], key=lambda limits: limits.task),
        "waits": await _waits(work, words),
        "most_compared": MOST_COMPARED,
        "most_names": MOST_NAMES,
        "weekdays": [words.weekday(day % 7) for day in range(1, 8)],
        "is_all_paused": _is_on(switches.get(PAUSE_ALL), words.now),
    }
    return show(request, "panel/brakes.html.j2", words, values, live=True)


async def _why_open(work: Batuta, circuit: Circuit, words: Words) -> str | None:
    """Return why a circuit was opened. If the circuit's history does not contain the reason, return its last error."""
    assert circuit.opened_at is not None
    for each in await work.circuits.history(circuit.name, circuit.opened_at - DAY, MOST_TRANSITIONS):
        if each.after is CircuitState.OPEN:
            return words.reason(each.reason)
    return words.reason(circuit.last_error)


def _is_on(switch: Switch | None, now: datetime) -> bool:
    return switch is not None and bool(switch.on) and (switch.until is None or switch.until > now)


async def _pauses(work: Batuta, switches: dict[str, Switch], now: datetime) -> list[ActivePause]:
    keys = {PAUSE_ALL: "all:"}
    keys |= {pause_of_category(name): f"category:{name}" for name in work.registry.categories}
    keys |= {pause_of_job(job.name): f"job:{job.name}" for job in work.registry}
    keys |= {pause_of_queue(name): f"queue:{name}" for name in work.queues}
    found = []
    for key, target in keys.items():
        switch = switches.get(key)
        if switch is not None and _is_on(switch, now):
            names = _jobs_of(work, target)[:MOST_NAMES]
            found.append(ActivePause(target, switch, await _count_waiting(work, target), names))
    return found


def _jobs_of(work: Batuta, target: str) -> list[str]:
    kind, _, name = target.partition(":")
    concerned = {"all": list(work.registry), "queue": []}
    concerned["category"] = [job for job in work.registry if job.category == name]
    concerned["job"] = [job for job in work.registry if job.name == name]
    return sorted({job.name for job in concerned[kind]})


async def _waits(work: Batuta, words: Words) -> list[WaitGroup]:
    """Return the reasons why each queue's items are waiting, most frequent reason first."""
    counted: Counter[tuple[str, str, str | None]] = Counter()
    for name, queue in work.queues.items():
        inspection = QueueInspection(queue, work.database, work.database.dialect)
        rows, _ = await inspection.page(ItemFilter(state=ItemState.READY), None, MOST_COMPARED)
        found = [dict(row) for row in rows]
        limited = await queue.why_limited(found)
        for row in found:
            reason = limited.get(str(row[queue.table.id])) or decode(row[queue.table.error])
            if reason is not None:
                counted[name, words.reason(reason) or "", _circuit_of(reason)] += 1
    return [WaitGroup(queue, reason, items, circuit) for (queue, reason, circuit), items in counted.most_common()]


def _circuit_of(reason: str) -> str | None:
    """Return the circuit breaker that a reason names, or None if it names none."""
    circuit = reason.facts.get("circuit") if isinstance(reason, Reason) else None
    return None if circuit is None else str(circuit)


async def _count_waiting(work: Batuta, target: str) -> int:
    """Return how many jobs and due items a pause of ``target`` holds back. The target is a job, a category, a queue or
    everything.
    """
    kind, _, name = target.partition(":")
    if kind == "queue":
        return (await work.queues[name].depth()).due
    if kind == "category":
        return len({job.name for job in work.registry if job.category == name})
    if kind == "job":
        return 1
    depths = [await queue.depth() for queue in work.queues.values()]
    return len({job.name for job in work.registry}) + sum(depth.due for depth in depths)


def _switches(work: Batuta, stored: dict[str, Switch], now: datetime) -> list[SwitchRow]:
    rows = []
    for name, rule in work.extension.switches.items():
        switch = stored.get(rule.key)
        is_set = switch is not None and (switch.until is None or switch.until > now)
        is_on = bool(switch.on) if switch is not None and is_set else rule.default
        jobs = sorted({job.name for job in work.registry if any(each.key == rule.key for each in job.holds)})
        rows.append(SwitchRow(name, rule.key, is_on, is_set, is_on is rule.hold_when, switch if is_set else None, jobs))
    return rows


def _draw(name: str, window: Window, work: Batuta, words: Words) -> DrawnWindow:
    closes = window.closes(words.now, words.zone)
    return DrawnWindow(
        name,
        closes is not None,
        closes or window.next_open(words.now, words.zone),
        week_bars(window),
        sum(job.window == name for job in work.registry),
    )


def week_bars(window: Window) -> list[tuple[int, float, float]]:
    """Return the open hours of a week as bars. Each bar has the row of its day (0 is Monday), its first hour and its
    length in hours.

    A window that ends after midnight continues in the row of the next day.
    """
    begins = window.opens.hour + window.opens.minute / 60
    length = window.lasts.total_seconds() / 3600
    bars = []
    for day in sorted(window.days):
        row = (day - 1) % 7
        first = min(length, HOURS - begins)
        bars.append((row, round(begins, 2), round(first, 2)))
        if length > first:
            bars.append(((row + 1) % 7, 0.0, round(length - first, 2)))
    return bars
