"""A finding in words."""

from batuta.health.finding import Finding
from batuta.texts import Texts


def message_of(finding: Finding, texts: Texts) -> str:
    return texts(f"finding.{finding.says}.message", **finding.facts)


def next_step_of(finding: Finding, texts: Texts) -> str:
    return texts(f"finding.{finding.says}.next", **finding.facts)
