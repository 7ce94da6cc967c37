"""Processes that end as often as they are started, and loops that are stuck again and again: said once, while it goes on."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from batuta.health.finding import Finding, Report, Severity, merged
from batuta.kernel.durations import brief
from batuta.supervise.comeback import Budget
from batuta.supervise.restarts import Restart

BUDGET = Budget()
COUNTED = BUDGET.window
STUCK_OFTEN = 3
SOURCE = "workers"


def cause_of(role: str) -> str:
    return f"workers.crashing.{role}"


def judge_restarts(restarts: Sequence[Restart], now: datetime) -> Report:
    """``restarts``: newest first. A role is in a crash loop until it has lived for as long as ends are counted."""
    recent = [each for each in restarts if each.loop is None and now - each.at < COUNTED]
    newest = {each.worker_name: each for each in reversed(recent) if each.restarts_in_window >= BUDGET.most}
    stuck = Counter(each.loop for each in restarts if each.loop is not None and now - each.at < COUNTED)
    often = sorted((loop, count) for loop, count in stuck.items() if loop is not None and count >= STUCK_OFTEN)
    return merged([*(_looping(newest[role], now) for role in sorted(newest)), *(_stuck(*each) for each in often)])


def _stuck(loop: str, count: int) -> Report:
    """One restart is help; several are a fault that help does not reach."""
    finding = Finding(
        severity=Severity.ERROR,
        source=SOURCE,
        cause=f"loop.stuck.{loop}",
        says="loop_stuck",
        facts={"loop": loop, "count": count, "window": brief(COUNTED)},
        value=count,
        threshold=STUCK_OFTEN,
    )
    return Report(findings=(finding,), lost=5)


def _looping(last: Restart, now: datetime) -> Report:
    finding = Finding(
        severity=Severity.CRITICAL,
        source=SOURCE,
        cause=cause_of(last.worker_name),
        says="role_crashing",
        facts={
            "role": last.worker_name,
            "count": last.restarts_in_window,
            "window": brief(COUNTED),
            "detail": last.detail,
            "last": brief(now - last.at),
        },
        value=last.restarts_in_window,
        threshold=BUDGET.most,
    )
    return Report(findings=(finding,), lost=15)
