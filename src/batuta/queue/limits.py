"""Limits for tasks and stages: how many items of a task, or of one key of a task, may run at the same time, and how
many may start in a period.

The *line* of a key contains the due items with that key. A claim asks how many items the task and each of its lines may
start, and then takes one item from each line in turn. The store counts the items, and the functions in this module
decide how many may start.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Literal, NamedTuple

from batuta.kernel.errors import InvalidLimit
from batuta.kernel.reasons import Reason, define
from batuta.kernel.storage.json import Json, dumps
from batuta.kernel.suggestions import nearest, unknown
from batuta.kernel.values import dataclass

UNITS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
SHORT_UNITS = {unit[0]: unit for unit in UNITS}
# Upper bound of a rate, because each start is stored until its window has passed.
MOST_STARTS = 10_000
# Stands for the key of items that have none. Only the limits of the task apply to them.
NO_KEY = ""
_RATE = re.compile(r"(\d{1,9})\s*/\s*(\S+)\Z")

TASK_CONCURRENCY = define("limit_task_concurrency", "limit of {task}: at most {most} run at once")
TASK_RATE = define("limit_task_rate", "limit of {task}: at most {most} start in {per}")
KEY_CONCURRENCY = define(
    "limit_key_concurrency", "limit of {task}: at most {most} with the same value of {by} run at once"
)
KEY_RATE = define("limit_key_rate", "limit of {task}: at most {most} with the same value of {by} start in {per}")


class Rate(NamedTuple):
    most: int
    per: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that apply to all processes together. At most ``concurrency`` items run at the same time. ``rate`` limits
    how many items start in any period, for example ``"100/minute"``; each retry is a start too.

    In ``per_key`` limits, ``by`` names the task's parameter, or the field in a stage's item, whose value is the key.
    The limits then apply to each key separately.
    """

    concurrency: int | None = None
    rate: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        if self.concurrency is not None:
            is_count = isinstance(self.concurrency, int) and self.concurrency >= 1
            why = Reason("concurrency_least", "give a number of at least 1; to stop everything, pause the queue")
            _require_limit(f"concurrency={self.concurrency!r}", is_count, why)
        if self.rate is not None:
            parse_rate(self.rate)

    @property
    def window(self) -> Rate | None:
        return None if self.rate is None else parse_rate(self.rate)


def parse_rate(text: str) -> Rate:
    """Parse a rate such as ``"100/minute"``. The units are second, minute, hour and day, which may be shortened to s,
    m, h and d.
    """
    found = _RATE.match(text) if isinstance(text, str) else None
    form = Reason("rate_form", 'write a number and a unit (second, minute, hour or day), for example "100/minute"')
    limit = f"rate={text!r}"
    _require_limit(limit, found, form)
    assert found is not None
    most, unit = int(found[1]), SHORT_UNITS.get(found[2], found[2])
    one = Reason("rate_one_unit", "the period is one second, minute, hour or day; write the unit without a number")
    _require_limit(limit, not unit[0].isdigit(), one)
    if unit not in UNITS:
        near = nearest(unit, UNITS)
        is_near = near is not None
        why = Reason("rate_unit_near", 'write "{most}/{near}"', most=most, near=near) if is_near else form
        _require_limit(limit, False, why)
    least = Reason("rate_least", "it must allow at least one; to stop everything, pause the queue")
    _require_limit(limit, most >= 1, least)
    many = Reason("rate_most", "it allows more than {most} in its period; use a shorter period", most=MOST_STARTS)
    _require_limit(limit, most <= MOST_STARTS, many)
    return Rate(most, UNITS[unit])


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """The limits of one task or stage: ``whole`` applies to all items together, and ``each`` to the items of each key.
    ``position`` is the index of the parameter that contains the key among the positional arguments, or None if callers
    must pass this parameter by name. ``default`` is the parameter's default value.
    """

    task: str  # the name of the task or stage
    whole: Limits
    each: Limits | None = None
    position: int | None = None
    default: Json = None
    kind: Literal["task", "stage"] = "task"

    def key_of_item(self, item: object) -> str:
        """Return the limit key of a pipeline item. If the item lacks the field that contains the key, it has no key, so
        only the limits of the whole stage apply.
        """
        return self.key_of((), item if isinstance(item, Mapping) else {})

    def key_of(self, arguments: Sequence[Json], named: Mapping[str, Json]) -> str:
        """Return the limit key of a call: a digest of the argument to which the limits per key refer. The database
        stores only the digest, because the argument may be personal data. A call in which this argument is None has no
        key, so only the limits of the whole task apply.
        """
        if self.each is None or self.each.by is None:
            return NO_KEY
        if self.each.by in named:
            value = named[self.each.by]
        elif self.position is not None and self.position < len(arguments):
            value = arguments[self.position]
        else:
            value = self.default
        return NO_KEY if value is None else blake2b(dumps(value).encode(), digest_size=16).hexdigest()

    def at_once(self, key: str) -> int | None:
        return None if self.each is None or key == NO_KEY else self.each.concurrency

    def window(self, key: str) -> Rate | None:
        return None if self.each is None or key == NO_KEY else self.each.window


