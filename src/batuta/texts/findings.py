"""Renders findings (problems that health checks found) as text for JSON documents, pages and alerts."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from batuta.health.alerts import AlertedCause, Incident
from batuta.health.finding import MESSAGES, Assessment, Finding, Severity
from batuta.kernel.clock import brief
from batuta.kernel.reasons import Reason, read_reason
from batuta.texts import Texts


def message_of(finding: Finding, texts: Texts) -> str:
    return texts(finding.message_key, **finding.facts)


def next_step_of(finding: Finding, texts: Texts) -> str:
    return texts(f"finding.{finding.says}.next", **finding.facts)


def next_on_page(finding: Finding, texts: Texts) -> str:
    """Return the next step for a finding, worded for the dashboard, without terminal commands. The result is empty if a
    button on the page is enough.
    """
    key = f"finding.{finding.says}.panel"
    return texts(key, **finding.facts) if texts.get(key, "") else ""


def causes_of(incident: Incident, texts: Texts) -> list[str]:
    """Return the causes of an incident as sentences. A cause without a stored message is returned as its code."""
    return [texts.reason(_message(cause, stored)) for cause, stored in _stored(incident)]


def findings_of(incident: Incident) -> list[Finding]:
    """Return the findings that caused an incident. The severity is not stored, and the source is only the first word
    of the cause. A cause without a stored message has no facts.
    """
    return [_restore(cause, stored) for cause, stored in _stored(incident)]


def _stored(incident: Incident) -> list[tuple[str, Any]]:
    """Return the causes of an incident, each with the stored form of its message."""
    causes, messages = incident.details.get("causes"), incident.details.get("messages")
    found = messages if isinstance(messages, Mapping) else {}
    return [(str(cause), found.get(str(cause))) for cause in causes] if isinstance(causes, list) else []


def _restore(cause: str, stored: object) -> Finding:
    message = _message(cause, stored)
    code = message.code if isinstance(message, Reason) else ""
    return Finding(
        severity=Severity.CRITICAL,
        source=cause.partition(".")[0],
        cause=cause,
        says=code.removeprefix(MESSAGES).partition(".")[0],
        facts=message.facts if isinstance(message, Reason) else {},
    )


def _message(cause: str, stored: object) -> str:
    """Return a cause's message as a reason, restored from its stored form. If it cannot be restored, return the cause
    itself.
    """
    if not isinstance(stored, Mapping):
        return cause
    return read_reason(cause, stored.get("code"), stored.get("facts"))


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
