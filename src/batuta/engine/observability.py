"""Builds the components that monitor a process: heartbeats, checks, health score, alerts, incidents and the dead man's
switch.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from batuta.config import EngineSettings
from batuta.guard.circuits import Circuits
from batuta.health import checks
from batuta.health.aggregator import HealthAggregator, Probe
from batuta.health.alert_hub import HUB_POLICY, PINGING, AlertHub, DeadMansSwitch, LogSink, Sink
from batuta.health.alerts import AlertPolicy
from batuta.health.finding import Section, Severity
from batuta.health.jobs import JobHealthQuery
from batuta.health.queues import QueueLimits, WatchedQueue, unserved_check
from batuta.kernel.clock import Clock
from batuta.kernel.errors import InvalidSetting
from batuta.kernel.events import Events, Fanout
from batuta.kernel.identity import make_owner
from batuta.kernel.ids import Ids
from batuta.kernel.values import dataclass
from batuta.processes.heartbeat import HEARTBEAT_POLICY, Heartbeat
from batuta.queue.store import Unserved
from batuta.schedule.window import Window
from batuta.stores.connections import Connections, PoolSizes
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.queue.tasks import UnservedItems
from batuta.stores.sql.tables.alerts import SqlAlerts, SqlIncidents
from batuta.stores.sql.tables.executions import SqlTimetables
from batuta.stores.sql.tables.processes import SqlBeats, SqlRestarts, SqlTransactions
from batuta.supervise.loop import Loop, LoopPolicy
from batuta.supervise.running import LoopState
from batuta.supervise.supervisor import Supervisor
from batuta.texts import Texts
from batuta.texts.findings import FindingTexts

if TYPE_CHECKING:
    from batuta.targets.http import HttpCaller


@dataclass(slots=True, kw_only=True)
class Observability:
    """Builds the components that monitor one process: heartbeat, health checks, alerts. ``now`` returns the time of the
    application's clock, or None to use the database's clock.
    """

    connections: Connections
    clock: Clock
    ids: Ids
    events: Events
    now: Callable[[], datetime | None]
    probes: Mapping[str, Probe]
    jobs: JobHealthQuery
    circuits: Circuits
    unserved: Callable[[], UnservedItems]
    settings: EngineSettings
    zone: ZoneInfo
    version: str
    service: str  # name of this service in alerts
    sections: Sequence[Section]
    texts: Sequence[Path]  # files with the application's texts
    caller: Callable[[], "HttpCaller"]  # creates the HTTP client on the first alert sent to another host
    # Maps a family of circuits (the part of their names before the colon) to the circuit that they depend on. While
    # that circuit is open, health checks report no findings about the family.
    behind: dict[str, str] = field(default_factory=dict)
    beats: SqlBeats = field(init=False)
    restarts: SqlRestarts = field(init=False)
    timetables: SqlTimetables = field(init=False)
    transactions: SqlTransactions = field(init=False)
    aggregator: HealthAggregator = field(init=False)
    incidents: SqlIncidents = field(init=False)
    alerts: SqlAlerts = field(init=False)
    _queues: dict[str, WatchedQueue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        database, reports, registry = self.connections.database, self.jobs.reports, self.jobs.registry
        self.beats = SqlBeats(database, self.version, liveness=self.connections.liveness)
        self.restarts = SqlRestarts(database, self.ids)
        self.timetables = SqlTimetables(database, self.now)
        self.transactions = SqlTransactions(database)
        self.incidents = SqlIncidents(database, self.ids, self.events)
        self.alerts = SqlAlerts(database, self.incidents, self.ids, self.events)
        self.aggregator = HealthAggregator(self.clock, self.sections)
        old = timedelta(seconds=self.settings.batuta_old_transaction_seconds)
        for check in (
            checks.connectivity(self.probes, self.clock),
            checks.jobs(self.jobs, registry),
            checks.scheduler(self.beats, reports, self.timetables, registry, self.now),
            checks.workers(self.beats, self.restarts, self.now),
            checks.queues(self.queues, self.beats, self.now),
            unserved_check(self._find_unserved_tasks, self._find_unserved_stages, self.beats, self.now, self.clock),
            checks.circuits(self.circuits, self.behind),
            checks.transactions(self.transactions, old),
        ):
            self.aggregator.add(check)

    def watch_queue(
        self, queue: SqlQueue, limits: QueueLimits | None = None, *loops: str, hands_over: bool = False
    ) -> None:
        """Add one of the application's queues to the health checks. ``loops`` lists the names of the loops that serve
        the queue; the default is the queue's worker.
        """
        working = loops or (f"worker:{queue.name}",)
        self._queues[queue.name] = WatchedQueue(
            name=queue.name,
            pulse=queue.pulse,
            loops=working,
            limits=limits or QueueLimits(),
            hands_over=hands_over,
            is_empty=lambda: self.unserved().is_empty(queue),
        )

    def queues(self) -> Iterator[WatchedQueue]:
        yield from self._queues.values()
        unserved = self.unserved()
        for name, queue in unserved.queues.items():
            if name not in self._queues:
                loops, is_empty = (f"worker:{name}",), partial(unserved.is_empty, queue)
                yield WatchedQueue(name=name, pulse=queue.pulse, loops=loops, is_empty=is_empty)

    async def _find_unserved_tasks(self) -> list[Unserved]:
        return [each.items for each in await self.unserved().of_tasks()]

    async def _find_unserved_stages(self) -> list[Unserved]:
        return [each.items for each in await self.unserved().of_stages()]

    def loops(self, role: str, running: Callable[[], Collection[LoopState]]) -> Iterator[tuple[Loop, LoopPolicy]]:
        """Return the loops that a process of this role runs to assess health, to send alerts and, in the scheduler, to
        call the dead man's switch. ``running`` returns the loops that the process is running.
        """
        yield self.hub(), HUB_POLICY
        if role == "scheduler" and (url := self._secret("deadman_url")) is not None:
            yield DeadMansSwitch(lambda: self._ping(url), running, self.clock, self.events), PINGING

    def supervisor(
        self,
        role: str,
        own: Iterable[tuple[Loop, LoopPolicy]],
        heartbeat: Heartbeat | None = None,
        *,
        worker_name: str | None = None,
        shows: Collection[str] | None = None,
    ) -> Supervisor:
        """Build a supervisor for the role's own loops and the loops that monitor the process. ``heartbeat`` is a
        heartbeat that runs in another thread. If it is None, the supervisor gets a heartbeat loop of its own.
        """
        events = Fanout(self.events.emit)
        supervisor = Supervisor(self.clock, events)
        # Added first, because loops drain in reverse order and the heartbeat must drain last.
        if heartbeat is None:
            heartbeat = self.heartbeat(worker_name or role, lambda: supervisor.running, shows)
            supervisor.add(heartbeat, HEARTBEAT_POLICY)
        events.subscribe(heartbeat.on_event)
        for loop, policy in (*self.loops(role, lambda: supervisor.running), *own):
            supervisor.add(loop, policy)
        return supervisor

    def heartbeat(
        self, worker_name: str, running: Callable[[], Collection[LoopState]], shows: Collection[str] | None = None
    ) -> Heartbeat:
        """Create a heartbeat that runs on the process's own event loop, unlike the heartbeat in ``engine.process``,
        which runs in a separate thread.
        """
        return Heartbeat(
            worker_id=make_owner(self.ids),
            worker_name=worker_name,
            store=self.beats,
            restarts=self.restarts,
            running=running,
            clock=self.clock,
            now=self.now,
            shows=shows,
        )

    def hub(self) -> AlertHub:
        return AlertHub(
            make_owner(self.ids),
            self.aggregator,
            self.alerts,
            self._sinks,
            self._policy(),
            FindingTexts(Texts(self.settings.batuta_lang, self.texts)),
            self.clock,
            self.events,
            self.now,
        )

    def _policy(self) -> AlertPolicy:
        settings = self.settings
        minutes = {
            Severity.CRITICAL: settings.batuta_alert_critical_minutes,
            Severity.ERROR: settings.batuta_alert_error_minutes,
            Severity.WARNING: settings.batuta_alert_warning_minutes,
        }
        opens, closes = (int(hour) for hour in settings.batuta_alert_hours.split("-"))
        return AlertPolicy(
            zone=self.zone,
            cool_down={severity: timedelta(minutes=each) for severity, each in minutes.items()},
            hours=Window(opens=time(opens), lasts=timedelta(hours=closes - opens)),
        )

    def _sinks(self) -> list[Sink]:
        sinks: list[Sink] = [LogSink(self.events)]
        slack, webhook = self._secret("slack_webhook_url"), self._secret("alert_webhook_url")
        if slack or webhook:
            from batuta.targets.alerts import SlackSink, WebhookSink

            sinks += [SlackSink(slack, self.caller(), self.service)] if slack else []
            sinks += [WebhookSink(webhook, self.caller(), self.service)] if webhook else []
        return sinks

    async def _ping(self, url: str) -> None:
        from batuta.targets.alerts import ping

        await ping(self.caller(), url)

    def _secret(self, name: str) -> str | None:
        found = getattr(self.settings, name, None)
        return None if found is None else str(found.get_secret_value())


def connections_of(
    url: str | None, settings: EngineSettings, queue_lease: Callable[[], timedelta], run_lease: timedelta
) -> Connections:
    """Create the connections to a database. ``url`` is the address that the program passed; None means the setting
    DATABASE_URL.
    """
    direct = settings.database_direct_url
    try:
        return Connections(
            settings.database_url.get_secret_value() if url is None else url,
            PoolSizes(settings.batuta_pool_size, settings.batuta_liveness_pool_size),
            queue_lease=queue_lease,
            run_lease=run_lease,
            direct_url=None if direct is None else direct.get_secret_value(),
            page_limit=timedelta(seconds=settings.batuta_page_seconds),
        )
    except InvalidSetting as error:
        if url is None or error.facts["name"] != "DATABASE_URL":
            raise
        raise InvalidSetting(name="database_url", why=error.facts["why"]) from None
