"""The score and why, as the first page shows them: what explains the rest, and no more than can be read at a glance."""

from collections.abc import Sequence
from dataclasses import dataclass

from batuta.health.score import WEIGHTS, Assessment
from batuta.texts import Texts
from batuta.texts.findings import message_of, next_step_of

MOST_FINDINGS = 5


@dataclass(frozen=True, slots=True)
class PartShown:
    name: str
    points: int
    weight: int


@dataclass(frozen=True, slots=True)
class FindingShown:
    severity: str
    message: str
    next_step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthShown:
    score: int
    grade: str
    parts: Sequence[PartShown]
    findings: Sequence[FindingShown]
    more: int


def shown(assessment: Assessment, texts: Texts) -> HealthShown:
    roots = [finding for finding in assessment.findings if finding.cause not in assessment.silenced]
    return HealthShown(
        score=assessment.score,
        grade=assessment.grade.value,
        parts=[PartShown(section.value, points, WEIGHTS[section]) for section, points in assessment.points.items()],
        findings=[
            FindingShown(finding.severity.value, message_of(finding, texts), next_step_of(finding, texts))
            for finding in roots[:MOST_FINDINGS]
        ],
        more=max(0, len(roots) - MOST_FINDINGS),
    )
