"""Doctors are registered over HTTP and from a CSV file. Registering a number again does not change its record."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.contexts.medicos.cadastro import BAD_PHONE, BAD_STATE, ColunasFaltando, ler_csv
from tests.command import Command
from tests.julia.tables import rows
from tests.julia.web.test_api import Julia, open_julia

JULIA = ("--app", "app.main:work", "--lang", "pt-BR")
LIST = (
    "Nome completo;Telefone;CRM;Especialidade;Cidade;UF\n"
    "Pessoa Fictícia Um;(11) 90000-1001;000001;Pediatria;Campinas;SP\n"
    "Pessoa Fictícia Um;+55 11 90000-1001;;;;\n"
    "Pessoa Fictícia Dois;123;;;;\n"
    "Pessoa Fictícia Três;5511900001003;;;;São Paulo\n"
    ";;;;;\n"
)


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(database_url)
    yield opened
    await opened.work.close()


def test_csv_is_read_with_the_reason_of_each_rejected_line() -> None:
    medicos, recusadas = ler_csv(LIST.encode("cp1252"))
    first = medicos[0]
    assert (first.telefone, first.primeiro_nome, first.sobrenome, first.estado) == (
        "5511900001001", "Pessoa", "Fictícia Um", "SP",
    )  # fmt: skip
    assert len(medicos) == 2
    assert {each.linha: each.motivo for each in recusadas} == {4: BAD_PHONE(), 5: BAD_STATE()}


def test_csv_without_a_phone_column_is_refused_with_the_columns() -> None:
    with pytest.raises(ColunasFaltando) as refusal:
        ler_csv(b"Nome,Idade\nPessoa,40\n")
    assert "telefone" in str(refusal.value)


async def test_doctors_are_registered_once_with_a_record(julia: Julia) -> None:
    doctor = {"telefone": "5511900001001", "primeiro_nome": "Pessoa", "especialidade": "Pediatria", "estado": "SP"}
    again = {"telefone": "5511900001001"}
    sent = {"content": json.dumps({"medicos": [doctor, again]}), "headers": {"Content-Type": "application/json"}}
    answer = await julia.ask("POST", "/api/v1/medicos", **sent)
    assert answer.status_code == 201, answer.text
    assert (len(answer.json()["novos"]), answer.json()["repetidos"]) == (1, 1)
    (row,) = await rows(julia.work.database, "SELECT telefone, status_telefone, especialidade FROM clientes")
    assert tuple(row.values()) == ("5511900001001", "pendente", "Pediatria")
    (note,) = await rows(julia.work.database, "SELECT action, after FROM audit_log")
    assert note["action"] == "medicos.incluir"
    assert "90000" not in str(note["after"])
    second = (await julia.ask("POST", "/api/v1/medicos", **sent)).json()
    assert (second["novos"], second["repetidos"]) == ([], 2)


def test_command_imports_a_file_and_lists_the_rejected_lines(
    tmp_path: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/julia.db")
    file = tmp_path / "medicos.csv"
    file.write_text(LIST, encoding="utf-8")
    code, out, _ = batuta(*JULIA, "medicos", "importar", str(file))
    assert code == 1
    assert "1 médico novo, 1 já cadastrado, 2 linhas recusadas" in out
    assert "linha 4" in out
