"""``batuta health``: the score, why it is what it is, and what to do about it."""

from typing import Any

import typer

from batuta.cli.desk import FAILED, Desk, JsonFlag, desk_of, wait_for
from batuta.health.finding import Severity
from batuta.health.score import WEIGHTS, WHOLE, Assessment, Grade
from batuta.texts import Texts
from batuta.texts.findings import message_of, next_step_of

COLOURS = {Grade.HEALTHY: "green", Grade.ATTENTION: "yellow", Grade.DEGRADED: "dark_orange", Grade.CRITICAL: "red"}
SIGNS = {
    Severity.CRITICAL: ("✗", "red"),
    Severity.ERROR: ("✗", "red"),
    Severity.WARNING: ("!", "yellow"),
    Severity.INFO: ("·", "dim"),
}


def add_to(cli: typer.Typer, texts: Texts) -> None:
    cli.command("health", help=texts("cli.health.help"))(health)


def health(context: typer.Context, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    assessment = wait_for(_looked(desk))
    desk.show(_document(desk, assessment), as_json, lambda: _tell(desk, assessment))
    if assessment.is_critical:
        raise typer.Exit(FAILED)


async def _looked(desk: Desk) -> Assessment:
    async with desk.work() as work:
        return await work.health.look(fresh=True)


def _document(desk: Desk, assessment: Assessment) -> dict[str, Any]:
    texts, zone = desk.texts(), desk.work().zone
    return {
        "score": assessment.score,
        "max_score": WHOLE,
        "level": assessment.grade.value,
        "breakdown": {
            section.value: {"score": points, "max": WEIGHTS[section]} for section, points in assessment.points.items()
        },
        "findings": [
            {
                "severity": finding.severity.value,
                "source": finding.source,
                "cause": finding.cause,
                "message": message_of(finding, texts),
                "value": finding.value,
                "threshold": finding.threshold,
                "since": finding.since and finding.since.astimezone(zone).isoformat(timespec="seconds"),
                "next_step": next_step_of(finding, texts),
                "explained_by": assessment.silenced.get(finding.cause),
            }
            for finding in assessment.findings
        ],
        "timestamp": assessment.at.astimezone(zone).isoformat(timespec="seconds"),
    }


def _tell(desk: Desk, assessment: Assessment) -> None:
    texts, grade = desk.texts(), assessment.grade
    desk.out.print(f"{assessment.score}/{WHOLE}", style=f"bold {COLOURS[grade]}", end=" ")
    desk.say(texts(f"grade.{grade.value}"))
    for section, points in assessment.points.items():
        desk.say(f"  {texts(f'section.{section.value}'):<24} {points:>3}/{WEIGHTS[section]}")
    if not assessment.findings:
        desk.say(texts("cli.health.nothing"))
    for finding in assessment.findings:
        sign, colour = SIGNS[finding.severity]
        desk.out.print(sign, style=colour, end=" ")
        desk.say(message_of(finding, texts))
        root = assessment.silenced.get(finding.cause)
        step = next_step_of(finding, texts) if root is None else texts("cli.health.explained", cause=root)
        if finding.severity is not Severity.INFO:
            desk.say(f"  → {step}")
