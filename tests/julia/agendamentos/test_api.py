"""Appointments over HTTP and in the terminal: users upload a file, see its status, read its rows and export them."""

import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.contexts.agendamentos.service import QUEUE
from batuta.access import Scope, mint
from tests.command import Command
from tests.julia.agendamentos.sheets import HEADER, patient, sheet_xml, workbook, xlsx
from tests.julia.tables import one
from tests.julia.web.test_api import BEARER, Julia, is_problem, open_julia

PATH = "/api/v1/appointments"
JULIA = ("--app", "app.main:work", "--lang", "en")
CPF = "52998224725"
UNUSED_ID = "00000000-0000-7000-8000-999999999999"


@pytest.fixture
async def julia(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url, APP_ENV="production", SECRET_KEY="k" * 32, WEBHOOK_SECRET="w" * 32)
    yield opened
    await opened.work.close()


async def upload(julia: Julia, content: bytes, name: str = "agenda.xlsx", **options: Any) -> httpx2.Response:
    headers = {"Accept-Language": "en", **options.pop("headers", BEARER)}
    return await julia.ask("POST", f"{PATH}/import", files={"file": (name, content)}, headers=headers, **options)


async def ask(julia: Julia, method: str, path: str, **options: Any) -> httpx2.Response:
    return await julia.ask(method, path, headers={"Accept-Language": "en", **BEARER}, **options)


async def test_file_is_uploaded_read_and_exported(julia: Julia) -> None:
    content = xlsx(
        [HEADER, patient(1), patient(2, **{"Nome do Paciente": None}), patient(3, **{"Nome do Paciente": "=CMD()"})]
    )
    answer = await upload(julia, content)
    report = answer.json()
    assert answer.status_code == 200
    assert {name: report[name] for name in ("success", "filename", "total_rows", "imported", "jobs_enqueued", "cars_created")} == {
        "success": True, "filename": "agenda.xlsx", "total_rows": 3, "imported": 2, "jobs_enqueued": 2, "cars_created": 0,
    }  # fmt: skip
    assert report["errors"] == [
        {"linha": 3, "coluna": "Nome do Paciente", "motivo": "no patient name: the row was not imported"}
    ]
    listed = (await ask(julia, "GET", f"{PATH}?limite=1")).json()
    rest = (await ask(julia, "GET", f"{PATH}?antes_de={listed['proxima']}")).json()
    assert (len(listed["appointments"]), len(rest["appointments"]), rest["proxima"]) == (1, 1, None)
    job = rest["appointments"][0]["normalization_job_id"]
    waiting = (await ask(julia, "GET", f"/api/v1/jobs/{job}/status")).json()
    assert (waiting["success"], waiting["message"], waiting["job"]["status"]) == (
        True, "Status do job obtido com sucesso", "queued",
    )  # fmt: skip
    await julia.work.work_once(QUEUE, 10)
    ended = (await ask(julia, "GET", f"/api/v1/jobs/{job}/status")).json()["job"]
    assert set(ended) >= {"job_id", "status", "enqueue_time", "start_time", "finish_time", "result"}
    assert (ended["status"], ended["result"]["success"], ended["enqueue_time"][-1]) == ("complete", True, "Z")
    assert (await ask(julia, "GET", f"{PATH}/stats")).json()["normalization_status"]["completed"] == 2
    exported = (await ask(julia, "GET", f"{PATH}/export")).content.decode("utf-8-sig")
    header, *rows = csv.reader(io.StringIO(exported), delimiter=";")
    assert [dict(zip(header, row, strict=True))["nome_paciente"] for row in rows] == [
        "'=CMD()",
        "Pessoa Fictícia 00001",
    ]
    assert CPF not in exported
    await julia.work.task_ends.tick()
    shown = (await ask(julia, "GET", f"{PATH}/imports/{report['importacao_id']}")).json()
    assert shown == {**report, "leitura": {"state": "ended", "total": 2, "done": 2, "failed": 0}}


