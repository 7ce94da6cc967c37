"""Sheets in which several columns may have the same field, and cells that a spreadsheet merges or stores as numbers."""

from collections.abc import Sequence
from datetime import date, datetime
from functools import partial
from typing import Any

import pytest

from app.contexts.agendamentos.planilha.aba import Aba, cabecalho_conferido, pedacos_de
from app.contexts.agendamentos.planilha.celulas import Celula
from app.contexts.agendamentos.planilha.leitor import aberta
from app.contexts.agendamentos.planilha.linhas import Problema, Recusa
from tests.julia.agendamentos.sheets import Cell, sheet_xml, xlsx

END: list[Cell] = ["Rua Um, 10, Centro, Campinas/SP", "529.982.247-25"]
TITLES: list[Cell] = ["Endereço", "Documento"]


def read(*rows: Sequence[Cell], chosen: dict[str, str] | None = None, merged: str = "") -> list[Any]:
    sheet = sheet_xml(rows)
    if merged:
        cells = "".join(f'<mergeCell ref="{each}"/>' for each in merged.split())
        sheet = sheet.replace("</sheetData>", f"</sheetData><mergeCells>{cells}</mergeCells>")
    batches = aberta(xlsx(rows, sheet=sheet), "agenda.xlsx", chosen or {}).pedacos()
    return [row for batch in batches for row in batch.linhas]


def proposal(*rows: Sequence[Cell]) -> str:
    with pytest.raises(Recusa, match="colunas_incertas") as refused:
        read(*rows)
    return str(refused.value.facts["proposta"])


@pytest.mark.parametrize("patient", ["Paciente", "NOME DO USUÁRIO", "Cliente"])
def test_two_columns_with_different_names_are_proposed_and_the_chosen_one_is_read(patient: str) -> None:
    rows: list[list[Cell]] = [
        ["Nome", patient, "Data", *TITLES],
        ["Doutora Modelo", "Pessoa Um", "11/03/2026", *END],
        ["Doutora Modelo", "Pessoa Dois", "11/03/2026", *END],
    ]
    assert proposal(*rows) == f'"{patient}=nome"'
    found = read(*rows, chosen={patient.lower().replace("á", "a"): "nome_paciente"})
    assert [row["nome_paciente"] for row in found] == ["Pessoa Um", "Pessoa Dois"]


@pytest.mark.parametrize(("first", "second"), [("Data", "Data da consulta"), ("DATA", "DATA DO EXAME")])
def test_two_columns_with_different_days_are_proposed(first: str, second: str) -> None:
    titles: list[Cell] = ["Paciente", first, second, *TITLES]
    assert proposal(titles, ["Pessoa Um", "02/03/2026", "11/03/2026", *END]) == f'"{second}=data"'
    found = read(titles, ["Pessoa Um", "02/03/2026", "11/03/2026", *END], chosen={second.lower(): "data"})
    assert [row["data_agendamento"] for row in found] == ["2026-03-11"]
    assert len(read(titles, ["Pessoa Um", "11/03/2026", "11/03/2026", *END])) == 1


def test_two_unknown_titles_that_suggest_the_same_field_are_proposed() -> None:
    titles: list[Cell] = ["Paciente", "Data", "Hora de chegada", "Hora da coleta marcada", *TITLES]
    assert proposal(titles, ["Pessoa Um", "11/03/2026", "07:00", "08:00", *END]) == '"Hora da coleta marcada=hora"'


def test_hour_and_phone_with_unknown_titles_are_read_beside_known_titles() -> None:
    titles: list[Cell] = ["Paciente", "Data", "HR. MARCADA", *TITLES, "FONE / CELULAR", "Whats?", "Nº BENEFÍCIO"]
    (row,) = read(titles, ["Pessoa Um", "11/03/2026", "8h15", *END, "(11) 90000-0001", "sim", "123456789"])
    assert (row["hora_agendamento"], row["telefone"]) == ("08:15", "5511900000001")
    assert row["documento_completo"] == END[1]
    titles = ["Paciente", "Data", *TITLES, "Whats?"]
    assert "telefone" not in read(titles, ["Pessoa Um", "11/03/2026", *END, "sim"])[0]


@pytest.mark.parametrize("other", ["Data do pedido", "Data da solicitação", "Última data", "D.N.", "Nascto"])
def test_column_with_the_day_of_something_else_does_not_compete(other: str) -> None:
    titles: list[Cell] = ["Paciente", other, "Dt. do exame", *TITLES]
    found = read(titles, ["Pessoa Um", "02/03/2016", "11/03/2026", *END])
    assert [row["data_agendamento"] for row in found] == ["2026-03-11"]


def test_day_of_birth_is_never_proposed() -> None:
    for title in ("D.N.", "Nascto", "DN"):
        with pytest.raises(Recusa, match="sem_colunas"):
            read(["Paciente", title, *TITLES], ["Pessoa Um", "02/03/2016", *END])


def test_weekday_beside_the_day_is_not_taken_for_the_day() -> None:
    titles: list[Cell] = ["Dia", "Data", "Paciente", *TITLES]
    found = read(titles, ["quarta-feira", "11/03/2026", "Pessoa Um", *END])
    assert [row["data_agendamento"] for row in found] == ["2026-03-11"]


