"""Health of the tasks that parse appointments, for ``/health/agendamentos``.

The engine checks the queue (backlog, age, dead items, workers). This module adds the figures for operators.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.agendamentos.model import StatusDaLeitura
from batuta.health import FAILING_AFTER, FORGOTTEN_AFTER, Beats, HealthPage, Now, Signs
from batuta.kernel import dataclass
from batuta.queues import Depth
from batuta.sql import Database, Query, load_queries

LATELY: Final = timedelta(minutes=5)
HOUR: Final = timedelta(hours=1)
WAITS_TOO_LONG: Final = timedelta(minutes=10)
TOO_MANY_FAIL: Final = 0.05
ENOUGH: Final = 20  # below this number of parsed appointments, the share of failures is ignored
IMPORT_STANDS: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class AppointmentHealthQueries:
    tasks: Query
    imports: Query


class SaudeDosAgendamentos:
    def __init__(
        self,
        database: Database,
        depth: Callable[[], Awaitable[Depth]],
        counts: Callable[[], Awaitable[dict[str, int]]],
        beats: Beats,
        consumer: str,
        now: Now,
        zone: ZoneInfo,
        *,
        is_handed_over: bool = False,
    ) -> None:
        """Build the health check. ``consumer`` is the name of the loop that runs the tasks. ``is_handed_over`` is true
        if tasks run on ARQ. On ARQ, a task that is already claimed may still be waiting for that loop.
        """
        self._database = database
        self._depth = depth
        self._counts = counts
        self._beats = beats
        self._consumer = consumer
        self._now = now
        self._zone = zone
        self._is_handed_over = is_handed_over
        self._queries = load_queries(AppointmentHealthQueries, "sql/saude.sql", database.dialect)

    @property
    def page(self) -> HealthPage:
        return HealthPage(name="agendamentos", ask=self.documento, about="the reading of appointments")

    async def documento(self) -> dict[str, Any]:
        signs = await self._beats.read_signs(within=FORGOTTEN_AFTER, now=self._now())
        depth, counts = await self._depth(), await self._counts()
        tasks = await self._database.one(self._queries.tasks, hour_ago=signs.now - HOUR, lately=signs.now - LATELY)
        imports = await self._database.one(self._queries.imports)
        assert tasks is not None
        assert imports is not None
        ended = tasks["feitas"] + tasks["falhas"]
        metrics = {
            "queue_size": depth.due + depth.later,
            "in_progress": depth.running,
            "oldest_due_seconds": round(depth.oldest_due.total_seconds(), 1),
            "processing_rate_per_minute": round(tasks["recentes"] / (LATELY / timedelta(minutes=1)), 1),
            "error_rate": round(tasks["falhas"] / ended, 4) if ended else 0.0,
            "average_latency_seconds": round(tasks["segundos"], 3),
            "completed_last_hour": tasks["feitas"],
            "failed_last_hour": tasks["falhas"],
            "has_worker": self._consumer in signs.living_loops,
            "open_imports": imports["abertas"],
            "appointments": counts,
        }
        stands = imports["desde"] is not None and signs.now - imports["desde"] > IMPORT_STANDS
        alerts = alertas(metrics, depth.oldest_due, self._unserved_time(depth, signs), import_stands=stands)
        return {
            "status": "critical" if "no_worker" in alerts else "degraded" if alerts else "healthy",
            "alerts": alerts,
            "metrics": metrics,
            "timestamp": signs.now.astimezone(self._zone).isoformat(),
        }

    def _unserved_time(self, depth: Depth, signs: Signs) -> timedelta:
        """Return how long the oldest due task has waited for a worker or, if tasks run on ARQ, how long no consumer has
        been alive.
        """
        if not self._is_handed_over or not depth.due + depth.later + depth.running:
            return depth.oldest_due
        seen = [(beat.beat_at, beat.loops[self._consumer]) for beat in signs.beats if self._consumer in beat.loops]
        there = [loop.worked_at or beat_at for beat_at, loop in seen if loop.worked_at or loop.failures < FAILING_AFTER]
        began = [beat.started_at for beat in signs.beats if beat.lives(signs.now)]
        return signs.now - max([*there, min(began, default=signs.now)])


def alertas(metrics: dict[str, Any], waited: timedelta, unserved: timedelta, *, import_stands: bool) -> list[str]:
    """Return the names of the alerts about the parsing of appointments. ``unserved`` is how long tasks have been
    waiting without a live worker.
    """
    ended = metrics["completed_last_hour"] + metrics["failed_last_hour"]
    found = {
        "no_worker": not metrics["has_worker"] and unserved > timedelta(minutes=1),
        "waits_too_long": waited > WAITS_TOO_LONG,
        "too_many_fail": ended >= ENOUGH and metrics["error_rate"] > TOO_MANY_FAIL,
        "failed": metrics["appointments"][StatusDaLeitura.FAILED] > 0,
        "import_stands_still": import_stands,
    }
    return [name for name, is_so in found.items() if is_so]
