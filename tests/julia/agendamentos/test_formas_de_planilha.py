"""Spreadsheets in the layouts that clinics send: with dividing rows, several tables below each other, or fields split
over several columns.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from app.contexts.agendamentos.planilha.leitor import aberta
from app.contexts.agendamentos.planilha.linhas import Pedaco, Problema, Recusa
from tests.julia.agendamentos.sheets import Cell, xlsx

TITLES: list[Cell] = ["Paciente", "Data", "Hora", "Endereço", "Documento", "Telefone"]
FIRST: list[Cell] = [
    "Pessoa Um",
    "11/03/2026",
    "14:30",
    "Rua Um, 10, Centro, Campinas/SP",
    "529.982.247-25",
    "(11) 90000-0001",
]
SECOND: list[Cell] = ["Pessoa Dois", "12/03/2026", "08:00", "Av. Dois, 20, Centro", "111.444.777-35", "(11) 90000-0002"]
WITHOUT_DAY: list[Cell] = ["Nome", "Hora", "Endereço", "CPF"]
VISIT: list[Cell] = ["Pessoa Um", "14:30", "Rua Um, 10, Centro", "529.982.247-25"]


def read(*rows: Sequence[Cell], chosen: dict[str, str] | None = None) -> tuple[list[Any], Pedaco]:
    batches = list(aberta(xlsx(rows), "agenda.xlsx", chosen or {}).pedacos())
    return [row for batch in batches for row in batch.linhas], batches[-1]


@pytest.mark.parametrize(
    "divider",
    [
        ["TARDE"],
        [None, None, "TARDE"],
        ["UNIDADE NORTE"],
        ["OBS: paciente acima remarcado"],
        ["Emitido em 10/03/2026"],
        ["Total de pacientes: 1"],
        ["TOTAL", 1],
    ],
)
def test_row_that_only_divides_the_sheet_is_not_a_patient(divider: list[Cell]) -> None:
    rows, last = read(TITLES, FIRST, divider, SECOND)
    assert [row["nome_paciente"] for row in rows] == ["Pessoa Um", "Pessoa Dois"]
    assert [(each.linha, each.problema) for each in last.avisos] == [(3, Problema.SECAO)]
    assert last.total == 2


def test_tables_below_each_other_with_a_dividing_word_are_all_read() -> None:
    other: list[Cell] = ["CPF", "NOME", "DIA", "HR", "LOGRADOURO"]
    moved: list[Cell] = ["529.982.247-25", "Pessoa Três", "13/03/2026", "09:00", "Rua Três 3 Centro Campinas SP"]
    rows, _ = read(
        ["MANHÃ"], TITLES, FIRST, [], ["TARDE"], TITLES, SECOND, [], ["NOITE"], [None, *other], [None, *moved]
    )
    assert [(row["nome_paciente"], row["data_agendamento"]) for row in rows] == [
        ("Pessoa Um", "2026-03-11"),
        ("Pessoa Dois", "2026-03-12"),
        ("Pessoa Três", "2026-03-13"),
    ]


def test_second_table_with_unknown_titles_is_read_by_content_with_a_warning() -> None:
    unknown: list[Cell] = ["Quem", "Quando", "Que horas", "Onde mora", "Papéis", "Ligar para"]
    rows, last = read(TITLES, FIRST, [], unknown, SECOND)
    assert [row["nome_paciente"] for row in rows] == ["Pessoa Um", "Pessoa Dois"]
    assert {each.coluna for each in last.avisos if each.problema is Problema.COLUNA_SUPOSTA} >= {"Quem", "Quando"}


def test_patient_without_any_number_in_the_row_is_not_a_header() -> None:
    vague: list[Cell] = ["Pessoa Dois", "a confirmar", "manhã", "zona rural de Campinas", "não trouxe", "sem fone"]
    rows, _ = read(TITLES, FIRST, vague, SECOND)
    assert [row["nome_paciente"] for row in rows] == ["Pessoa Um", "Pessoa Dois", "Pessoa Dois"]


def test_one_day_above_the_header_or_in_dividing_rows_holds_for_the_rows_below() -> None:
    rows, _ = read(["AGENDA DO DIA 11/03/2026"], WITHOUT_DAY, VISIT)
    assert [row["data_agendamento"] for row in rows] == ["2026-03-11"]
    rows, _ = read(WITHOUT_DAY, ["SEGUNDA 09/03/2026"], VISIT, ["TERÇA 10/03/2026"], VISIT)
    assert [row["data_agendamento"] for row in rows] == ["2026-03-09", "2026-03-10"]
    with pytest.raises(Recusa, match="sem_colunas"):
        read(["AGENDA"], WITHOUT_DAY, VISIT)


def test_fields_in_several_columns_are_joined() -> None:
    titles: list[Cell] = [
        "Nº", "Nome", "Sobrenome", "Data", "Rua", "Nº", "Complemento", "Bairro", "Cidade", "UF", "CEP", "CPF", "RG", "DDD",
        "Celular",
    ]  # fmt: skip
    row: list[Cell] = [
        1, "Pessoa", "Um", "11/03/2026", "Rua Um", 10, "ap 3", "Centro", "Campinas", "SP", "13010-000", "529.982.247-25",
        "12.345.678-9", 11, "90000-0001",
    ]  # fmt: skip
    rows, _ = read(titles, row)
    assert {
        name: rows[0][name] for name in ("nome_paciente", "endereco_completo", "documento_completo", "telefone")
    } == {
        "nome_paciente": "Pessoa Um",
        "endereco_completo": "Rua Um, 10, ap 3, Bairro: Centro, Cidade: Campinas, UF: SP",
        "documento_completo": "CPF 529.982.247-25; RG 12.345.678-9",
        "telefone": "5511900000001",
    }


def test_part_that_the_address_already_contains_is_not_repeated() -> None:
    rows, _ = read(
        ["Nome", "Data", "Endereço", "Bairro", "Cidade", "Documento"],
        ["Pessoa Um", "11/03/2026", "Rua Um, 10, Centro", "CENTRO", "Campinas", "529.982.247-25"],
    )
    assert rows[0]["endereco_completo"] == "Rua Um, 10, Centro, Cidade: Campinas"


def test_day_and_hour_in_one_column_of_a_plain_sheet() -> None:
    rows, _ = read(
        ["Paciente", "Data e Hora", "Endereço", "CPF"],
        ["Pessoa Um", "11/03/2026 14:30", "Rua Um, 10, Centro", "529.982.247-25"],
    )
    assert (rows[0]["data_agendamento"], rows[0]["hora_agendamento"]) == ("2026-03-11", "14:30")


def test_column_of_a_relative_or_of_the_birth_is_never_proposed() -> None:
    with pytest.raises(Recusa) as refused:
        read(
            ["Nome", "Nascimento", "Endereço", "CPF da mãe"],
            ["Pessoa Um", "01/02/1980", "Rua Um, 10, Centro", "529.982.247-25"],
        )
    assert refused.value.facts["colunas"] == "Data, Documento Completo"
