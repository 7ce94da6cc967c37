"""Health of batches. A batch that stays open after all its tasks have ended was probably abandoned by a program that
died.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from batuta.health.finding import QUEUES, Check, Finding, Report, Severity
from batuta.kernel.clock import brief

ABANDONED_AFTER = timedelta(hours=1)
MOST_REPORTED = 20
LOST = 5


def batches_check(
    find: Callable[[timedelta], Awaitable[Sequence[Mapping[str, Any]]]], now: Callable[[], datetime]
) -> Check:
    """Return the check for abandoned batches. ``find(age)`` returns the batches that have been open for at least
    ``age`` even though all their tasks have ended.
    """

    async def ask() -> Report:
        return judge_batches(await find(ABANDONED_AFTER), now())

    return Check(name="batches", section=QUEUES, ask=ask)


def judge_batches(abandoned: Sequence[Mapping[str, Any]], now: datetime) -> Report:
    return Report(
        findings=tuple(
            Finding(
                severity=Severity.WARNING,
                source=QUEUES,
                cause=f"batch.open.{row['id']}",
                says="batch_open",
                facts={"id": row["id"], "name": row["name"], "age": brief(now - row["created_at"])},
                since=row["created_at"],
            )
            for row in abandoned[:MOST_REPORTED]
        ),
        lost=LOST if abandoned else 0,
    )
