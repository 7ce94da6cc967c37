"""Reading spreadsheets as people write them: no cell is mistaken for a different kind of value, and unreadable cells
get a warning.
"""

import io
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, datetime, time

import pytest

from app.contexts.agendamentos.planilha.arquivo import nome_mostravel
from app.contexts.agendamentos.planilha.celulas import Celula, data_hora_da, hora_da
from app.contexts.agendamentos.planilha.linhas import PlanilhaLida, Recusa
from app.contexts.agendamentos.planilha.processo import LeitorDeArquivos
from batuta.kernel.clock import SystemClock
from tests.julia.agendamentos.sheets import HEADER, Cell, moved, package, patient, sheet_xml, workbook, xls, xlsx

LABORATORY = ["Nome da Marca", "Nome da Unidade", "Nome do Paciente", "Data/Hora Início Agendamento"]


async def read(content: bytes, name: str = "agenda.xlsx") -> PlanilhaLida:
    return await LeitorDeArquivos(SystemClock()).ler(content, name)


def as_csv(sign: str, *rows: list[Cell]) -> bytes:
    return "\r\n".join(sign.join(str(cell or "") for cell in row) for row in rows).encode()


@pytest.mark.parametrize(
    ("written", "hour"),
    [
        ("2:30 PM", "14:30"), ("02:30pm", "14:30"), ("2:30 p.m.", "14:30"), ("2 PM", "14:00"), ("12:15 PM", "12:15"),
        ("12:15 AM", "00:15"), ("8:05 am", "08:05"), ("14:30 PM", "14:30"), ("14:30 AM", None), ("2h30 da tarde", "14:30"),
        ("8h da manhã", "08:00"), ("3 da tarde", "15:00"), ("9 h da noite", "21:00"), ("14h30", "14:30"),
        ("14h30min", "14:30"), ("14.30", "14:30"), ("8.05", "08:05"),
        ("14.5", None), ("manhã", None), ("7", "07:00"), ("16", "16:00"), ("24", None),
        ("11.03.2026", None), ("25.10", None), (14.3, None), (14, None), (0.604166666667, "14:30"),
        (46092.604166666664, "14:30"), (time(14, 30), "14:30"),
    ],
)  # fmt: skip
def test_hour_is_read_as_meant_or_left_empty(written: Celula, hour: str | None) -> None:
    assert hora_da(written) == hour


@pytest.mark.parametrize(
    ("written", "hour"),
    [
        ("11/03/2026 02:30 PM", "14:30"),
        ("11/03/2026 14.30", "14:30"),
        ("11.03.26 8.15", "08:15"),
        ("2026-03-11T14:30:00", "14:30"),
        ("11/03/2026 manhã", None),
        ("11/03/2026", None),
    ],
)
def test_day_and_hour_in_one_cell_are_both_read(written: str, hour: str | None) -> None:
    assert data_hora_da(written) == (date(2026, 3, 11), hour)


async def test_unreadable_hour_gets_a_warning_in_the_laboratorys_sheet_too() -> None:
    row: list[Cell] = ["Marca", "Unidade", "Pessoa Fictícia", "11/03/2026 manhã"]
    lida = await read(xlsx([LABORATORY, row, [*row[:3], "12/03/2026 14:30"]]))
    assert [each.get("hora_agendamento") for each in lida.linhas] == [None, "14:30"]
    assert [(each.linha, each.coluna, each.problema) for each in lida.avisos] == [(2, LABORATORY[3], "hora_ilegivel")]


async def test_hour_beside_the_day_is_kept() -> None:
    lida = await read(
        xlsx([HEADER, patient(1, Data="11/03/2026 14:30", Hora=None), patient(2, Data=46092.25, Hora="9h")])
    )
    assert [each["hora_agendamento"] for each in lida.linhas] == ["14:30", "09:00"]
    assert not lida.avisos


@pytest.mark.parametrize(
    ("title", "sign"),
    [
        ("Relatório do dia", ","),
        ("Relatório, gerado, em, Campinas, por, ninguém, às, oito, horas, e, pouco", ";"),
        ("a;b", "\t"),
    ],
)
async def test_csv_with_a_title_above_its_header_uses_the_headers_separator(title: str, sign: str) -> None:
    row = patient(1, **{"Endereço Completo": "Rua Modelo 5", "Documento Completo": None})
    lida = await read(as_csv(sign, [title], [], list(HEADER), row), "agenda.csv")
    assert [each["nome_paciente"] for each in lida.linhas] == ["Pessoa Fictícia 00001"]


async def test_sheet_with_its_own_date_column_is_plain() -> None:
    header = [*HEADER, "Marca", "Canal Confirmação", "Nome da Sala"]
    lida = await read(xlsx([header, [*patient(1), "Marca", "telefone", "Recepção"]]))
    assert [(each["data_agendamento"], each["nome_marca"]) for each in lida.linhas] == [("2026-03-11", "Marca")]


