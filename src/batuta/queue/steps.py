"""Pipelines of plain functions: each takes a JSON item and returns it for the next function.

    orders = work.pipeline("orders", [fetch, step(parse, concurrency=2), store])

The items of all such pipelines are in one table of the engine. The stage of an item is ``orders.fetch``.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

from batuta.kernel.errors import require
from batuta.kernel.middleware import Around, Attempt
from batuta.kernel.reasons import Reason, define
from batuta.kernel.suggestions import check_options
from batuta.kernel.usercode import Threads
from batuta.queue.item import Lease, QueueTable
from batuta.queue.outcome import (
    FanOut,
    ItemEffect,
    Jump,
    Next,
    Outcome,
    RetryPolicy,
    Snooze,
    StageOutcome,
)
from batuta.queue.pipeline import DEFAULT_STAGE_RETRY, Pipeline, Stage
from batuta.queue.retry import Retry, retry_policy

StepFunction: TypeAlias = Callable[[Any], Any]
PIPELINE_ITEMS = QueueTable(
    name="pipeline_items",
    state="stage",
    queue="stage",
    ready=("-",),  # each pipeline replaces it by its stages
    running=None,
    last_stage="last_stage",
    priority="priority",
    key="unique_key",
    expires_at="expires_at",
    fixed_times=False,
    given=("item",),
    documents=("item",),
)
DROPPED = "dropped"
# Limit per step and process: further calls are postponed while this many threads run beyond their time limit.
MAX_STUCK_THREADS = 4
PUT_OFF = timedelta(minutes=1)
STUCK_STEP = define(
    "stuck_step",
    "{count} calls of stage {stage} are still running in their threads after their time limit: set a timeout for the"
    " calls inside the function, and restart the worker",
)
_NAME = re.compile(r"^[a-z_][a-z0-9_]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A function of a pipeline with its options; ``step`` creates it."""

    name: str
    function: StepFunction
    concurrency: int
    timeout: timedelta
    retry: RetryPolicy
    threads: Threads = field(default_factory=Threads)


class ItemRows(Protocol):
    """Writes JSON items into rows. Both methods raise UnstorableValue for a value that JSON would change."""

    def values(self, pipeline: str, item: object) -> Mapping[str, object]:
        """Return the columns of a new row."""

    def replace(self, id: str, item: object) -> ItemEffect:
        """Return the effect that replaces the item of a row."""


@check_options
def step(
    function: StepFunction,
    /,
    *,
    name: str | None = None,
    concurrency: int = 10,
    timeout: float = 60,
    retry: Retry | None = None,
) -> Step:
    """Return a stage of ``work.pipeline`` with options. Times are in seconds; ``concurrency`` counts per worker process.

    ``retry`` is a list of waits, a policy, or rules by class of error; None means after 1, 5 and 15 minutes.
    """
    called = name or str(getattr(function, "__name__", "stage"))
    rule = Reason("stage_name", "use lowercase letters, digits and underscores: write step(function, name=…)")
    require("stage", called, _NAME.match(called), rule)
    limits = Reason("stage_limits", "its concurrency and timeout must be greater than zero")
    require("stage", called, concurrency > 0 and timeout > 0, limits)
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        require("stage", called, None, Reason("stage_item", "it must take one argument, the item"))
    policy = retry_policy(retry, DEFAULT_STAGE_RETRY)
    return Step(
        name=called, function=function, concurrency=concurrency, timeout=timedelta(seconds=timeout), retry=policy
    )


def pipeline_of(
    name: str,
    steps: Sequence[StepFunction | Step],
    rows: ItemRows,
    keep: timedelta,
    keep_dead: timedelta,
    around: Around,
) -> Pipeline:
    """Build a pipeline of functions. ``keep`` and ``keep_dead`` are the retention of finished and of dead items."""
    require(
        "pipeline", name, _NAME.match(name), Reason("pipeline_name", "use lowercase letters, digits and underscores")
    )
    require("pipeline", name, steps, Reason("pipeline_empty", "it has no stages"))
    made = [each if isinstance(each, Step) else step(each) for each in steps]
    names = [each.name for each in made]
    for each in made:
        why = Reason("stage_taken", "another stage has this name: write step(function, name=…)")
        require("stage", each.name, names.count(each.name) == 1, why)
    return Pipeline(
        table=replace(PIPELINE_ITEMS, ready=tuple(stage_name(name, each) for each in names)),
        stages=tuple(_stage(name, each, rows, around) for each in made),
        dropped=DROPPED,
        keep=keep,
        keep_dead=keep_dead,
    )


def stage_name(pipeline: str, step: str) -> str:
    return f"{pipeline}.{step}"


def _stage(pipeline: str, step: Step, rows: ItemRows, around: Around) -> Stage:
    name, is_async = stage_name(pipeline, step.name), inspect.iscoroutinefunction(step.function)

    async def call(item: object) -> object:
        if is_async:
            return await step.function(item)
        return await step.threads.call(step.function, item, name=f"stage {name}")

    async def handle(lease: Lease) -> StageOutcome:
        item: Any = lease.row["item"]
        if not is_async and (stuck := step.threads.left_behind) >= MAX_STUCK_THREADS:
            return Snooze(PUT_OFF, STUCK_STEP(count=stuck, stage=name))
        if around:
            attempt = Attempt(kind="stage", name=name, id=lease.id, number=lease.attempt, arguments=(item,))
            returned = await around.call(attempt, lambda: call(item))
        else:
            returned = await call(item)
        match returned:
            case None:
                return Next()
            case Jump(stage=stage):
                return replace(returned, stage=stage_name(pipeline, stage))
            case FanOut(items=items):
                made = tuple(replace(each, values=rows.values(pipeline, each.values)) for each in items)
                return replace(returned, items=made)
            case _ if isinstance(returned, Next | Outcome):
                return returned
            case _:
                return Next(effect=rows.replace(lease.id, returned))

    return Stage(name=name, handle=handle, budget=step.concurrency, timeout=step.timeout, retry=step.retry)
