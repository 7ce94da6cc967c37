"""Transactions that stay open. While one of them holds the oldest snapshot (its xmin), no row that dies after it can be removed.

A queue's table is updated all the time, so its dead rows pile up under such a transaction and every claim reads past them.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from batuta.health.finding import CONNECTIVITY, Check, Finding, Report, Severity
from batuta.kernel.clock import brief

OLD = timedelta(minutes=1)
# Fewer than so many transactions since: nothing is written, and so nothing piles up.
BUSY = 10_000
# So many times as old as what is old, under load: the queue is slow by now, and becomes slower.
MUCH_TOO_OLD = 10
CAUSE = "database.old_transaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    pid: int | None  # None: it is a prepared one, and has no process
    name: str  # the program's name for itself, or the prepared transaction's
    lasts: timedelta
    transactions_since: int


class Transactions(Protocol):
    async def oldest(self) -> OpenTransaction | None:
        """Of those that keep dead rows from being removed; None: there is none, or the database has no such thing."""
        ...


def transactions(store: Transactions, old: timedelta) -> Check:
    async def ask() -> Report:
        return judge_transaction(await store.oldest(), old)

    return Check(name="transactions", section=CONNECTIVITY, ask=ask)


def judge_transaction(oldest: OpenTransaction | None, old: timedelta) -> Report:
    if oldest is None or oldest.lasts <= old:
        return Report()
    severity, lost = _weight(oldest, old)
    finding = Finding(
        severity=severity,
        source=CONNECTIVITY,
        cause=CAUSE,
        says="old_transaction" if oldest.pid is not None else "old_prepared",
        facts={
            "pid": oldest.pid,
            "name": oldest.name,
            "lasts": brief(oldest.lasts),
            "count": oldest.transactions_since,
        },
        value=oldest.lasts.total_seconds(),
        threshold=old.total_seconds(),
    )
    return Report(findings=(finding,), lost=lost)


def _weight(oldest: OpenTransaction, old: timedelta) -> tuple[Severity, int]:
    if oldest.transactions_since < BUSY:
        return Severity.WARNING, 4
    if oldest.lasts < MUCH_TOO_OLD * old:
        return Severity.ERROR, 8
    return Severity.CRITICAL, 20
