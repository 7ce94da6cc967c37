"""The dashboard's first page: one sentence about overall health, the key figures, and the next step for each
finding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import NamedTuple

from batuta.dispatch.job import Job
from batuta.dispatch.plan import PAUSE_ALL, pause_of_category, pause_of_job
from batuta.engine.extension import Extension
from batuta.guard.switches import Switch
from batuta.health.finding import Assessment, Finding, Grade, Severity
from batuta.health.jobs import JobHealth, JobsSeen, JobState
from batuta.health.queues import Pulse
from batuta.kernel.reasons import decode
from batuta.kernel.values import dataclass
from batuta.queue.inspection import ErrorGroup
from batuta.runlog.reasons import is_pause
from batuta.texts.findings import message_of, next_on_page, next_step_of
from batuta.web.panel.pages.overview import fire_at, root_findings
from batuta.web.panel.words import Words

_LEVELS = {Grade.HEALTHY: "healthy", Grade.CRITICAL: "critical"}
JOBS = "/tarefas"
ELSEWHERE = "/incidentes"  # the page of findings that no other page explains
_STATES = {
    "jobs_failing": JobState.FAILING,
    "jobs_not_succeeding": JobState.FAILING,
    "jobs_stale": JobState.STALE,
}
MOST_GROUPS = 3  # maximum error groups shown below a finding about dead items
_ABOUT_DEAD = ("queue_dead", "queue_dead_kept")
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
class HealthSummary:
    """The state of the whole system. ``level`` is healthy, degraded or critical; ``sentence`` names the worst
    problem.
    """

    level: str
    sentence: str
    others: int  # number of other problems


@dataclass(frozen=True, slots=True)
class NextStep:
    """The next step for a finding: a page, and an action with values for its form."""

    page: str = ""
    action: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


class ShownGroup(NamedTuple):
    """An error group of a finding about dead items. ``page`` shows exactly this group."""

    queue: str
    signature: str
    items: int
    error: str
    page: str


class ShownFinding(NamedTuple):
    """A finding on the page. ``advice`` is the next step in the dashboard. ``commands`` is the next step in a terminal;
    it is empty if ``advice`` is enough. ``groups`` are the error groups of a finding about dead items.
    """

    severity: str
    message: str
    advice: str
    commands: str
    step: NextStep
    page_title: str
    groups: Sequence[ShownGroup] = ()


class NotRun(NamedTuple):
    """A job whose last expected fire did not run, with the reason in ``why``. If a pause is holding the job back,
    ``paused`` is the target of that pause, in the form that the action ``resume`` accepts; otherwise it is empty.
    ``job`` is empty if everything is paused. ``asked`` is the time of day with which the job's page explains the fire; it
    is empty for a fire of an earlier day.
    """

    job: str
    at: datetime | None
    why: str
    paused: str
    asked: str = ""


class KeyNumber(NamedTuple):
    key: str
    value: int
    page: str
    tone: str


def verdict(assessment: Assessment, words: Words) -> HealthSummary:
    """Return the verdict on overall health. Its level is the worse of two levels: the level of the score, and the level
    of the worst finding.
    """
    problems = [each for each in root_findings(assessment) if each.severity is not Severity.INFO]
    level = _LEVELS.get(assessment.grade, "degraded")
    if any(each.severity is Severity.CRITICAL for each in problems):
        level = "critical"
    elif problems and level == "healthy":
        level = "degraded"
    if problems:
        return HealthSummary(level, message_of(problems[0], words.texts), len(problems) - 1)
    return HealthSummary(level, words.texts("panel.all_well" if level == "healthy" else "panel.score_low"), 0)


def show_findings(
    assessment: Assessment,
    words: Words,
    extension: Extension,
    titles: Mapping[str, str],
    groups: Mapping[str, Sequence[ErrorGroup]] | None = None,
) -> list[ShownFinding]:
    """Return the findings with their next steps. ``titles`` maps the path of a screen to its title. ``groups`` maps the
    name of a queue to the error groups of its dead items.
    """
    return [
        _show(each, words, next_step(each, extension), titles, (groups or {}).get(queue_of_dead(each), ()))
        for each in root_findings(assessment)
    ]


def _show(
    finding: Finding, words: Words, step: NextStep, titles: Mapping[str, str], groups: Sequence[ErrorGroup]
) -> ShownFinding:
    """Return one finding as the page shows it. Advice that names commands is meant for the terminal, so the page shows
    it only if no dashboard page exists for the finding. If all dead items have the same error, the next step is the
    page of their error group.
    """
    whole = next_step_of(finding, words.texts)
    advice = next_on_page(finding, words.texts)
    if not advice and ("`" not in whole or step.page == ELSEWHERE):
        advice = whole
    screen = "/" + step.page.removeprefix("/").partition("?")[0].partition("/")[0]
    shown = [_show_group(each, queue_of_dead(finding), words) for each in groups[:MOST_GROUPS]]
    return ShownFinding(
        severity=finding.severity.value,
        message=message_of(finding, words.texts),
        advice=advice,
        commands=whole if "`" in whole and advice != whole else "",
        step=step if len(groups) != 1 else replace(step, page=shown[0].page),
        page_title=titles.get(screen, ""),
        groups=shown,
    )


def _show_group(group: ErrorGroup, queue: str, words: Words) -> ShownGroup:
    error = words.reason(decode(group.error)) or words.texts("panel.no_error")
    return ShownGroup(queue, group.signature, group.items, error, page_of_dead(queue, [group]))


def queue_of_dead(finding: Finding) -> str:
    """Return the name of the queue whose dead items a finding reports. Return an empty string if the finding is about
    something else.
    """
    return str(finding.facts.get("queue", "")) if finding.says in _ABOUT_DEAD else ""


def page_of_dead(queue: str, groups: Sequence[ErrorGroup]) -> str:
    """Return the address of the page that lists a queue's dead items. If all of them belong to one error group, the
    page is filtered by this group.
    """
    only = f"&erro={groups[0].signature}" if len(groups) == 1 else ""
    return f"/filas/{queue}?estado=dead{only}"


def next_step(finding: Finding, extension: Extension) -> NextStep:
    """Return the page to which the operator should go next, and the action that solves the problem if the dashboard has
    one.

    ``finding_pages`` maps the text key or the source of an application's finding to a page. If it has no entry for such
    a finding, the page is the screen that has the same name as the finding's source.
    """
    facts, says = finding.facts, finding.says
    own = {screen.path.removeprefix("/"): screen.path for screen in extension.screens if screen.in_navigation}
    for page in (extension.finding_pages.get(says), extension.finding_pages.get(finding.source)):
        if page is not None:
            return _step_to(page)
    if queue := facts.get("queue"):
        return _step_of_queue(says, str(queue))
    if job := facts.get("job"):
        return _step_to(f"{JOBS}/{job}")
    if says.startswith("circuit_"):
        return NextStep("/freios", "circuit.close", {"circuito": finding.cause.removeprefix("circuit.")})
    if says.startswith("jobs_") and facts.get("count") == 1:
        return _step_to(f"{JOBS}/{facts['jobs']}")
    if says.startswith("jobs_"):
        state = _STATES.get(says)
        return NextStep(JOBS if state is None else f"{JOBS}?estado={state.value}")
    if says == "batch_open":
        return NextStep("/filas", "batch.close", {"lote": str(facts["id"])})
    if says.startswith(_ABOUT_PROCESSES):
        return NextStep("/processos")
    return NextStep(own.get(finding.source, ELSEWHERE))


def _step_to(page: str) -> NextStep:
    """Return the next step that opens a page. If the page is a job's page, the step also offers to run the job."""
    job = page.removeprefix(f"{JOBS}/")
    return NextStep(page) if job == page else NextStep(page, "job.run", {"tarefa": job})


