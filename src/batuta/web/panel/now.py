"""The first page: one sentence about overall health, the key numbers, and the next step of each finding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from batuta.engine.extension import Extension
from batuta.health.finding import Assessment, Finding, Grade, Severity
from batuta.health.jobs import JobsSeen, JobState
from batuta.health.queues import Pulse
from batuta.texts.findings import message_of, next_step_of
from batuta.web.panel.overview import root_findings
from batuta.web.panel.words import Words

_LEVELS = {Grade.HEALTHY: "healthy", Grade.CRITICAL: "critical"}
_WORST_PARTS = 3
_ABOUT_PROCESSES = (
    "worker",
    "role",
    "loop",
    "scheduler",
    "processes",
    "threads",
    "older_timetable",
    "part_",
    "check_",
    "old_",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of the whole system. ``level`` is healthy, degraded or critical; ``sentence`` names the worst problem."""

    level: str
    sentence: str
    others: int  # number of further problems


@dataclass(frozen=True, slots=True)
class NextStep:
    """The next step of a finding: a page, and an action with values for its form."""

    page: str = ""
    action: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


class ShownFinding(NamedTuple):
    severity: str
    message: str
    advice: str
    step: NextStep


class KeyNumber(NamedTuple):
    key: str
    value: int
    page: str
    tone: str


class Part(NamedTuple):
    name: str
    points: int
    most: int


def verdict(assessment: Assessment, words: Words) -> Verdict:
    """Return the verdict on overall health. Its level is never better than the level of the score or of the worst
    finding.
    """
    problems = [each for each in root_findings(assessment) if each.severity is not Severity.INFO]
    level = _LEVELS.get(assessment.grade, "degraded")
    if any(each.severity is Severity.CRITICAL for each in problems):
        level = "critical"
    elif problems and level == "healthy":
        level = "degraded"
    if problems:
        return Verdict(level, message_of(problems[0], words.texts), len(problems) - 1)
    return Verdict(level, words.texts("panel.all_well" if level == "healthy" else "panel.score_low"), 0)


def worst_parts(assessment: Assessment) -> list[Part]:
    """Return the sections that lost the most points."""
    hurt = [Part(name, part.points, part.most) for name, part in assessment.sections.items() if part.points < part.most]
    return sorted(hurt, key=lambda part: part.points - part.most)[:_WORST_PARTS]


def show_findings(assessment: Assessment, words: Words, extension: Extension) -> list[ShownFinding]:
    return [
        ShownFinding(
            each.severity.value,
            message_of(each, words.texts),
            next_step_of(each, words.texts),
            next_step(each, extension),
        )
        for each in root_findings(assessment)
    ]


def next_step(finding: Finding, extension: Extension) -> NextStep:
    """Return the page to which the operator should go next, and the action that solves the problem if the dashboard has
    one.

    A finding of the application leads to the screen that ``finding_pages`` names for its source. Without an entry for
    its source, it leads to the screen with the name of the source.
    """
    facts, says = finding.facts, finding.says
    if queue := facts.get("queue"):
        return _step_of_queue(says, str(queue))
    if job := facts.get("job"):
        return NextStep(f"/tarefas/{job}", "job.run", {"tarefa": str(job)})
    if says.startswith("circuit_"):
        return NextStep("/freios", "circuit.close", {"circuito": finding.cause.removeprefix("circuit.")})
    if says.startswith("jobs_"):
        states = {
            "jobs_failing": JobState.FAILING,
            "jobs_not_succeeding": JobState.FAILING,
            "jobs_stale": JobState.STALE,
        }
        state = states.get(says)
        return NextStep("/tarefas" if state is None else f"/tarefas?estado={state.value}")
    if says.startswith(_ABOUT_PROCESSES):
        return NextStep("/processos")
    own = {screen.path.removeprefix("/"): screen.path for screen in extension.screens if screen.in_navigation}
    return NextStep({**own, **extension.finding_pages}.get(finding.source, "/incidentes"))


def _step_of_queue(says: str, queue: str) -> NextStep:
    match says:
        case "queue_held":
            return NextStep(f"/filas/{queue}", "resume", {"alvo": f"queue:{queue}"})
        case "queue_dead" | "queue_dead_kept":
            return NextStep(f"/filas/{queue}?estado=dead")
        case "queue_deserted" | "queue_unserved":
            return NextStep("/processos")
    return NextStep(f"/filas/{queue}")


def key_numbers(seen: JobsSeen, pulses: Sequence[Pulse], held: int) -> list[KeyNumber]:
    late = sum(each.state in (JobState.STALE, JobState.FAILING) for each in seen.jobs)
    dead, due = sum(each.dead for each in pulses), sum(each.due for each in pulses)
    return [
        KeyNumber("late", late, "/tarefas?estado=problema", "failing"),
        KeyNumber("dead", dead, "/filas?estado=dead", "degraded"),
        KeyNumber("due", due, "/filas", "waiting"),
        KeyNumber("held", held, "/freios", "held"),
    ]
