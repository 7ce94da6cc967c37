"""Runs tasks with ARQ, a task queue on Redis: the relay, with which the engine's worker sends tasks to ARQ, and the
functions and loops for an ordinary ARQ worker.
"""

from collections.abc import Callable
from datetime import timedelta

from arq.connections import ArqRedis
from arq.worker import Function

from batuta.engine.batuta import Batuta
from batuta.engine.declarations.queues import Served, queue_loops
from batuta.kernel.identity import make_owner
from batuta.kernel.leases import LeaseHolder
from batuta.processes.heartbeat import HEARTBEAT_POLICY
from batuta.stores.arq import ARQ_RUNNER
from batuta.stores.arq.calls import encode_call
from batuta.stores.arq.relay import ArqRelay
from batuta.stores.arq.runner import ArqRunner, RunnerContext, functions
from batuta.stores.sql.queue.tasks import SqlTasks
from batuta.supervise.loop import LoopPolicy
from batuta.supervise.retention import PRUNER_POLICY, Pruner
from batuta.supervise.supervisor import Supervisor
from batuta.tasks.ends import TASK_ENDS_POLICY
from batuta.tasks.service import REHOMER_POLICY, THREAD_WATCH_POLICY, TaskRehomer, ThreadWatch

LISTENING = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), max_failures=100, outlives=True)


def add_arq_relay(work: Batuta, make_client: Callable[[], ArqRedis]) -> ArqRelay:
    """Make ARQ run the tasks: the engine's worker sends each call to Redis and receives its outcome.

    ``make_client`` returns a client that has not connected yet, such as ``ArqRedis.from_url(…)``. The relay closes the
    client.
    """
    relay = ArqRelay(make_client, work.clock, _store(work).find_wanted)
    work.relay_tasks(relay.run)
    work.add_loop(relay, LISTENING)
    work.closers.append(relay.close)
    for name in work.task_registry.queues:
        work.observability.watch_queue(work.queues[name], None, ARQ_RUNNER, hands_over=True)
    return relay


class ArqWorker:
    """The engine's contribution to an ordinary ARQ worker: the functions that ARQ calls, and the loops that run
    alongside ARQ's own loop.

    The loops claim tasks, send them to ARQ, and recover tasks of dead processes. ``relay`` is None if the engine's own
    workers run this application's tasks.
    """

    def __init__(self, name: str, work: Batuta, relay: ArqRelay | None, *, keep_result: timedelta) -> None:
        self._name = name
        self._work = work
        self._relay = relay
        self._store = _store(work)
        self._here = RunnerContext(
            self._store.report_of_call,
            self._store.find_wanted,
            work.clock,
            work.events,
            max_result=work.worker_policy.max_result,
        )
        # Pass both functions to ARQ's settings. ARQ's default is pickle, which can execute code that another program
        # wrote to Redis.
        self.job_serializer = encode_call
        self.job_deserializer = self._here.decode_call
        self.functions: list[Function] = functions(work.task_registry, self._here, keep_result=keep_result)

    def supervisor(self, redis: ArqRedis) -> Supervisor:
        """Build a supervisor with the engine's loops. The caller adds its own loops and runs the supervisor."""
        self._here.hide_running(redis)
        work, supervisor = self._work, Supervisor(self._work.clock, self._work.events)
        # Health checks look for this heartbeat to learn whether ARQ runs the calls.
        supervisor.add(work.observability.heartbeat(self._name, lambda: supervisor.running), HEARTBEAT_POLICY)
        supervisor.add(ArqRunner(redis), LISTENING)
        supervisor.add(ThreadWatch(work.task_registry, work.events), THREAD_WATCH_POLICY)
        handlers = work.task_registry.handlers(self._store.report)
        served = [
            Served(work.queues[name], lambda lease: handlers.get(lease.row["name"]), work.worker_policy)
            for name in work.task_registry.queues
        ]
        lease_holder = LeaseHolder(owner=make_owner(work.ids), lease=work.queue_lease)
        looks = work.worker_policy.look_every
        for loop, policy in queue_loops(
            served, lease_holder, looks, work.wakeups, work.clock, work.events, presence=work.presence
        ):
            supervisor.add(loop, policy)
        if self._relay is not None:
            supervisor.add(self._relay, LISTENING)
        supervisor.add(work.task_ends, TASK_ENDS_POLICY)
        supervisor.add(TaskRehomer(self._store, work.task_registry), REHOMER_POLICY)
        supervisor.add(Pruner(work.retentions()), PRUNER_POLICY)
        for loop, policy in work.line_loops():
            supervisor.add(loop, policy)
        return supervisor


def _store(work: Batuta) -> SqlTasks:
    return SqlTasks(work.database, work.ids, work.clock, work.wakeups.wake_here)
