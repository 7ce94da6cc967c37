"""Write docs/jobs-schedule.md from the jobs that Julia declares: the categories, a timeline of the day, and a
comparison of the profiles.
"""

from collections.abc import Collection, Iterator
from datetime import date, timedelta
from pathlib import Path

from app.composition.jobs import PROFILES, WINDOWS, Profile
from app.main import build
from app.settings import Settings
from batuta.config import load_settings
from batuta.dispatch.job import Job
from batuta.dispatch.plan import Change, Comparison, compare, day_of
from batuta.runlog.log import Controls
from batuta.schedule.due import fires_per_week

FILE = Path(__file__).parents[1] / "docs" / "jobs-schedule.md"
MONDAY = date(2026, 1, 5)
# A job with more fires per day than this is shown with its cron expression instead of a list of times.
OFTEN = 6
HEAD = """# Horários das tarefas agendadas

`python3 dev.py check --fix` gera esta página a partir do catálogo (`app/composition/jobs.py`), e um teste a compara com o código.
Os horários são de Brasília. `batuta schedule` mostra os horários no terminal;
`batuta schedule compare continuo janelas` compara os dois perfis.
"""


def document() -> str:
    timetables = {profile: _jobs(profile) for profile in PROFILES}
    parts = [HEAD, *_overview(timetables), *_windows()]
    for profile, jobs in timetables.items():
        parts += _timeline(profile, jobs)
    parts += _comparison(compare(*(timetables[profile] for profile in PROFILES)))
    return "\n".join(parts) + "\n"


def _jobs(profile: Profile) -> list[Job]:
    registry = build(load_settings(Settings, {})).work.registry
    return list(registry.timetable(Controls(profile=profile)).values())


def _overview(timetables: dict[Profile, list[Job]]) -> Iterator[str]:
    yield "## Visão geral\n"
    yield (
        "| categoria | "
        + " | ".join(f"{each}: tarefas agendadas | {each}: disparos por dia" for each in PROFILES)
        + " |"
    )
    yield "|---|" + "---:|---:|" * len(PROFILES)
    for categoria in dict.fromkeys(job.category for jobs in timetables.values() for job in jobs):
        cells = [_cells([job for job in jobs if job.category == categoria]) for jobs in timetables.values()]
        yield f"| {categoria} | {' | '.join(cells)} |"
    yield f"| **todas** | {' | '.join(_cells(jobs) for jobs in timetables.values())} |"


def _cells(jobs: Collection[Job]) -> str:
    per_day = sum(fires_per_week(job.cron, job.zone) for job in jobs) / 7
    return f"{len(jobs)} | {_decimal(per_day)}"


def _windows() -> Iterator[str]:
    yield "\n## Janelas de campanhas (perfil `janelas`)\n"
    yield "| janela | abre | dura | dias |\n|---|---|---|---|"
    for name, window in WINDOWS.items():
        yield f"| {name} | {window.opens:%H:%M} | {window.lasts / timedelta(hours=1):g} h | seg–sex |"
    yield (
        "\nFora dessas janelas, nenhuma campanha começa. `batuta windows set manha 11:00` altera uma janela; a mudança vale "
        "em até um segundo."
    )


def _timeline(profile: Profile, jobs: Collection[Job]) -> Iterator[str]:
    yield f"\n## Uma segunda-feira no perfil `{profile}`\n\n```text"
    of_day = day_of(jobs, MONDAY, next(iter(jobs)).zone)
    times: dict[str, int] = {}
    for fire in of_day:
        times[fire.job.name] = times.get(fire.job.name, 0) + 1
    at: dict[str, list[str]] = {}
    for fire in of_day:
        if times[fire.job.name] <= OFTEN:
            at.setdefault(f"{fire.at.astimezone(fire.job.zone):%H:%M}", []).append(fire.job.name)
    yield from (f"{when} - {', '.join(names)}" for when, names in at.items())
    yield "\nVárias vezes por dia:"
    for job in sorted(jobs, key=lambda each: (-times.get(each.name, 0), each.name)):
        if times.get(job.name, 0) > OFTEN:
            yield f"- {job.name} ({job.cron.text}): {times[job.name]} vezes por dia"
    yield "```"


def _comparison(found: Comparison) -> Iterator[str]:
    yield "\n## Comparação dos dois perfis\n"
    yield "As tabelas mostram a média de disparos por dia em uma semana, calculada a partir das expressões cron.\n"
    yield "| tarefa agendada | continuo | janelas | diferença |\n|---|---:|---:|---:|"
    for change in found.per_job:
        yield _row(change.job, change)
    yield _row("**tarefas agendadas que mudam**", found.changed)
    yield _row("**todas as tarefas agendadas**", found.all)
    yield "\n| hora | continuo | janelas |\n|---|---:|---:|"
    for change in found.per_hour:
        yield f"| {change.job}h | {_decimal(change.before)} | {_decimal(change.after)} |"


def _row(name: str, change: Change) -> str:
    difference = (
        f"{'-' if change.reduction > 0 else '+'}{_decimal(abs(100 * change.reduction))} %" if change.before else "nova"
    )
    return f"| {name} | {_decimal(change.before)} | {_decimal(change.after)} | {difference} |"


def _decimal(number: float) -> str:
    """Format a number with one decimal in Portuguese notation: 2.880,0."""
    return f"{number:,.1f}".translate(str.maketrans(",.", ".,"))