async def test_errors_of_several_sheets_name_their_sheet(julia: Julia) -> None:
    days = {n: sheet_xml([HEADER, patient(n), patient(9, **{"Nome do Paciente": None})]) for n in (1, 2)}
    report = (await upload(julia, workbook({f"Dia {n}": sheet for n, sheet in days.items()}))).json()
    assert (report["imported"], report["total_rows"]) == (2, 4)
    assert [(each["aba"], each["linha"], each["coluna"]) for each in report["errors"]] == [
        ("Dia 1", 3, "Nome do Paciente"),
        ("Dia 2", 3, "Nome do Paciente"),
    ]
    listed = (await ask(julia, "GET", PATH)).json()["appointments"]
    assert [(each["aba"], each["linha"]) for each in listed] == [("Dia 2", 2), ("Dia 1", 2)]


async def test_metrics_show_appointments_by_status_and_the_reading_rates(julia: Julia) -> None:
    await upload(julia, xlsx([HEADER, patient(1), patient(2)]))
    await julia.work.work_once(QUEUE, 1)
    lines = (await ask(julia, "GET", "/metrics")).text.splitlines()
    for status, count in (("pending", 1), ("processing", 0), ("completed", 1), ("failed", 0), ("skipped", 0)):
        assert f'julia_appointments{{status="{status}"}} {count}.0' in lines
    assert "julia_appointments_processing_rate_per_minute 0.2" in lines
    assert "julia_appointments_error_rate 0.0" in lines
    assert 'batuta_reading_up{reading="agendamentos"} 1.0' in lines
    assert "Pessoa" not in "".join(lines)


async def test_documents_are_masked_without_permission_and_request(julia: Julia) -> None:
    await upload(julia, xlsx([HEADER, patient(1)]))
    await julia.work.work_once(QUEUE, 10)
    covered = (await ask(julia, "GET", PATH)).json()["appointments"][0]
    assert (covered["cpf"], covered["rg"], covered["documento_completo"]) == ("***.982.247-**", "***", "***")
    assert "12345678" not in json.dumps(covered)
    assert CPF not in json.dumps(covered)
    seen = (await ask(julia, "GET", f"{PATH}/{covered['id']}?documentos=true")).json()
    assert (seen["cpf"], seen["rg"]) == (CPF, "123456789")
    token, given = mint("balcão", [Scope.READ], by="ana", now=julia.work.clock.now(), chance=lambda n: "c" * 2 * n)
    await julia.work.tokens.keep(token)
    headers = {"Authorization": f"Bearer {given}"}
    assert (await julia.ask("GET", PATH, headers=headers)).status_code == 200
    for path in (
        f"{PATH}?documentos=true",
        f"{PATH}/{covered['id']}?documentos=true",
        f"{PATH}/export?documentos=true",
    ):
        assert (await julia.ask("GET", path, headers=headers)).status_code == 403


async def test_cpf_is_masked_in_every_field_and_the_mask_never_overwrites_it(julia: Julia) -> None:
    said = {
        "observacoes": "cpf 529.982.247-25, ligar 11 90000-0001", "exames": f"***glicose*** {CPF}", "numero_convenio": "123456789",
        "endereco_completo": f"Rua Um, 1, casa do CPF {CPF}, Campinas/SP", "nome_convenio": "\uff1d1+1",
    }  # fmt: skip
    made = (await ask(julia, "POST", PATH, json={"nome_paciente": "Pessoa", **said})).json()
    await julia.work.work_once(QUEUE, 10)
    exported = (await ask(julia, "GET", f"{PATH}/export")).content
    listed = (await ask(julia, "GET", PATH)).json()["appointments"]
    for shown in (made, *listed):
        assert (shown["observacoes"], shown["numero_convenio"]) == ("cpf ***.982.247-**, ligar 11 90000-0001", "***")
    assert "'\uff1d1+1" in exported.decode("utf-8-sig")
    for text in (json.dumps(listed), exported.decode("utf-8-sig")):
        assert (CPF in text, "529.982.247-25" in text, "123456789" in text) == (False, False, False)
    again = (await upload(julia, exported, "agendamentos.csv")).json()
    assert (again["duplicates"], again["imported"], again["jobs_enqueued"]) == (1, 0, 0)
    kept = (await ask(julia, "GET", f"{PATH}/{made['id']}?documentos=true")).json()
    assert {name: kept[name] for name in said} == said
    assert (await ask(julia, "PATCH", f"{PATH}/{made['id']}", json={"exames": listed[0]["exames"]})).status_code == 422
    assert (await ask(julia, "PATCH", f"{PATH}/{made['id']}", json={"exames": "***jejum***"})).status_code == 200


