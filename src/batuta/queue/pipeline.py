"""Pipelines: queue tables whose items pass through stages. The outcome of a stage decides how its item is settled."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from datetime import timedelta
from functools import partial
from typing import assert_never

from batuta.kernel.errors import require
from batuta.kernel.values import dataclass
from batuta.queue.handler import ItemHandler
from batuta.queue.item import ItemState, Lease, NewItem, QueueTable
from batuta.queue.limits import TaskLimits
from batuta.queue.outcome import (
    Cancelled,
    Done,
    Failed,
    FanOut,
    ItemEffect,
    Jump,
    Next,
    Partial,
    RetryPolicy,
    Settlement,
    Skipped,
    Snooze,
    StageOutcome,
    TimedOut,
    Waits,
    settle,
)

DEFAULT_STAGE_RETRY = Waits((timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a pipeline. ``budget`` is the number of items that one worker runs concurrently in this stage.
    ``limits`` apply across all processes; they require a ``limit_key`` column in the pipeline's table.
    """

    name: str
    handle: Callable[[Lease], Awaitable[StageOutcome]]
    budget: int = 10
    timeout: timedelta = timedelta(seconds=60)
    retry: RetryPolicy = field(default=DEFAULT_STAGE_RETRY)
    limits: TaskLimits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A queue table whose items pass through stages. While an item is waiting for a stage, its state column contains
    the stage's name.
    """

    table: QueueTable
    stages: tuple[Stage, ...]
    dropped: str  # value of the state column for an item that a stage dropped
    # retention of finished items, for tables with ``expires_at``; None keeps them permanently
    keep: timedelta | None = None
    keep_dead: timedelta | None = None

    def __post_init__(self) -> None:
        names = tuple(stage.name for stage in self.stages)
        fits = names == self.table.ready and self.table.running is None and self.table.queue == self.table.state
        why = "the ready values of its table must be its stages in order, queue must be the state column, and running must be None"
        require("pipeline", self.table.name, fits, why)
        why = "a stage has limits, but its table has no limit_key: use work.pipeline"
        require("pipeline", self.table.name, self.table.limit_key or not self.limits, why)

    @property
    def limits(self) -> dict[str, TaskLimits]:
        """The limits of the stages, by stage name. Stages without limits are omitted."""
        return {stage.name: stage.limits for stage in self.stages if stage.limits is not None}

    def handler(self, stage: Stage) -> ItemHandler:
        return ItemHandler(
            handle=stage.handle,
            timeout=stage.timeout,
            retry=stage.retry,
            retry_timeout=True,
            settle=partial(self.settle, stage),
            keep=self.keep,
            keep_dead=self.keep_dead,
        )

    def settle(self, stage: Stage, attempt: int, outcome: StageOutcome, retry: RetryPolicy) -> Settlement:
        match outcome:
            case Next(effect=effect):
                return self._settlement_to(self._next_stage(stage), effect)
            case Jump(stage=name, effect=effect):
                require("stage", name, name in self.table.ready, f"the stages are {', '.join(self.table.ready)}")
                return self._settlement_to(name, effect)
            case FanOut(items=items, effect=effect):
                following = self._next_stage(stage) or self.table.done
                made = tuple(self._item(item, following) for item in items)
                return Settlement(state=ItemState.DONE, follow_ups=made, effect=effect)
            case Skipped():
                return settle(attempt, outcome, retry)._replace(stage=self.dropped)
            case Done() | Partial() | Snooze() | Failed() | TimedOut() | Cancelled():
                return settle(attempt, outcome, retry)
            case _:
                assert_never(outcome)

    def _settlement_to(self, stage: str | None, effect: ItemEffect | None) -> Settlement:
        if stage is None:
            return Settlement(state=ItemState.DONE, effect=effect)
        return Settlement(state=ItemState.READY, stage=stage, wait=timedelta(0), effect=effect)

    def _item(self, item: NewItem, stage: str) -> NewItem:
        require("fan-out", self.table.name, item.key is not None, "every item needs a key")
        return replace(item, values={**item.values, self.table.state: stage})

    def _next_stage(self, stage: Stage) -> str | None:
        names: Sequence[str] = self.table.ready
        following = names.index(stage.name) + 1
        return names[following] if following < len(names) else None
