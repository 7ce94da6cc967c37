"""Renders findings (problems that health checks found) as text for JSON documents, pages and alerts."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from batuta.health.alerts import AlertedCause
from batuta.health.finding import Assessment, Finding
from batuta.kernel.clock import brief
from batuta.texts import Texts


def message_of(finding: Finding, texts: Texts) -> str:
    return texts(f"finding.{finding.says}.message", **finding.facts)


def next_step_of(finding: Finding, texts: Texts) -> str:
    return texts(f"finding.{finding.says}.next", **finding.facts)


def next_on_page(finding: Finding, texts: Texts) -> str:
    """Return the next step for a reader of the dashboard, without commands. The result is empty if a button on the page
    is enough.
    """
    key = f"finding.{finding.says}.panel"
    return texts(key, **finding.facts) if texts.get(key, "") else ""


def describe_findings(
    assessment: Assessment, texts: Texts, show_instant: Callable[[datetime | None], str | None]
) -> list[dict[str, Any]]:
    """Return the findings for JSON documents, worst first."""
    return [
        {
            "severity": finding.severity.value,
            "source": finding.source,
            "cause": finding.cause,
            "message": message_of(finding, texts),
            "value": finding.value,
            "threshold": finding.threshold,
            "since": show_instant(finding.since),
            "next_step": next_step_of(finding, texts),
            "explained_by": assessment.silenced.get(finding.cause),
        }
        for finding in assessment.findings
    ]


class FindingTexts:
    """Renders findings as alert texts: message, next step and recovery."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def message(self, finding: Finding) -> str:
        return message_of(finding, self._texts)

    def next_step(self, finding: Finding) -> str:
        return next_step_of(finding, self._texts)

    def describe_recovery(self, alerted: AlertedCause, now: datetime) -> str:
        return self._texts("alert.recovered", message=alerted.message, lasted=brief(now - alerted.since))