def _step_of_queue(says: str, queue: str) -> NextStep:
    match says:
        case "queue_held":
            return NextStep(f"/filas/{queue}", "resume", {"alvo": f"queue:{queue}"})
        case says if says in _ABOUT_DEAD:
            return NextStep(page_of_dead(queue, ()))
        case "queue_deserted" | "queue_unserved":
            return NextStep("/processos")
    return NextStep(f"/filas/{queue}")


def jobs_not_run(seen: JobsSeen, words: Words) -> list[NotRun]:
    """Return the jobs whose last expected fire did not run: late jobs, jobs with missed fires, and jobs that a pause is
    holding back or has held back. If everything is paused, return a single entry that stands for all jobs.
    """
    if (switch := _pause(PAUSE_ALL, seen)) is not None:
        return [NotRun("", switch.set_at, _why_paused(switch), "all:")]
    found = (_not_run(health, seen, words) for health in seen.jobs if health.job.finished)
    return [each for each in found if each is not None]


def _not_run(health: JobHealth, seen: JobsSeen, words: Words) -> NotRun | None:
    job, last = health.job, health.facts.last
    targets = {pause_of_job(job.name): f"job:{job.name}", pause_of_category(job.category): f"category:{job.category}"}
    due = None if last is None else last.scheduled_for or last.started_at
    for key, target in targets.items():
        if (switch := _pause(key, seen)) is not None and last is not None and last.status in ("skipped", "missed"):
            return NotRun(job.name, due, _why_paused(switch), target, _asked(job, due, seen.now))
    if health.is_stale:
        expected = health.expected_at
        return NotRun(job.name, expected, words.reason(health.why) or "", "", _asked(job, expected, seen.now))
    if last is not None and (last.status == "missed" or is_pause(last.reason)):
        return NotRun(job.name, due, words.reason(last.reason) or "", "", _asked(job, due, seen.now))
    return None


def _asked(job: Job, fire: datetime | None, now: datetime) -> str:
    asked = "" if fire is None else f"{fire.astimezone(job.zone):%H:%M}"
    return asked if fire_at(job, asked, now) == fire else ""


def _pause(key: str, seen: JobsSeen) -> Switch | None:
    """Return the pause with this switch key, or None if that pause is not in force."""
    switch = seen.switches.get(key)
    is_in_force = switch is not None and switch.on and (switch.until is None or switch.until > seen.now)
    return switch if is_in_force else None


def _why_paused(switch: Switch) -> str:
    return f"{switch.set_by}: {switch.reason}"


def key_numbers(seen: JobsSeen, pulses: Sequence[Pulse], held: int) -> list[KeyNumber]:
    late = sum(each.state in (JobState.STALE, JobState.FAILING) for each in seen.jobs)
    dead, due = sum(each.dead for each in pulses), sum(each.due for each in pulses)
    return [
        KeyNumber("late", late, "/tarefas?estado=problema", "failing"),
        KeyNumber("dead", dead, "/filas?estado=dead", "degraded"),
        KeyNumber("due", due, "/filas", "waiting"),
        KeyNumber("held", held, "/freios", "held"),
    ]
