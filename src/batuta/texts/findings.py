"""A finding in words."""

from datetime import datetime

from batuta.health.alerts import AlertedCause
from batuta.health.finding import Finding
from batuta.kernel.clock import brief
from batuta.texts import Texts


def message_of(finding: Finding, texts: Texts) -> str:
    return texts(f"finding.{finding.says}.message", **finding.facts)


def next_step_of(finding: Finding, texts: Texts) -> str:
    return texts(f"finding.{finding.says}.next", **finding.facts)


class FindingWords:
    """Findings as alerts tell them."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def message(self, finding: Finding) -> str:
        return message_of(finding, self._texts)

    def next_step(self, finding: Finding) -> str:
        return next_step_of(finding, self._texts)

    def describe_recovery(self, alerted: AlertedCause, now: datetime) -> str:
        return self._texts("alert.recovered", message=alerted.message, lasted=brief(now - alerted.since))
