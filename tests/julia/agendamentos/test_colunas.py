"""Headers as clinics write them are recognised by their words and by the content of their columns."""

import json

import pytest

from app.contexts.agendamentos.model import ColunaDesconhecida, ColunasIncertas, colunas_ditas, recusada
from app.contexts.agendamentos.planilha.aba import cabecalho_conferido, cabecalho_de
from app.contexts.agendamentos.planilha.linhas import PlanilhaLida, Recusa
from app.contexts.agendamentos.planilha.processo import LeitorDeArquivos
from batuta.kernel.clock import SystemClock
from tests.julia.agendamentos.medir import AUTORES, linhas_de
from tests.julia.agendamentos.sheets import Cell, xlsx

CAMPOS = {
    "nome": "nome_paciente", "data": "data", "hora": "hora", "endereco": "endereco_completo",
    "documento": "documento_completo", "telefone": "telefone",
}  # fmt: skip
ROW: list[Cell] = [
    "Pessoa Fictícia",
    "11/03/2026",
    "14:30",
    "Rua Um, 10, Centro, Campinas/SP",
    "529.982.247-25",
    "(11) 90000-0001",
]
KNOWN: list[Cell] = ["Paciente", "Data", "Hora", "Endereço", "Documento", "Telefone"]


async def read(*rows: list[Cell], **chosen: str) -> PlanilhaLida:
    return await LeitorDeArquivos(SystemClock()).ler(xlsx(rows), "agenda.xlsx", chosen)


def headers() -> list[tuple[str, dict[str, str]]]:
    found = []
    for path in sorted(AUTORES.glob("*/cabecalhos.json")):
        read = json.loads(path.read_text(encoding="utf-8"))
        found += [(path.parent.name, each) for each in (read["cabecalho"], *read["outros"])]
    return found


@pytest.mark.parametrize(("autor", "titulos"), headers())
def test_header_of_each_author_is_recognised_or_proposed(autor: str, titulos: dict[str, str]) -> None:
    rows = [list(titulos.values()), *([linha["celulas"][name] for name in titulos] for linha in linhas_de(autor)[:30])]
    header = cabecalho_de(rows)
    assert header is not None
    assert {name: list(titulos)[header.colunas[campo]] for name, campo in CAMPOS.items()} == {
        name: name for name in titulos
    }


async def test_title_row_and_blank_columns_above_an_unforeseen_header_do_not_matter() -> None:
    titles: list[Cell] = [
        None,
        "NOME DO USUÁRIO",
        "DIA DA CONSULTA",
        "HR",
        "ENDEREÇO RESIDENCIAL",
        "CPF/RG",
        "FONE / CELULAR",
    ]
    lida = await read(["AGENDA DE MARÇO"], [], titles, [None, *ROW])
    assert [(row["data_agendamento"], row["telefone"]) for row in lida.linhas] == [("2026-03-11", "5511900000001")]


async def test_tables_stacked_in_one_sheet_are_read_each_with_its_own_header() -> None:
    second: list[Cell] = ["DT CONS", "CLIENTE", "END. RESID.", "DOC", "ZAP"]
    row: list[Cell] = [
        "12/03/2026",
        "Outra Pessoa",
        "Av. Dois, 20, Centro, Campinas/SP",
        "RG 12.345.678-9",
        "11 90000-0002",
    ]
    lida = await read(KNOWN, ROW, [], second, row)
    assert [row["nome_paciente"] for row in lida.linhas if row["data_agendamento"] == "2026-03-12"] == ["Outra Pessoa"]
    assert lida.linhas[-1]["telefone"] == "5511900000002"


async def test_uncertain_column_is_proposed_and_accepted_when_it_is_chosen() -> None:
    titles: list[Cell] = ["Paciente", "Quando", "Hora", "Endereço", "Documento", "Telefone"]
    with pytest.raises(Recusa) as refused:
        await read(titles, ROW, ROW)
    error = recusada(refused.value)
    assert isinstance(error, ColunasIncertas)
    assert '"Quando=data"' in str(error)
    lida = await read(titles, ROW, ROW, **colunas_ditas(["Quando=data"]))
    assert {row["data_agendamento"] for row in lida.linhas} == {"2026-03-11"}


def test_column_of_another_person_or_purpose_is_not_taken() -> None:
    titles = ["Paciente", "Data de nascimento", "Nome da mãe", "Data", "Endereço", "Documento"]
    header = cabecalho_conferido(
        [titles, ["Pessoa A", "01/01/1980", "Pessoa B", "11/03/2026", "Rua Um, 1", "529.982.247-25"]]
    )
    assert (header.colunas["data"], header.colunas["nome_paciente"]) == (3, 0)


def test_choice_without_a_known_field_names_the_fields() -> None:
    with pytest.raises(ColunaDesconhecida, match="endereco, documento, data"):
        colunas_ditas(["Quando=dia"])