async def test_name_that_is_too_long_is_cut_with_a_warning() -> None:
    long = "\u4e00" * 1500
    header = [*HEADER, "Carro"]
    lida = await read(xlsx([header, [*patient(1, Unidade=long, Observações="o" * 1500), long]]))
    (row,) = lida.linhas
    assert (row["nome_unidade"], row["carro"], row["observacoes"]) == (long[:200], long[:200], "o" * 1500)
    assert {(each.linha, each.coluna, each.problema) for each in lida.avisos} == {
        (2, "Unidade", "texto_cortado"), (2, "Carro", "texto_cortado"),
    }  # fmt: skip


def test_midnight_of_a_date_cell_is_not_an_hour() -> None:
    assert data_hora_da(datetime(2026, 3, 11, 14, 30)) == (date(2026, 3, 11), "14:30")
    assert data_hora_da(date(2026, 3, 11)) == (date(2026, 3, 11), None)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("a\x00b.csv", "ab.csv"),
        ("../../etc/agenda.csv", "agenda.csv"),
        ("C:\\Pessoa\\agenda.csv", "agenda.csv"),
        ("agen\u202eda\ud800.csv", "agenda.csv"),
        ("x" * 500 + ".csv", "x" * 196 + ".csv"),
        ("", ""),
    ],
)
def test_file_name_is_its_last_part_in_printable_characters(sent: str, shown: str) -> None:
    assert nome_mostravel(sent) == shown


async def test_every_sheet_with_the_header_is_read_and_the_others_are_reported() -> None:
    sheets = {
        "Resumo": sheet_xml([["Unidade", "Data"], ["Unidade Modelo", "11/03/2026"]]),
        "Manhã & cedo": sheet_xml([HEADER, patient(1), patient(2, **{"Nome do Paciente": None})]),
        "Vazia": sheet_xml([HEADER]),
        "Tarde": sheet_xml([["Relatório"], HEADER, patient(3, Telefone="1"), patient(4, **{"Nome do Paciente": None})]),
        "Plan3": sheet_xml([]),
        "Sem documento": sheet_xml([HEADER[:8], patient(5)[:8]]),
    }
    lida = await read(workbook(sheets))
    assert [(each["nome_paciente"], each["aba"], each["linha"]) for each in lida.linhas] == [
        ("Pessoa Fictícia 00001", "Manhã & cedo", 2),
        ("Pessoa Fictícia 00003", "Tarde", 3),
    ]
    assert [(each.aba, each.linha, each.problema) for each in lida.erros] == [
        ("Manhã & cedo", 3, "sem_nome"),
        ("Tarde", 4, "sem_nome"),
    ]
    assert [(each.aba, each.linha, each.coluna, each.problema) for each in lida.avisos] == [
        (None, None, "Resumo", "aba_ignorada"),
        (None, None, "Sem documento", "aba_ignorada"),
        ("Tarde", 3, "Telefone", "telefone_ilegivel"),
    ]
    assert lida.total == 4


@pytest.mark.parametrize("written", [xlsx, xls])
@pytest.mark.parametrize(("right", "down"), [(0, 0), (1, 0), (0, 3), (2, 4), (14, 20)])
async def test_table_is_read_wherever_it_begins_on_its_sheet(
    right: int, down: int, written: Callable[[Sequence[Sequence[Cell]]], bytes]
) -> None:
    table: list[Sequence[Cell]] = [
        HEADER,
        patient(1),
        [],
        patient(2, Telefone=None),
        patient(3, **{"Nome do Paciente": None}),
    ]
    there, here = await read(written(moved(table, right=right, down=down))), await read(xlsx(table))
    assert [{**each, "linha": int(str(each["linha"])) - down} for each in there.linhas] == [*here.linhas]
    assert [(each.linha, each.coluna, each.problema) for each in there.erros] == [
        (5 + down, "Nome do Paciente", "sem_nome")
    ]
    assert [each["nome_paciente"] for each in here.linhas] == ["Pessoa Fictícia 00001", "Pessoa Fictícia 00002"]


async def test_tables_that_begin_in_different_places_are_each_read() -> None:
    sheets = {
        "Na A1": sheet_xml([HEADER, patient(1)]),
        "Na B1": sheet_xml(moved([HEADER, patient(2)], right=1)),
        "Na C5": sheet_xml(moved([HEADER, patient(3)], right=2, down=4)),
        "Título na A1": sheet_xml([["Relatório"], *moved([HEADER, patient(4)], right=3)]),
    }
    lida = await read(workbook(sheets))
    assert [(each["aba"], each["linha"], each["nome_paciente"], each["telefone"]) for each in lida.linhas] == [
        ("Na A1", 2, "Pessoa Fictícia 00001", "5511900000001"),
        ("Na B1", 2, "Pessoa Fictícia 00002", "5511900000001"),
        ("Na C5", 6, "Pessoa Fictícia 00003", "5511900000001"),
        ("Título na A1", 3, "Pessoa Fictícia 00004", "5511900000001"),
    ]
    assert (lida.erros, lida.avisos) == ([], [])


