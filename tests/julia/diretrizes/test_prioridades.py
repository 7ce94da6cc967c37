"""The active briefing decides which vacancies are urgent, and the team is notified once of each change. The tests run
on both databases.
"""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.diretrizes.jobs import DirectiveJobs
from app.contexts.equipe.avisos import AVISOS
from app.contexts.plantoes.model import MotivoDaCancelada
from app.contexts.plantoes.urgencia import _day
from app.integrations.documents.folder import MarkdownFolder
from batuta.queue.outcome import Done
from batuta.receive.endpoints import JobCall
from tests.julia.envio.sending import Office
from tests.julia.equipe.test_avisos import Mural, deliver, notices
from tests.julia.plantoes.mesa import HOSPITAL, add_vaga, shifts
from tests.julia.tables import rows, write

NAMED = f"## Vagas prioritárias\n- {HOSPITAL} - 20/03 - até R$ 1.800\n"


async def run(office: Office, folder: Path, text: str) -> dict[str, Any]:
    (folder / "briefing.md").write_text(text, encoding="utf-8")
    office.clock.step(timedelta(minutes=1))
    now, julia = office.clock.now(), julia_of(office.work)
    jobs = DirectiveJobs(julia.directives.diretrizes, MarkdownFolder(folder), str(folder), julia.shifts.urgencias)
    done = await jobs.sincronizar_briefing(
        JobCall(key="k", params={}, started_at=now, deadline=now + timedelta(minutes=5))
    )
    assert isinstance(done, Done)
    assert isinstance(done.result, dict)
    found: Any = done.result["vagas_urgentes"]
    return dict(found)


async def urgent(office: Office) -> set[str]:
    return {row["id"] for row in await rows(office.work.database, "SELECT id FROM vagas WHERE urgente")}


async def test_open_vacancies_of_the_named_hospital_and_day_are_urgent(office: Office, tmp_path: Path) -> None:
    named = await add_vaga(office)
    await add_vaga(office, data=date(2026, 3, 21))
    await add_vaga(office, hospital="Hospital Inventado")
    closed = await add_vaga(office, valor=1600)
    await shifts(office).plantoes.cancelar(closed, MotivoDaCancelada.CANCELADA_PELO_HOSPITAL, por="gestora")
    assert await run(office, tmp_path, NAMED) == {"total": 1, "mudaram": 1, "avisos": []}
    assert await urgent(office) == {named}
    assert (await run(office, tmp_path, NAMED))["mudaram"] == 0
    (noted,) = await rows(office.work.database, "SELECT actor, subject FROM audit_log WHERE action = 'vaga.urgente'")
    assert (noted["actor"], noted["subject"]) == ("briefing", f"vaga:{named}")


async def test_urgency_ends_when_the_briefing_no_longer_names_it(office: Office, tmp_path: Path) -> None:
    named = await add_vaga(office)
    await run(office, tmp_path, NAMED)
    assert await urgent(office) == {named}
    assert await run(office, tmp_path, "## Foco\n- Pediatria\n") == {"total": 0, "mudaram": 1, "avisos": []}
    assert await urgent(office) == set()


async def test_a_vacancy_created_later_becomes_urgent_at_the_next_run(office: Office, tmp_path: Path) -> None:
    first = await add_vaga(office)
    await run(office, tmp_path, NAMED)
    second = await add_vaga(office, valor=1700)
    await run(office, tmp_path, NAMED)
    assert await urgent(office) == {first, second}


async def test_an_unknown_hospital_or_day_is_a_warning(office: Office, tmp_path: Path) -> None:
    named = await add_vaga(office)
    text = f"{NAMED}- Casa Nenhuma - 20/03 - até R$ 1.000\n- {HOSPITAL} - 31/02 - até R$ 1.000\n- sem formato\n"
    result = await run(office, tmp_path, text)
    assert await urgent(office) == {named}
    assert [each.partition(":")[0] for each in result["avisos"]] == [
        "hospital 'Casa Nenhuma' is unknown or ambiguous", "'31/02' is not a day",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "today", "day"),
    [
        ("12/03", date(2026, 3, 9), date(2026, 3, 12)),
        ("05/01", date(2026, 12, 28), date(2027, 1, 5)),
        ("28/12", date(2027, 1, 4), date(2026, 12, 28)),
        ("29/02", date(2026, 3, 1), None),
        ("29/02", date(2027, 6, 1), date(2028, 2, 29)),
        ("12/03/2027", date(2026, 3, 9), date(2027, 3, 12)),
        ("12/03/27", date(2026, 3, 9), date(2027, 3, 12)),
        ("40/03", date(2026, 3, 9), None),
        ("x", date(2026, 3, 9), None),
    ],
)
def test_a_day_without_a_year_is_the_nearest_one(text: str, today: date, day: date | None) -> None:
    assert _day(text, today) == day


async def test_team_is_notified_once_of_a_changed_briefing(office: Office, tmp_path: Path) -> None:
    board = Mural()
    notices(office, board)
    for text in (NAMED, NAMED, "## Foco\n- Pediatria\n", NAMED):
        await run(office, tmp_path, text)
        await deliver(office)
    assert [(each.motivo, each.detalhe) for each in board.received] == [
        ("briefing", "vagas_prioritarias (avisos: 0)"),
        ("briefing", "foco_semana, vagas_prioritarias (avisos: 0)"),
        ("briefing", "foco_semana, vagas_prioritarias (avisos: 0)"),
    ]
    states = await rows(office.work.database, f"SELECT status FROM {AVISOS.name}")
    assert {row["status"] for row in states} == {"enviado"}


async def test_a_briefing_that_is_not_committed_notifies_nothing(office: Office, tmp_path: Path) -> None:
    notices(office, Mural())
    await write(office.work.database, "DROP TABLE diretrizes")
    with pytest.raises(Exception, match="diretrizes"):
        await run(office, tmp_path, NAMED)
    assert await rows(office.work.database, f"SELECT id FROM {AVISOS.name}") == []
