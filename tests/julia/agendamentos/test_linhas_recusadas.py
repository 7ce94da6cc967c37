"""If the database rejects a row, only that row fails. An import that never ends does not delay other imports."""

from datetime import timedelta
from typing import Any

import pytest

from app.contexts.agendamentos import importacao
from app.contexts.agendamentos.importacao import ImportLoop
from app.contexts.agendamentos.service import Filtro
from batuta.kernel.errors import StatementRefused
from tests.julia.agendamentos.sheets import HEADER, patient, sheet_xml, workbook
from tests.julia.agendamentos.test_service import Office, office
from tests.julia.tables import rows, write

__all__ = ["office"]
BAD = "".join(chr(0x4E00 + n * 7 % 5000) for n in range(1500))  # too many bytes for an index
TRIGGER = (
    "CREATE TRIGGER unwritable BEFORE INSERT ON appointments WHEN NEW.observacoes LIKE '\u4e00%'"
    " BEGIN SELECT RAISE(ABORT, 'unwritable'); END"
)


async def make_unwritable(office: Office) -> None:
    """Make rows that contain BAD fail. PostgreSQL rejects them because of an index limit. SQLite accepts everything, so
    a trigger rejects them there.
    """
    is_sqlite = office.database.dialect == "sqlite"
    await write(office.database, TRIGGER if is_sqlite else "CREATE INDEX unwritable ON appointments (observacoes)")


async def test_row_rejected_by_the_database_is_reported_with_its_line(office: Office) -> None:
    await make_unwritable(office)
    linhas = [patient(n) for n in range(1, 521)]
    linhas[6] = patient(7, Observações=BAD)
    linhas[510] = patient(511, Observações=BAD)
    linhas[3] = patient(4, **{"Nome do Paciente": None})
    done = await office.importar(*linhas)
    assert (done["status"], done["total_rows"], done["valid_rows"], done["invalid_rows"]) == ("concluida", 520, 517, 3)
    assert (done["imported"], done["duplicates"], done["jobs_enqueued"]) == (517, 0, 517)
    assert [(each["linha"], each["problema"]) for each in done["errors"]] == [
        (5, "sem_nome"), (8, "nao_gravada"), (512, "nao_gravada"),
    ]  # fmt: skip
    assert len(await rows(office.database, "SELECT id FROM appointments")) == 517


async def test_row_rejected_by_the_database_is_reported_with_its_sheet(office: Office) -> None:
    await make_unwritable(office)
    sheets = {
        "Manhã": [patient(1), patient(2, **{"Nome do Paciente": None}), patient(3)],
        "Tarde": [patient(4), patient(5, Observações=BAD), patient(6)],
        "Noite": [patient(7, **{"Nome do Paciente": None}), patient(8)],
    }
    content = workbook({name: sheet_xml([HEADER, *linhas]) for name, linhas in sheets.items()})
    done = await office.importacao.importar(content, "agenda.xlsx", by="alguém")
    assert (done["status"], done["total_rows"], done["imported"], done["invalid_rows"]) == ("concluida", 8, 5, 3)
    assert [(each["aba"], each["linha"], each["problema"]) for each in done["errors"]] == [
        ("Manhã", 3, "sem_nome"), ("Tarde", 3, "nao_gravada"), ("Noite", 2, "sem_nome"),
    ]  # fmt: skip


async def test_file_without_a_writable_row_reports_each_row(office: Office) -> None:
    await make_unwritable(office)
    done = await office.importar(*(patient(n, Observações=BAD) for n in range(1, 4)))
    assert (done["status"], done["imported"], done["valid_rows"], done["invalid_rows"]) == ("concluida", 0, 0, 3)
    assert [each["linha"] for each in done["errors"]] == [2, 3, 4]
    assert await office.agendamentos.lista(Filtro(), 10) == []


async def test_import_that_cannot_end_fails_with_its_reason_and_delays_no_other(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importacao, "MOST_RESUMED", 2)
    real, poisoned = office.importacao._import_rows, ""

    async def refuses(id: str, *rest: Any) -> None:
        if poisoned in (id, ""):
            raise StatementRefused(why="whatever it is")
        await real(id, *rest)

    monkeypatch.setattr(office.importacao, "_import_rows", refuses)
    for n in (1, 2):
        with pytest.raises(StatementRefused):
            await office.importar(patient(n))
        await office.clock.advance(timedelta(seconds=1))
    begun = await rows(office.database, "SELECT id, status FROM importacoes ORDER BY created_at")
    assert [row["status"] for row in begun] == ["em_andamento", "em_andamento"]
    poisoned, innocent = (str(row["id"]) for row in begun)
    for _ in range(3):
        await office.clock.advance(timedelta(minutes=1))
        await ImportLoop(office.importacao).tick()
    ended = {id: await office.importacao.uma(id) for id in (poisoned, innocent)}
    assert [ended[id]["status"] for id in (poisoned, innocent)] == ["falhou", "concluida"]
    assert ended[poisoned]["errors"] == [{"linha": None, "coluna": None, "problema": "interrompida"}]
    assert await rows(office.database, "SELECT importacao_id FROM importacao_arquivos") == []
