"""Scheduled housekeeping jobs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from app.contexts.comum.prazo import OUT_OF_TIME, must_stop
from batuta import Done, Outcome, Partial
from batuta.jobs import JobCall
from batuta.kernel import Clock, Json
from batuta.sql import Retention, prune_all


class Beats(Protocol):
    async def beat(self, worker_id: str, worker_name: str, loops: dict[str, Json], *, now: datetime) -> None: ...


class Upkeep:
    def __init__(self, beats: Beats, retentions: Sequence[Retention], clock: Clock) -> None:
        self._beats = beats
        self._retentions = retentions
        self._clock = clock

    async def heartbeat(self, call: JobCall) -> Outcome:
        """Write a heartbeat. A successful run proves that the scheduler fires jobs, the API answers and the database
        accepts writes.
        """
        await self._beats.beat("heartbeat", "heartbeat", {"execution": call.key}, now=self._clock.now())
        return Done(items=1)

    async def limpar_historico(self, call: JobCall) -> Outcome:
        """Delete rows after their retention, and continue the erasure of people's data. The result counts the deleted
        rows of each table.
        """
        pruned = await prune_all(self._retentions, lambda: not must_stop(call, self._clock.now()))
        result: dict[str, Json] = {"linhas": {**pruned.by_table}}
        if not pruned.is_all:
            return Partial(OUT_OF_TIME(), items=pruned.rows, result=result)
        return Done(items=pruned.rows, result=result)