def test_vertically_merged_cell_counts_for_each_of_its_rows() -> None:
    titles: list[Cell] = ["Data", "Hora", "Paciente", *TITLES]
    rows: list[list[Cell]] = [
        titles,
        ["11/03/2026", "08:00", "Pessoa Um", *END],
        [None, "08:20", "Pessoa Dois", *END],
        [],
        [None, "08:40", "Pessoa Três", *END],
        ["12/03/2026", "08:00", "Pessoa Quatro", *END],
    ]
    found = read(*rows, merged="A2:A5")
    assert [row["data_agendamento"] for row in found] == ["2026-03-11"] * 3 + ["2026-03-12"]
    assert "data_agendamento" not in read(*rows)[1]


def test_header_over_two_rows_with_merged_cells_is_read() -> None:
    rows: list[list[Cell]] = [
        ["Data", "Hora", "Paciente", None, "Endereço", "Contato", None],
        [None, None, "Nome", "CPF", None, "Celular", "E-mail"],
        ["11/03/2026", "08:00", "Pessoa Um", END[1], END[0], "(11) 90000-0001", None],
    ]
    (row,) = read(*rows, merged="A1:A2 B1:B2 C1:D1 E1:E2 F1:G1")
    assert (row["nome_paciente"], row["data_agendamento"], row["hora_agendamento"], row["telefone"]) == (
        "Pessoa Um", "2026-03-11", "08:00", "5511900000001",
    )  # fmt: skip


def test_header_over_two_rows_of_a_csv_is_read() -> None:
    lines = [
        "DATA;HORA;DADOS DO PACIENTE;;;CONTATO",
        ";;NOME;CPF;ENDEREÇO;FONE",
        f"11/03/2026;8h;Pessoa Um;{END[1]};{END[0]};1",
    ]
    folha = aberta("\n".join(lines).encode(), "agenda.csv")
    assert [row["data_agendamento"] for batch in folha.pedacos() for row in batch.linhas] == ["2026-03-11"]
    assert folha.colunas["DATA"] == "data"


def test_title_in_several_lines_is_shown_in_one() -> None:
    titles: list[Cell] = ["Paciente", "Data\nda\nconsulta", *TITLES]
    folha = aberta(xlsx([titles, ["Pessoa Um", "11/03/2026", *END]]), "agenda.xlsx")
    assert folha.colunas["Data da consulta"] == "data"


def test_total_below_a_table_whose_first_column_is_not_the_name_divides_the_sheet() -> None:
    titles: list[Cell] = ["CPF", "Paciente", "Data", "Endereço", "Valor"]
    rows: list[list[Cell]] = [titles, [END[1], "Pessoa Um", "11/03/2026", END[0], 10], ["TOTAL", None, None, None, 10]]
    (batch,) = aberta(xlsx(rows), "agenda.xlsx").pedacos()
    assert (len(batch.linhas), batch.erros) == (1, [])
    assert [each.problema for each in batch.avisos] == [Problema.SECAO]


def test_day_beside_its_label_above_the_header_is_read() -> None:
    rows: list[list[Cell]] = [
        ["Unidade:", "Modelo", "Data:", "11/03/2026"], ["Hora", "Paciente", "Endereço", "CPF"], ["8h", "Pessoa Um", *END],
    ]  # fmt: skip
    folha = aberta(xlsx(rows), "agenda.xlsx")
    assert [row["data_agendamento"] for batch in folha.pedacos() for row in batch.linhas] == ["2026-03-11"]
    assert folha.colunas["11/03/2026"] == "data"


def test_date_that_a_spreadsheet_stored_as_a_number_is_read_as_text_too() -> None:
    lines = ["Paciente;Data;Hora;Endereço;Documento", f"Pessoa Um;46092;0,5;{END[0]};{END[1]}"]
    batches = aberta("\n".join(lines).encode(), "agenda.csv").pedacos()
    assert [row["data_agendamento"] for batch in batches for row in batch.linhas] == ["2026-03-11"]


def test_city_and_state_in_one_column_belong_to_the_address() -> None:
    (row,) = read(
        ["Paciente", "Data", "Rua", "Nº", "Cidade/UF", "CPF"],
        ["Pessoa Um", "11/03/2026", "Rua Um", 10, "Campinas/SP", END[1]],
    )
    assert row["endereco_completo"] == "Rua Um, 10, Cidade: Campinas/SP"


@pytest.mark.parametrize("day", [date(2026, 3, 11), datetime(2026, 3, 11, 0, 0)])
def test_cell_with_only_a_day_divides_the_sheet_or_names_its_day(day: Celula) -> None:
    titles: list[Celula] = ["Hora", "Paciente", "Endereço", "CPF"]
    visit: list[Celula] = ["08:00", "Pessoa Um", *END]
    for rows in ([["Agenda de", day], titles, visit], [titles, [None, day], visit]):
        header = cabecalho_conferido(rows)
        (batch,) = pedacos_de([Aba(None, len(rows), header, partial(list, rows))])
        assert [row["data_agendamento"] for row in batch.linhas] == ["2026-03-11"]
        assert [each.problema for each in batch.avisos] == [Problema.SECAO][: rows[0] is titles]