async def test_names_are_limited_to_the_length_that_the_database_can_index(julia: Julia) -> None:
    long = "\u4e00" * 201
    for name in ("nome_unidade", "carro", "nome_paciente", "origem_id"):
        refused = await ask(julia, "POST", PATH, json={"nome_paciente": "Pessoa", name: long})
        assert is_problem(refused, 422, "invalid"), name


async def test_appointment_is_created_changed_and_read_again(julia: Julia) -> None:
    made = await ask(
        julia, "POST", PATH, json={"nome_paciente": "Pessoa", "endereco_completo": "Rua Um, 1, Campinas/SP"}
    )
    id = made.json()["id"]
    assert (made.status_code, made.json()["normalization_status"]) == (201, "pending")
    assert is_problem(await ask(julia, "POST", PATH, json={"nome_paciente": "Pessoa"}), 409, "appointment_repeated")
    await julia.work.work_once(QUEUE, 10)
    changed = await ask(julia, "PATCH", f"{PATH}/{id}", json={"endereco_completo": "Rua Dois, 2, Recife/PE"})
    assert (changed.status_code, changed.json()["normalization_status"]) == (200, "pending")
    await julia.work.work_once(QUEUE, 10)
    assert (await ask(julia, "GET", f"{PATH}/{id}")).json()["endereco_normalizado"]["cidade"] == "Recife"
    assert is_problem(await ask(julia, "GET", f"{PATH}/{UNUSED_ID}"), 404, "appointment_unknown")
    assert is_problem(await ask(julia, "GET", f"/api/v1/jobs/{UNUSED_ID}/status"), 404, "job_unknown")
    for wrong in ({"nome_paciente": " "}, {"cor": "azul"}, {"data_agendamento": "2026-02-30"}, {"cep": "1"}):
        assert (await ask(julia, "PATCH", f"{PATH}/{id}", json=wrong)).status_code == 422


async def test_cancelled_job_is_failed_in_the_api_and_cancelled_in_the_engine(julia: Julia) -> None:
    await ask(julia, "POST", PATH, json={"nome_paciente": "Pessoa", "endereco_completo": "Rua Um, 1, Campinas/SP"})
    row = await one(julia.work.database, "SELECT normalization_job_id AS job FROM appointments")
    assert await julia.work.tasks.cancel(row["job"], "not needed")
    job = (await ask(julia, "GET", f"/api/v1/jobs/{row['job']}/status")).json()["job"]
    assert (job["status"], job["error"]) == ("failed", "not needed")
    status = await julia.work.status(row["job"])
    assert status is not None
    assert status.status == "cancelled"


async def test_status_of_a_pruned_job_comes_from_its_appointment(julia: Julia) -> None:
    await ask(julia, "POST", PATH, json={"nome_paciente": "Pessoa", "endereco_completo": "Rua Um, 1, Campinas/SP"})
    await julia.work.work_once(QUEUE, 10)
    row = await one(julia.work.database, "SELECT id, normalization_job_id AS job FROM appointments")
    assert await julia.work.queues[QUEUE].discard(row["job"]) is False
    await julia.work.database.run(_forget(julia), id=row["job"])
    job = (await ask(julia, "GET", f"/api/v1/jobs/{row['job']}/status")).json()["job"]
    assert (job["status"], job["result"]) == (
        "complete", {"success": True, "appointment_id": row["id"], "fields_normalized": ["endereco_normalizado"]},
    )  # fmt: skip


def _forget(julia: Julia) -> Any:
    from batuta.stores.sql.queries import in_dialect, query_of

    return in_dialect(query_of("forget", "DELETE FROM tasks WHERE id = :id", writes=True), julia.work.database.dialect)


