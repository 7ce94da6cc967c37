"""What the database knows of all processes together: the jobs as health judges them, and how deep the queues are."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from batuta.guard.breaker import Circuit, CircuitState
from batuta.guard.rate import Limit
from batuta.health.transactions import OpenTransaction
from batuta.health.watch import JobsSeen
from batuta.metrics.counting import family_of
from batuta.queue.store import Depth


def jobs_seen(seen: JobsSeen) -> Sequence[Metric]:
    running = _gauge("job_running", "Runs that are going on", "job")
    stale = _gauge("job_stale", "1: a fire was expected, its SLA is over, and nothing good has started since", "job")
    held = _gauge("job_held", "1: a switch or a pause keeps it from running", "job")
    last_day = _gauge("job_last_day_runs", "Fires of the last 24 hours by how they ended", "job", "status")
    last = _gauge("job_last_start_timestamp_seconds", "When it was last started", "job")
    upcoming = _gauge("job_next_fire_timestamp_seconds", "When it is next due", "job")
    for health in seen.jobs:
        name, facts = health.job.name, health.facts
        running.add_metric([name], facts.running)
        stale.add_metric([name], float(health.is_stale))
        held.add_metric([name], float(health.held is not None))
        upcoming.add_metric([name], health.next_at.timestamp())
        if facts.last is not None:
            last.add_metric([name], facts.last.started_at.timestamp())
        for status, runs in sorted(facts.counts.by_status.items()):
            last_day.add_metric([name, status], runs)
    return (running, stale, held, last_day, last, upcoming)


def queues_seen(depths: Mapping[str, Depth]) -> Sequence[Metric]:
    items = _gauge("queue_items", "Items by state; due: they wait, and their time has come", "queue", "state")
    oldest = _gauge("queue_oldest_due_age_seconds", "How long the oldest due item has waited; 0: none is due", "queue")
    for queue, depth in depths.items():
        for state in ("due", "later", "running", "dead"):
            items.add_metric([queue, state], getattr(depth, state))
        oldest.add_metric([queue], depth.oldest_due.total_seconds())
    return (items, oldest)


def transaction_seen(oldest: OpenTransaction | None) -> Sequence[Metric]:
    age = _gauge("database_oldest_transaction_seconds", "Age of the transaction that keeps dead rows; 0: there is none")
    since = _gauge("database_transactions_since_oldest", "Transactions since that one began; 0: there is none")
    age.add_metric([], 0 if oldest is None else oldest.lasts.total_seconds())
    since.add_metric([], 0 if oldest is None else oldest.transactions_since)
    return (age, since)


def circuits_seen(circuits: Iterable[Circuit]) -> Sequence[Metric]:
    """A family is told as one: its members may be somebody's numbers."""
    states = _gauge("circuits", "Circuit breakers by state", "circuit", "state")
    seen: Counter[tuple[str, str]] = Counter((family_of(each.name), each.state.value) for each in circuits)
    for name in sorted({name for name, _ in seen}):
        for state in CircuitState:
            states.add_metric([name, state.value], seen[name, state.value])
    return (states,)


def limits_seen(limits: Iterable[Limit], used: Mapping[str, int]) -> Sequence[Metric]:
    tokens = _gauge("rate_limit_used", "Tokens of a rate limit that count now", "limit")
    most = _gauge("rate_limit_most", "Tokens of a rate limit there are in its window", "limit")
    for limit in limits:
        tokens.add_metric([limit.name], used[limit.name])
        most.add_metric([limit.name], limit.most)
    return (tokens, most)


def _gauge(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    names: Iterable[str] = labels
    return GaugeMetricFamily(f"batuta_{name}", meaning, labels=list(names))
