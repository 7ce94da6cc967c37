"""Pipelines of plain functions: each function takes a JSON item and returns the item for the next function.

    orders = work.pipeline("orders", [fetch, step(parse, rate="100/minute"), store])

The items of all such pipelines are in one of the engine's tables. In this example, the first stage is ``orders.fetch``.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

from batuta.kernel.calls.middleware import Around, Attempt
from batuta.kernel.calls.usercode import Threads
from batuta.kernel.errors import require
from batuta.kernel.reasons import Reason, define
from batuta.kernel.suggestions import check_options
from batuta.kernel.values import dataclass
from batuta.queue.item import Lease, QueueTable
from batuta.queue.limits import Limits, TaskLimits, limits_of_stage
from batuta.queue.outcome import (
    FanOut,
    ItemEffect,
    Jump,
    Next,
    Outcome,
    RetryPolicy,
    Snooze,
    StageOutcome,
    Writes,
)
from batuta.queue.pipeline import DEFAULT_STAGE_RETRY, Pipeline, Stage
from batuta.queue.retry import Retry, retry_policy

StepFunction: TypeAlias = Callable[[Any], Any]
PIPELINE_ITEMS = QueueTable(
    name="pipeline_items",
    state="stage",
    queue="stage",
    ready=("-",),  # placeholder: each pipeline lists its stages here
    running=None,
    last_stage="last_stage",
    priority="priority",
    key="unique_key",
    expires_at="expires_at",
    fixed_times=False,
    cancel_requested="cancel_requested",
    limit_key="limit_key",
    given=("item", "batch_id"),
    documents=("item",),
)
DROPPED = "dropped"
# The number of items that one worker runs concurrently in a stage without its own limit.
DEFAULT_BUDGET = 10
# While this many threads of a step run past their time limit in one process, further calls of the step are postponed.
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
    """A pipeline function with its options; ``step`` creates it."""

    name: str
    function: StepFunction
    timeout: timedelta
    retry: RetryPolicy
    whole: Limits = field(default_factory=Limits)  # limits for all of the stage's items together
    per_key: Limits | None = None  # limits for the items with the same value in a field
    threads: Threads = field(default_factory=Threads)


class ItemRows(Protocol):
    """Interface that converts the JSON items of one pipeline to rows. Raises UnstorableValue for a value that JSON
    would change.
    """

    def values(self, stage: str | None, item: object, batch: str | None = None) -> Mapping[str, object]:
        """Return the columns of a new row that starts at ``stage``. If ``stage`` is None, the row is created as done.
        ``batch`` is the id of the batch that the item belongs to.
        """

    def replace(self, id: str, stage: str | None, item: object) -> Writes:
        """Return the effect that stores a new item in an existing row and moves the row to ``stage``. If ``stage`` is
        None, the row is done.
        """

    def label(self, id: str, stage: str | None, item: object) -> Writes | None:
        """Return the effect that sets the limit key of a row that moves to ``stage``, or None if no stage of the
        pipeline has limits.
        """


RowsOf: TypeAlias = Callable[[str, Mapping[str, TaskLimits]], ItemRows]


@check_options
def step(
    function: StepFunction,
    /,
    *,
    name: str | None = None,
    timeout: float = 60,
    retry: Retry | None = None,
    concurrency: int | None = None,
    rate: str | None = None,
    per_key: Limits | None = None,
) -> Step:
    """Return a stage for ``work.pipeline`` with options. Times are in seconds.

    ``retry`` is a list of waits, a policy, or rules by error class; None means retries after 1, 5 and 15 minutes.
    ``concurrency`` and ``rate`` limit the stage across all processes, like the limits of a task. ``per_key`` limits the
    items with the same value in a field: ``Limits(by="customer", rate="10/minute")``. Without ``concurrency``, each
    worker runs at most ten of the stage's items at the same time.
    """
    called = name or str(getattr(function, "__name__", "stage"))
    rule = Reason("stage_name", "use lowercase letters, digits and underscores: write step(function, name=…)")
    require("stage", called, _NAME.match(called), rule)
    require("stage", called, timeout > 0, Reason("stage_timeout", "its timeout must be greater than zero"))
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        require("stage", called, None, Reason("stage_item", "it must take one argument, the item"))
    policy = retry_policy(retry, DEFAULT_STAGE_RETRY)
    return Step(
        name=called,
        function=function,
        timeout=timedelta(seconds=timeout),
        retry=policy,
        whole=Limits(concurrency=concurrency, rate=rate),
        per_key=per_key,
    )


def pipeline_of(
    name: str,
    steps: Sequence[StepFunction | Step],
    rows_of: RowsOf,
    keep: timedelta,
    keep_dead: timedelta,
    around: Around,
) -> Pipeline:
    """Build a pipeline from functions. ``rows_of`` creates the object that converts items to rows. ``keep`` and
    ``keep_dead`` are the retention of finished and dead items.
    """
    require(
        "pipeline", name, _NAME.match(name), Reason("pipeline_name", "use lowercase letters, digits and underscores")
    )
    require("pipeline", name, steps, Reason("pipeline_empty", "it has no stages"))
    made = [each if isinstance(each, Step) else step(each) for each in steps]
    names = [each.name for each in made]
    for each in made:
        why = Reason("stage_taken", "another stage has this name: write step(function, name=…)")
        require("stage", each.name, names.count(each.name) == 1, why)
    stages = tuple(stage_name(name, each) for each in names)
    limits = [limits_of_stage(stage, each.whole, each.per_key) for stage, each in zip(stages, made, strict=True)]
    rows = rows_of(name, {each.task: each for each in limits if each is not None})
    return Pipeline(
        table=replace(PIPELINE_ITEMS, ready=stages, pipeline=name),
        stages=tuple(
            _stage(name, each, limited, following, rows, around)
            for each, limited, following in zip(made, limits, (*stages[1:], None), strict=True)
        ),
        dropped=DROPPED,
        keep=keep,
        keep_dead=keep_dead,
    )


def stage_name(pipeline: str, step: str) -> str:
    return f"{pipeline}.{step}"


def _stage(
    pipeline: str, step: Step, limits: TaskLimits | None, following: str | None, rows: ItemRows, around: Around
) -> Stage:
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
                return Next(effect=rows.label(lease.id, following, item))
            case Next(effect=effect):
                return Next(effect=_both(effect, rows.label(lease.id, following, item)))
            case Jump(stage=stage, effect=effect):
                target = stage_name(pipeline, stage)
                return Jump(stage=target, effect=_both(effect, rows.label(lease.id, target, item)))
            case FanOut(items=items):
                batch = lease.row["batch_id"]
                made = tuple(replace(each, values=rows.values(following, each.values, batch)) for each in items)
                return replace(returned, items=made)
            case _ if isinstance(returned, Outcome):
                return returned
            case _:
                return Next(effect=rows.replace(lease.id, following, returned))

    budget = step.whole.concurrency or DEFAULT_BUDGET
    return Stage(name=name, handle=handle, budget=budget, timeout=step.timeout, retry=step.retry, limits=limits)


def _both(effect: ItemEffect | None, writes: Writes | None) -> ItemEffect | None:
    if effect is None or writes is None:
        return writes if effect is None else effect
    if isinstance(effect, Writes):
        return effect + writes

    async def run_both(transaction: Any) -> None:
        await effect(transaction)
        for query, values in writes.statements:
            await transaction.run(query, **values)

    return run_both