async def test_refused_file_names_the_next_step_and_upload_needs_a_token(julia: Julia) -> None:
    refused = await upload(julia, xlsx([HEADER[:7], patient()[:7]]))
    assert is_problem(refused, 422, "spreadsheet_refused")
    assert "lacks the columns Endereço Completo, Documento Completo" in refused.json()["detail"]
    assert (await upload(julia, xlsx([HEADER]), headers={})).status_code == 401
    assert is_problem(await upload(julia, b"x" * 11 * 1024 * 1024), 413, "too_large")
    assert (await julia.ask("POST", f"{PATH}/import", headers=BEARER)).status_code == 422


@pytest.mark.parametrize("sent", [b"a\x00b.csv", b"../../ab.csv", b"C:\\\\x\\\\ab.csv"])
async def test_uploaded_file_gets_a_harmless_name(julia: Julia, sent: bytes) -> None:
    row = b"Nome;Data;Endereco;Documento\r\nPessoa;11/03/2026;Rua Um 1;-\r\n"
    part = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="' + sent + b'"\r\n\r\n' + row + b"\r\n--x--\r\n"
    )
    headers = {**BEARER, "Content-Type": "multipart/form-data; boundary=x"}
    answer = await julia.ask("POST", f"{PATH}/import", content=part, headers=headers)
    assert (answer.status_code, answer.json()["filename"], answer.json()["imported"]) == (200, "ab.csv", 1)


