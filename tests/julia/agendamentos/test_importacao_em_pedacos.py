"""One process reads a file while another writes its rows. Rows are written in batches, the buffer is bounded, and an
interrupted import can be resumed.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.contexts.agendamentos import importacao
from app.contexts.agendamentos.importacao import Importacao, ImportLoop
from app.contexts.agendamentos.model import PlanilhaGrande, PlanilhaIlegivel, PlanilhaRecusada
from app.contexts.agendamentos.planilha import aba, leitor, processo
from app.contexts.agendamentos.planilha.aba import NENHUMA
from app.contexts.agendamentos.planilha.arquivo import MOST_ROWS
from app.contexts.agendamentos.planilha.leitor import MEMORY, MEMORY_TO_OPEN, aberta
from app.contexts.agendamentos.planilha.linhas import MOST_AT_ONCE, Pedaco, Problema
from app.contexts.agendamentos.planilha.processo import ArquivoAberto, LeitorDeArquivos
from batuta.kernel.clock import SystemClock
from tests.julia.agendamentos.sheets import HEADER, moved, patient, sheet_xml, workbook, xlsx
from tests.julia.agendamentos.test_service import Office, office
from tests.julia.tables import rows

__all__ = ["office"]
ROWS = 900  # two batches; the second is larger than the pipe and a small buffer
SHEET = xlsx([HEADER, *(patient(n) for n in range(ROWS))])
CSV_HEAD = ";".join(HEADER)
CSV_ROW = ";".join(str(cell or "") for cell in patient(1))

NUMBERLESS = "".join(f"<row><c><v>{n * 7919 % 104729}</v></c></row>" for n in range(MOST_ROWS))


class Mortal(LeitorDeArquivos):
    """A reader of files. Its first ``deaths`` child processes are killed after one batch each."""

    def __init__(self, deaths: int) -> None:
        super().__init__(SystemClock())
        self.deaths = deaths
        self.opened: list[int] = []

    @asynccontextmanager
    async def aberta(
        self, content: bytes, name: str, apos: int = 0, escolhidas: Mapping[str, str] = NENHUMA
    ) -> AsyncIterator[ArquivoAberto]:
        self.opened.append(apos)
        async with super().aberta(content, name, apos, escolhidas) as folha:
            if self.deaths:
                self.deaths -= 1
                folha.pedacos = killing(folha)  # type: ignore[method-assign]
            yield folha


def killing(folha: ArquivoAberto) -> Any:
    real = folha.pedacos

    async def pedacos() -> AsyncIterator[Pedaco]:
        given = aiter(real())
        yield await anext(given)
        os.kill(folha._child.pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # the child is already reaped
            os.waitid(os.P_PID, folha._child.pid, os.WEXITED | os.WNOWAIT)
        async for pedaco in given:
            yield pedaco

    return pedacos


def with_reader(office: Office, reading: LeitorDeArquivos) -> Importacao:
    work = office.work
    return Importacao(work.database, reading, office.agendamentos, work.batches, work.ids, work.clock, lambda: None)


async def figures(office: Office) -> dict[str, Any]:
    return await office.one(
        "SELECT status, imported, duplicates, jobs_enqueued, total_rows, valid_rows,"
        " (SELECT count(*) FROM appointments) AS there, (SELECT count(*) FROM importacao_arquivos) AS kept FROM importacoes"
    )


async def test_rows_come_in_pieces_and_the_last_piece_holds_the_errors() -> None:
    linhas = [patient(n) for n in range(1200)]
    linhas[700] = patient(700, **{"Nome do Paciente": None})
    linhas[1100] = patient(3)
    async with LeitorDeArquivos(SystemClock()).aberta(xlsx([HEADER, *linhas]), "agenda.xlsx") as folha:
        pieces = [pedaco async for pedaco in folha.pedacos()]
    assert [len(pedaco.linhas) for pedaco in pieces] == [500, 500, 199]
    assert [pedaco.is_last for pedaco in pieces] == [False, False, True]
    assert [pedaco.ate for pedaco in pieces] == [501, 1002, 1201]
    assert (pieces[-1].total, pieces[-1].invalidas) == (1200, 1)
    assert [(each.linha, each.problema) for each in pieces[-1].erros] == [(702, Problema.SEM_NOME)]
    assert [(each.linha, each.problema) for each in pieces[-1].avisos] == [(1102, Problema.REPETIDO)]


def test_piece_with_long_texts_has_fewer_rows() -> None:
    many = [patient(n, Observações="palavra " * 240, Especialidade="outra " * 300) for n in range(400)]
    pieces = [*aberta(xlsx([HEADER, *many]), "agenda.xlsx").pedacos()]
    assert max(len(pedaco.linhas) for pedaco in pieces) < MOST_AT_ONCE
    assert sum(len(pedaco.linhas) for pedaco in pieces) == 400


def test_resumed_reading_gets_the_rows_after_a_line_and_the_same_counts() -> None:
    folha = aberta(SHEET, "agenda.xlsx")
    whole, rest = [*folha.pedacos()], [*folha.pedacos(apos=501)]
    assert [row["linha"] for row in rest[0].linhas] == [*range(502, ROWS + 2)]
    assert (rest[-1].total, rest[-1].ate) == (whole[-1].total, whole[-1].ate) == (ROWS, ROWS + 1)


def test_row_that_cannot_be_read_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def strict(valor: object) -> str | None:
        if valor == "!":
            raise OverflowError
        return None

    monkeypatch.setattr(aba, "telefone_da", strict)
    (pedaco,) = aberta(xlsx([HEADER, patient(1), patient(2, Telefone="!"), patient(3)]), "agenda.xlsx").pedacos()
    assert [row["linha"] for row in pedaco.linhas] == [2, 4]
    assert [(each.linha, each.problema) for each in pedaco.erros] == [(3, Problema.ILEGIVEL)]


async def test_child_waits_for_a_parent_that_does_not_read() -> None:
    content = xlsx([HEADER, *(patient(n) for n in range(12_000))])  # five times the size of the buffer
    async with LeitorDeArquivos(SystemClock()).aberta(content, "agenda.xlsx") as folha:
        said = Path(f"/proc/{folha._child.pid}/io")
        state = Path(f"/proc/{folha._child.pid}/stat")
        ends, still, before = time.monotonic() + 60, 0, -1
        while still < 200 and time.monotonic() < ends:  # the child sleeps and writes nothing more
            await asyncio.sleep(0)
            now = written(said)
            is_asleep = state.read_text().rpartition(")")[2].split()[0] == "S"
            still = still + 1 if is_asleep and now == before else 0
            before = now
        ahead = written(said)
        taken = sum([len(pedaco.linhas) async for pedaco in folha.pedacos()])
    assert taken == 12_000
    assert ahead < 3 * processo.AHEAD + 64 * 1024


async def test_parent_that_leaves_early_does_not_wait_for_the_rest() -> None:
    content = xlsx([HEADER, *(patient(n) for n in range(6000))])
    async with asyncio.timeout(60), LeitorDeArquivos(SystemClock()).aberta(content, "agenda.xlsx") as folha:
        first = await anext(aiter(folha.pedacos()))
    assert (len(first.linhas), folha._child.returncode) == (500, -signal.SIGKILL)


def written(io: Path) -> int:
    return next(int(line.split()[1]) for line in io.read_text().splitlines() if line.startswith("wchar"))


@pytest.mark.parametrize(
    ("content", "name", "refusal"),
    [
        ("\n".join([CSV_HEAD, *[CSV_ROW] * MOST_ROWS]).encode(), "a.csv", PlanilhaGrande),
        ("\n".join([CSV_HEAD, *[CSV_ROW] * 2000, "x" * 1_100_000]).encode(), "a.csv", PlanilhaIlegivel),
        (xlsx([], sheet=sheet_xml([HEADER, patient()]).replace(
            "</sheetData>", NUMBERLESS + "</sheetData>")), "a.xlsx", PlanilhaGrande),
        (xlsx([], sheet=sheet_xml([HEADER, *(patient(n) for n in range(1000))]).replace(
            "</sheetData>", "<row r='1002'><c r='A1002'><v>1</c></row></sheetData>")), "a.xlsx", PlanilhaIlegivel),
    ],
    ids=["a row too many", "an unreadable last line", "rows without their number", "a broken last row"],
)  # fmt: skip
async def test_file_with_a_fault_at_its_end_leaves_nothing(
    office: Office, content: bytes, name: str, refusal: type[PlanilhaRecusada]
) -> None:
    with pytest.raises(refusal):
        await office.importacao.importar(content, name, by="alguém")
    for table in ("importacoes", "importacao_arquivos", "appointments", "tasks"):
        assert await rows(office.database, f"SELECT * FROM {table}") == []


def test_reading_has_memory_and_cpu_time_beyond_those_for_opening() -> None:
    assert MEMORY - MEMORY_TO_OPEN >= 32 * 1024 * 1024
    assert leitor.CPU_SECONDS > leitor.CPU_SECONDS_TO_OPEN


async def test_killed_child_is_replaced_and_continues_after_its_last_piece(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processo, "AHEAD", 4096)
    reading = Mortal(deaths=1)
    done = await with_reader(office, reading).importar(SHEET, "agenda.xlsx", by="alguém")
    assert (done["status"], done["imported"], done["duplicates"], done["jobs_enqueued"]) == ("concluida", ROWS, 0, ROWS)
    assert reading.opened == [0, 501]
    assert (await figures(office))["kept"] == 0


async def test_import_whose_children_all_die_fails_and_can_be_sent_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processo, "AHEAD", 4096)
    monkeypatch.setattr(importacao, "MOST_RESUMED", 1)
    content = xlsx([HEADER, *(patient(n) for n in range(1900))])
    importing = with_reader(office, Mortal(deaths=1000))
    report = await importing.importar(content, "agenda.xlsx", by="alguém")
    assert (report["status"], report["imported"]) == ("em_andamento", 1000)  # the import was retried once, immediately
    for _ in range(2):
        await office.clock.advance(timedelta(minutes=1))
        await ImportLoop(importing).tick()
    found = await figures(office)
    assert (found["status"], found["imported"], found["kept"]) == ("falhou", 1500, 0)
    again = await office.importacao.importar(content, "agenda.xlsx", by="alguém")
    assert (again["status"], again["duplicates"], again["imported"]) == ("concluida", 1500, 400)


async def test_two_processes_that_resume_the_same_import_write_each_row_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processo, "AHEAD", 4096)
    importing = with_reader(office, Mortal(deaths=2))
    id = (await importing.importar(xlsx([HEADER, *(patient(n) for n in range(1900))]), "a.xlsx", by="alguém"))["id"]
    assert (await figures(office))["imported"] == 1000
    await asyncio.gather(importing._resume(id, lambda *_: None), office.importacao._resume(id, lambda *_: None))
    found = await figures(office)
    assert (found["status"], found["imported"], found["duplicates"]) == ("concluida", 1900, 0)
    assert (found["jobs_enqueued"], found["there"], found["valid_rows"], found["kept"]) == (1900, 1900, 1900, 0)


async def test_import_of_several_sheets_resumes_in_its_sheet(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processo, "AHEAD", 4096)
    days = {f"Dia {n}": sheet_xml([HEADER, *(patient(1000 * n + k) for k in range(300))]) for n in range(1, 4)}
    reading = Mortal(deaths=1)
    done = await with_reader(office, reading).importar(workbook(days), "agenda.xlsx", by="alguém")
    assert (done["status"], done["imported"], done["duplicates"], done["total_rows"]) == ("concluida", 900, 0, 900)
    assert reading.opened == [0, 301]
    counts = await rows(
        office.database,
        "SELECT aba, count(*) AS n, min(linha) AS first, max(linha) AS last FROM appointments GROUP BY aba ORDER BY aba",
    )
    assert [tuple(each.values()) for each in counts] == [(f"Dia {n}", 300, 2, 301) for n in range(1, 4)]
    assert (await figures(office))["kept"] == 0
    changed = await office.one("SELECT id FROM appointments WHERE linha = 5 AND aba = 'Dia 2'")
    kept = await office.agendamentos.alterar(changed["id"], {"observacoes": "portão azul"}, by="alguém")
    assert (kept["aba"], kept["linha"]) == ("Dia 2", 5)


async def test_import_of_tables_that_begin_in_c5_resumes_after_its_last_piece(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processo, "AHEAD", 4096)
    days = {
        f"Dia {n}": sheet_xml(moved([HEADER, *(patient(1000 * n + k) for k in range(300))], right=2, down=4))
        for n in range(1, 4)
    }
    reading = Mortal(deaths=1)
    done = await with_reader(office, reading).importar(workbook(days), "agenda.xlsx", by="alguém")
    assert (done["status"], done["imported"], done["duplicates"], done["total_rows"]) == ("concluida", 900, 0, 900)
    assert reading.opened == [0, 305]
    named = await rows(office.database, "SELECT nome_paciente, aba, linha FROM appointments ORDER BY nome_paciente")
    assert [tuple(each.values()) for each in named] == [
        (f"Pessoa Fictícia {1000 * n + k:05d}", f"Dia {n}", 6 + k) for n in range(1, 4) for k in range(300)
    ]