def limits_of(
    task: str, parameters: Sequence[inspect.Parameter], whole: Limits, per_key: Limits | None
) -> TaskLimits | None:
    """Return the limits of a task, or None if it has none. ``parameters`` are the parameters of the task's function,
    without the parameter for the task's context.
    """
    if per_key is None:
        return None if whole == Limits() else TaskLimits(task=task, whole=whole)
    _require_key_limits(task, per_key)
    names = [each.name for each in parameters]
    if per_key.by not in names:
        raise unknown(f"parameter of task {task}", str(per_key.by), names)
    found = parameters[names.index(per_key.by)]
    is_named = found.kind is inspect.Parameter.KEYWORD_ONLY
    default = None if found.default is inspect.Parameter.empty else found.default
    position = None if is_named else names.index(per_key.by)
    return TaskLimits(task=task, whole=whole, each=per_key, position=position, default=default)


def limits_of_stage(stage: str, whole: Limits, per_key: Limits | None) -> TaskLimits | None:
    """Return the limits of a stage, or None if it has none. ``per_key.by`` names a field of the item."""
    if per_key is not None:
        _require_key_limits(stage, per_key)
    if per_key is None and whole == Limits():
        return None
    return TaskLimits(task=stage, whole=whole, each=per_key, kind="stage")


def _require_key_limits(name: str, per_key: Limits) -> None:
    by = Reason("limit_by", "name the parameter, or the field of the item: Limits(by=…)")
    _require_limit(f"per_key of {name}", per_key.by is not None, by)
    is_limit = per_key.concurrency is not None or per_key.rate is not None
    nothing = Reason("limit_nothing", "give Limits a concurrency or a rate")
    _require_limit(f"per_key of {name}", is_limit, nothing)


def _require_limit(limit: str, condition: object, why: Reason) -> None:
    if not condition:
        raise InvalidLimit(limit=limit, why=why)


class Use(NamedTuple):
    """How much of a limit is in use: the number of running items, the number of starts in the window, and the instant
    of the first start in the window.
    """

    running: int = 0
    started: int = 0
    first_start: datetime | None = None


class Room(NamedTuple):
    """How many items may start now. If the number is zero, ``until`` is the instant at which the rate allows the next
    start; None means that a running item must end first.
    """

    free: int
    is_rate: bool = False
    until: datetime | None = None


def room(concurrency: int | None, window: Rate | None, use: Use, most: int) -> Room:
    """Return how many items may start, at most ``most``. If both rate and concurrency are exhausted, report the rate,
    because only the rate tells when the next item may start.
    """
    if window is not None and use.started >= window.most:
        return Room(0, is_rate=True, until=None if use.first_start is None else use.first_start + window.per)
    free = most if concurrency is None else min(most, concurrency - use.running)
    free = free if window is None else min(free, window.most - use.started)
    return Room(max(0, free))


class Line(NamedTuple):
    """The due items with one key: how many there are (at most the number that the claim wants), and how much of the
    key's limits is in use.
    """

    key: str
    waiting: int
    use: Use = Use()


def share(places: int, lines: Mapping[str, int]) -> dict[str, int]:
    """Return how many items each line gets when the lines take turns, one item per turn. ``lines`` maps each key to the
    maximum number of items that its line can take. The line that has waited longest comes first.
    """
    given = dict.fromkeys(lines, 0)
    left = min(places, sum(lines.values()))
    while left > 0:
        for key, most in lines.items():
            if given[key] < most and left > 0:
                given[key] += 1
                left -= 1
    return {key: count for key, count in given.items() if count}


def why_task_waits(limits: TaskLimits, use: Use) -> Reason | None:
    """Return the reason why no item of the task may start now, or None if an item may start."""
    found = room(limits.whole.concurrency, limits.whole.window, use, 1)
    if found.free:
        return None
    if found.is_rate and (window := limits.whole.window) is not None:
        return TASK_RATE(task=limits.task, most=window.most, per=window.per)
    return TASK_CONCURRENCY(task=limits.task, most=limits.whole.concurrency)


def why_line_waits(limits: TaskLimits, key: str, use: Use) -> Reason | None:
    """Return the reason why no item with the key may start now, or None if an item may start."""
    window = limits.window(key)
    found = room(limits.at_once(key), window, use, 1)
    if found.free or limits.each is None:
        return None
    if found.is_rate and window is not None:
        return KEY_RATE(task=limits.task, by=limits.each.by, most=window.most, per=window.per)
    return KEY_CONCURRENCY(task=limits.task, by=limits.each.by, most=limits.at_once(key))