async def test_only_sheet_of_appointments_is_not_named_in_rows() -> None:
    lida = await read(workbook({"Capa": sheet_xml([["Agenda"]]), "Agenda": sheet_xml([HEADER, patient(1), []])}))
    assert ["aba" in each for each in lida.linhas] == [False]
    assert [(each.coluna, each.problema) for each in lida.avisos] == [("Capa", "aba_ignorada")]


async def test_one_file_may_hold_sheets_of_both_formats() -> None:
    laboratory = sheet_xml([LABORATORY, ["Marca", "Unidade", "Pessoa Dez", "11/03/2026 08:00"]])
    lida = await read(workbook({"Carro 1": laboratory, "Avulsos": sheet_xml([HEADER, patient(1)])}))
    assert [(each["aba"], each.get("nome_marca")) for each in lida.linhas] == [("Carro 1", "Marca"), ("Avulsos", None)]


async def test_repeated_visits_and_formulas_are_reported_with_their_sheet() -> None:
    formula = sheet_xml([HEADER, patient(1), patient(2, Observações="\x00formula:1+1")])
    lida = await read(workbook({"Um": sheet_xml([HEADER, patient(3), patient(4)]), "Dois": formula, "Três": formula}))
    assert [(each.aba, each.linha, each.problema) for each in lida.avisos] == [
        ("Dois", 3, "formula"), ("Três", 3, "formula"), ("Três", 2, "repetido"), ("Três", 3, "repetido"),
    ]  # fmt: skip


async def test_row_limit_spans_all_sheets_and_sheets_beyond_twenty_are_reported() -> None:
    far = sheet_xml([HEADER, patient(1)]).replace(
        "</sheetData>", '<row r="26000"><c r="A26000"><v>1</v></c></row></sheetData>'
    )
    with pytest.raises(Recusa, match="grande"):
        await read(workbook({"Um": far, "Dois": far}))
    lida = await read(workbook({f"Dia {n}": sheet_xml([HEADER, patient(n)]) for n in range(1, 23)}))
    assert [each["aba"] for each in lida.linhas] == [f"Dia {n}" for n in range(1, 21)]
    assert [(each.coluna, each.problema) for each in lida.avisos] == [
        ("Dia 21", "aba_demais"),
        ("Dia 22", "aba_demais"),
    ]


async def test_empty_sheets_do_not_count_towards_the_twenty() -> None:
    empty = {f"Plan{n}": sheet_xml([] if n % 2 else [HEADER]) for n in range(30)}
    lida = await read(workbook(empty | {f"Dia {n}": sheet_xml([HEADER, patient(n)]) for n in range(1, 23)}))
    assert [each["aba"] for each in lida.linhas] == [f"Dia {n}" for n in range(1, 21)]
    assert [(each.coluna, each.problema) for each in lida.avisos] == [
        ("Dia 21", "aba_demais"),
        ("Dia 22", "aba_demais"),
    ]


async def test_second_sheet_of_the_same_name_is_reported() -> None:
    sheets = [sheet_xml([HEADER, patient(n)]) for n in (1, 2)]
    content = workbook(dict(zip(("Dia", "Outro"), sheets, strict=True)))
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        same = {name: parts.read(name).replace(b'name="Outro"', b'name="Dia"') for name in parts.namelist()}
    lida = await read(package(same))
    assert [each["nome_paciente"] for each in lida.linhas] == ["Pessoa Fictícia 00001"]
    assert [(each.coluna, each.problema) for each in lida.avisos] == [("Dia", "aba_de_mesmo_nome")]


async def test_repeated_header_further_down_is_not_a_patient() -> None:
    again = [title.upper() for title in HEADER]
    called = patient(3, **{"Nome do Paciente": "Paciente"})
    lida = await read(xlsx([HEADER, patient(1), HEADER, patient(2), again, called]))
    assert [(each["linha"], each["nome_paciente"]) for each in lida.linhas] == [
        (2, "Pessoa Fictícia 00001"),
        (4, "Pessoa Fictícia 00002"),
        (6, "Paciente"),
    ]
    assert (lida.total, lida.puladas, lida.erros, lida.avisos) == (3, 0, [], [])


async def test_rows_far_below_their_header_are_read_in_each_sheet() -> None:
    gap: list[Sequence[Cell]] = [[]] * 1100
    lida = await read(workbook({"Um": sheet_xml([HEADER, patient(1)]), "Dois": sheet_xml([HEADER, *gap, patient(2)])}))
    assert [(each["aba"], each["linha"]) for each in lida.linhas] == [("Um", 2), ("Dois", 1102)]


async def test_every_kind_of_cell_counts_towards_the_row_limit() -> None:
    cells = "".join(f'<row r="{n}"><c t="inlineStr" r="A{n}"><is><t>x</t></is></c></row>' for n in range(3, 50_003))
    sheet = sheet_xml([HEADER, patient(1)]).replace("</sheetData>", f"{cells}</sheetData>")
    with pytest.raises(Recusa, match="grande"):
        await read(xlsx([], sheet=sheet))