def test_terminal_names_the_sheet_of_a_line(batuta: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    sheets = {name: sheet_xml([HEADER, patient(n, Data="talvez")]) for n, name in enumerate(("Um", "Dois"), start=1)}
    (folder / "agenda.xlsx").write_bytes(workbook({**sheets, "Resumo": sheet_xml([["Total", 2]])}))
    said = batuta(*JULIA, "agendamentos", "importar", "agenda.xlsx")[1]
    assert "warning, row 2 of sheet Dois, Data: the date cannot be read" in said
    assert "warning, row -, Resumo: this sheet was not read" in said


def test_file_is_imported_from_the_terminal(batuta: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    (folder / "agenda.xlsx").write_bytes(xlsx([HEADER, patient(1), patient(2, Data="talvez")]))
    code, said, _ = batuta(*JULIA, "agendamentos", "importar", "agenda.xlsx")
    assert (code, said.splitlines()[0]) == (0, "rows: 2 (new 2, updated 0, skipped 0, invalid 0); tasks: 2")
    assert "warning, row 3, Data: the date cannot be read" in said
    assert json.loads(batuta(*JULIA, "agendamentos", "contar", "--json")[1])["pending"] == 2
    assert "2026-03-11" in batuta(*JULIA, "agendamentos", "listar")[1]
    assert "CPF" not in batuta(*JULIA, "agendamentos", "listar")[1]
    assert "CPF" in batuta(*JULIA, "agendamentos", "listar", "--documentos")[1]
    health = batuta("--app", "app.main:work", "--lang", "pt-BR", "agendamentos", "saude")[1]
    assert ("na fila" in health, "agendamentos" in health, "a ler 2" in health) == (True, True, True)
    assert "queue_size" not in health
    assert "{" not in health
    assert json.loads(batuta(*JULIA, "agendamentos", "saude", "--json")[1])["timestamp"].endswith("-03:00")
    (folder / "agenda.pdf").write_text("só um texto")
    wrong = batuta("--app", "app.main:work", "--lang", "pt-BR", "agendamentos", "importar", "agenda.pdf")[2]
    assert "texto, que não é planilha" in wrong
    assert batuta(*JULIA, "agendamentos", "exportar", "fora.csv")[0] == 0
    assert CPF not in (folder / "fora.csv").read_text("utf-8-sig")
    assert "again: 0" in batuta(*JULIA, "agendamentos", "reprocessar")[1]
    (folder / "vazia.xlsx").write_bytes(xlsx([]))
    code, _, wrong = batuta(*JULIA, "agendamentos", "importar", "vazia.xlsx")
    assert (code, "empty" in wrong) == (1, True)


def test_terminal_shows_an_appointment_and_the_imports(
    batuta: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    assert batuta(*JULIA, "agendamentos", "importacoes")[1].strip() == "no imports"
    (folder / "agenda.xlsx").write_bytes(xlsx([HEADER, patient(1), patient(2)]))
    said = batuta(*JULIA, "agendamentos", "importar", "agenda.xlsx")[1]
    (brought,) = json.loads(batuta(*JULIA, "agendamentos", "importacoes", "--json")[1])["imports"]
    id = brought["importacao_id"]
    assert f"batuta agendamentos importacoes {id}" in said
    assert (brought["status"], brought["read_rows"], brought["total_rows"]) == ("concluida", brought["total_rows"], 2)
    code, one, _ = batuta(*JULIA, "agendamentos", "importacoes", id)
    assert (code, "agenda.xlsx" in one, "2/2" in one) == (0, True, True)
    listed = json.loads(batuta(*JULIA, "agendamentos", "listar", "--importacao", id, "--json")[1])["appointments"]
    first = listed[0]
    shown = batuta(*JULIA, "agendamentos", "ver", first["id"])[1]
    full = json.loads(batuta(*JULIA, "agendamentos", "ver", first["id"], "--documentos", "--json")[1])
    assert (first["id"] in shown, first["nome_paciente"], full["nome_paciente"] in shown) == (True, "***", False)
    day, unit = first["data_agendamento"], first["nome_unidade"]
    for words, count in ((("--dia", day), None), (("--dia", "1999-01-01"), 0), (("--unidade", unit), None)):
        found = json.loads(batuta(*JULIA, "agendamentos", "listar", *words, "--json")[1])["appointments"]
        expected = [each["id"] for each in listed if day == each["data_agendamento"] or "--unidade" in words]
        assert [each["id"] for each in found] == (expected if count is None else [])
    for word in ("ver", "importacoes"):
        code, _, err = batuta(*JULIA, "agendamentos", word, "nada")
        assert (code, "nada does not exist: `batuta agendamentos" in err) == (1, True)


def test_evaluation_writes_the_rules_readings_to_a_file(batuta: Command, folder: Path) -> None:
    (folder / "agenda.xlsx").write_bytes(xlsx([HEADER, patient(7)]))
    code, said, _ = batuta(*JULIA, "agendamentos", "avaliar", "agenda.xlsx", "--saida", "lido.jsonl", "--json")
    assert (code, json.loads(said)["linhas"]) == (0, 1)
    (read,) = [json.loads(line) for line in (folder / "lido.jsonl").read_text().splitlines()]
    assert (read["linha"], read["cpf"], read["endereco_normalizado"]["numero"], read["data"], read["hora"]) == (
        2, CPF, "7", "2026-03-11", "14:30",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("file", "portuguese", "english"),
    [
        ("nada.xlsx", "nada.xlsx não existe", "nada.xlsx does not exist"),
        (".", ". é uma pasta", ". is a folder"),
    ],
)
def test_missing_file_is_reported_in_the_chosen_language(
    batuta: Command, folder: Path, file: str, portuguese: str, english: str
) -> None:
    for language, said in (("pt-BR", portuguese), ("en", english)):
        code, _, err = batuta("--app", "app.main:work", "--lang", language, "agendamentos", "importar", file)
        assert (code, said in err, "`batuta agendamentos importar --help`" in err) == (2, True, True), err


@pytest.mark.parametrize("command", [("exportar",), ("avaliar", "agenda.xlsx", "--saida")])
def test_unwritable_output_is_reported_before_anything_is_read(
    batuta: Command, folder: Path, command: tuple[str, ...]
) -> None:
    (folder / "agenda.xlsx").write_bytes(xlsx([HEADER, patient(1)]))
    for language, said in (("pt-BR", "não existe"), ("en", "does not exist")):
        spoken = ("--app", "app.main:work", "--lang", language, "agendamentos")
        code, _, err = batuta(*spoken, *command, "no/such/folder.csv")
        assert (code, "no/such " + said in err, "Traceback" in err) == (2, True, False), err


async def test_field_errors_are_in_the_callers_language(julia: Julia) -> None:
    wrong = {
        "nome_paciente": "Pessoa",
        "telefone": "+55 11 98765-4321",
        "cep": "01234567",
        "hora_agendamento": "25:00",
        "data_agendamento": "11/03/2026",
        "status": "sei lá",
        "senha": "x",
    }
    said = {
        "pt-BR": {
            "telefone": "o valor não está no formato que este campo aceita: veja o formato em /docs",
            "cep": "o valor não está no formato que este campo aceita: veja o formato em /docs",
            "data_agendamento": "informe a data no formato 2026-03-11",
            "senha": "este campo não existe: veja em /docs os campos aceitos",
        },
        "en": {
            "data_agendamento": "write the day as in 2026-03-11",
        },
    }
    for language, expected in said.items():
        refused = await julia.ask("POST", PATH, json=wrong, headers={"Accept-Language": language, **BEARER})
        assert is_problem(refused, 422, "invalid")
        errors = {each["where"].removeprefix("body."): each["what"] for each in refused.json()["errors"]}
        assert {name: errors[name] for name in expected} == expected
        assert set(errors) == set(wrong) - {"nome_paciente"}
    unseen = await ask(julia, "POST", PATH, json={"nome_paciente": "\u200b"})
    assert is_problem(unseen, 422, "appointment_refused")
    missing = await julia.ask("POST", PATH, json={}, headers={"Accept-Language": "pt-BR", **BEARER})
    assert missing.json()["errors"] == [{"where": "body.nome_paciente", "what": "campo obrigatório ausente"}]


async def test_invalid_id_is_reported_as_invalid(julia: Julia) -> None:
    asked = [
        ("GET", f"{PATH}/abc"),
        ("PATCH", f"{PATH}/abc"),
        ("GET", f"{PATH}/imports/abc"),
        ("GET", "/api/v1/jobs/abc/status"),
    ]
    for method, path in asked:
        body = {"json": {"observacoes": "nada"}} if method == "PATCH" else {}
        refused = await julia.ask(method, path, headers={"Accept-Language": "pt-BR", **BEARER}, **body)
        assert is_problem(refused, 422, "invalid"), path
        assert [each["what"] for each in refused.json()["errors"]] == ["escreva um UUID"]
    assert is_problem(await ask(julia, "GET", f"{PATH}/{UNUSED_ID}"), 404, "appointment_unknown")
    for method, page in (
        ("GET", "import"),
        ("GET", "reprocess"),
        ("PATCH", "imports"),
        ("PATCH", "stats"),
        ("PATCH", "export"),
    ):
        refused = await ask(julia, method, f"{PATH}/{page}")
        assert is_problem(refused, 405, "method_not_allowed"), page
    strange = await julia.ask("GET", "/health/agendamento", headers={"Accept-Language": "pt-BR", **BEARER})
    assert is_problem(strange, 404, "unknown_health_page")
    assert "agendamentos" in strange.json()["detail"]


async def test_reading_warnings_are_reported_although_the_fields_stay_empty(julia: Julia) -> None:
    warned = {
        "CPF 111.111.111-12": ["cpf_invalido"],
        "CNH 52998224725": ["documento_nao_encontrado"],
        f"CPF {CPF}": [],
    }
    for number, (document, expected) in enumerate(warned.items()):
        said = {"nome_paciente": f"Pessoa {number}", "documento_completo": document}
        id = (await ask(julia, "POST", PATH, json=said)).json()["id"]
        await julia.work.work_once(QUEUE, 10)
        shown = (await ask(julia, "GET", f"{PATH}/{id}?documentos=true")).json()
        assert (shown["normalization_status"], shown["normalization_warnings"]) == ("completed", expected)
        assert (shown["documento_normalizado"] is None) == bool(expected)
    said = {"nome_paciente": "Pessoa", "endereco_completo": "depois passo"}
    id = (await ask(julia, "POST", PATH, json=said)).json()["id"]
    assert (await ask(julia, "GET", f"{PATH}/{id}")).json()["normalization_warnings"] == []  # no worker has read it yet
    await julia.work.work_once(QUEUE, 10)
    assert (await ask(julia, "GET", f"{PATH}/{id}")).json()["normalization_warnings"] == ["endereco_sem_logradouro"]


async def test_refusal_of_a_file_with_a_password_is_readable(julia: Julia) -> None:
    """The masking of secrets must not hide words in our own error message."""
    content = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(600)
    headers = {**BEARER, "Accept-Language": "pt-BR"}
    answer = await upload(julia, content, "agenda.xlsx", headers=headers)
    assert answer.status_code == 422
    assert "salve sem senha" in answer.json()["detail"]
    assert "segredo" not in answer.json()["detail"]
