"""Appointments on both databases: each row of a file becomes a stored row with a task that reads it, and no appointment
is forgotten.
"""

import asyncio
import csv
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.composition.development.demo import planilha_de_demonstracao
from app.composition.julia import julia_of
from app.contexts.agendamentos.importacao import ImportLoop, resultado
from app.contexts.agendamentos.model import (
    RECUSAS,
    AgendamentoInexistente,
    AgendamentoRecusado,
    AgendamentoRepetido,
    ColunasIncertas,
    PlanilhaRecusada,
)
from app.contexts.agendamentos.planilha.linhas import MotivoDaLinha, Pedaco
from app.contexts.agendamentos.relato import Visao, em_csv
from app.contexts.agendamentos.service import QUEUE, Filtro
from app.contexts.agendamentos.tasks import Conferente
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.testing import FakeClock
from tests.julia.agendamentos.sheets import HEADER, Cell, patient, xlsx
from tests.julia.tables import one, rows, write

START = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)
READ = "SELECT normalization_status, normalization_error, endereco_normalizado, documento_normalizado, cpf, rg FROM appointments"


class Office:
    def __init__(self, work: Batuta, clock: FakeClock, settings: Settings) -> None:
        self.work, self.clock, self.database = work, clock, work.database
        made = julia_of(work).appointments
        self.agendamentos, self.importacao = made.agendamentos, made.importacao

    async def importar(self, *linhas: list[Any], name: str = "agenda.xlsx") -> dict[str, Any]:
        return dict(await self.importacao.importar(xlsx([HEADER, *linhas]), name, by="alguém"))

    async def work_on(self, most: int = 1000) -> int:
        """Run a worker until every due task is done."""
        return await self.work.work_once(QUEUE, most)

    async def one(self, sql: str = READ) -> dict[str, Any]:
        return await one(self.database, sql)

    async def criar(self, **campos: Any) -> str:
        row = await self.agendamentos.criar({"nome_paciente": "Pessoa Fictícia", **campos}, by="alguém")
        return str(row["id"])


def settings_of(database_url: str, **more: Any) -> Settings:
    return Settings.model_validate({"database_url": database_url, **more})


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Office]:
    clock, settings = FakeClock(START), settings_of(database_url)
    async with build(settings, clock).work as work:
        yield Office(work, clock, settings)


async def test_file_becomes_rows_with_tasks_that_read_them(office: Office) -> None:
    done = await office.importar(patient(1), patient(2, **{"Documento Completo": 52998224725.0}))
    names = ("status", "total_rows", "valid_rows", "invalid_rows", "imported", "duplicates", "skipped", "jobs_enqueued")
    assert [done[name] for name in names] == ["concluida", 2, 2, 0, 2, 0, 0, 2]
    assert await office.agendamentos.contagem() == {
        "pending": 2, "processing": 0, "completed": 0, "failed": 0, "skipped": 0,
    }  # fmt: skip
    waiting = (await rows(office.database, "SELECT id, normalization_job_id AS job FROM appointments ORDER BY linha"))[
        0
    ]
    queued = await office.work.status(waiting["job"])
    assert queued is not None
    assert queued.status == "queued"
    assert await office.work_on() == 2
    first, second = await rows(office.database, f"{READ} ORDER BY linha")
    assert (first["normalization_status"], first["cpf"], first["rg"]) == ("completed", "52998224725", "123456789")
    assert first["endereco_normalizado"] | {"avisos": []} == {
        "logradouro": "Rua dos Testes", "numero": "1", "complemento": "Apto 3", "bairro": "Jardim Modelo", "cidade": "Campinas",
        "uf": "SP", "cep": "13010-001", "referencia": None, "avisos": [], "fonte": "regra",
    }  # fmt: skip
    assert second["cpf"] == "52998224725"
    ended = await office.work.status(waiting["job"])
    assert ended is not None
    assert (ended.status, ended.result) == (
        "complete",
        {
            "success": True,
            "appointment_id": waiting["id"],
            "fields_normalized": ["endereco_normalizado", "documento_normalizado"],
        },
    )


async def test_repeated_file_updates_rows_instead_of_doubling_them(office: Office) -> None:
    await office.importar(patient(1), patient(2))
    await office.work_on()
    again = await office.importar(
        patient(1, Observações="voltou"), patient(2, **{"Endereço Completo": "Rua Nova, 9, Recife/PE"})
    )
    assert (again["imported"], again["duplicates"], again["jobs_enqueued"]) == (0, 2, 1)
    first, second = await rows(office.database, f"{READ.replace(' FROM', ', observacoes FROM')} ORDER BY linha")
    assert (first["normalization_status"], first["observacoes"]) == ("completed", "voltou")
    assert (second["normalization_status"], second["endereco_normalizado"], second["cpf"]) == ("pending", None, None)
    await office.work_on()
    second = (await rows(office.database, f"{READ} ORDER BY linha"))[1]
    assert second["endereco_normalizado"]["cidade"] == "Recife"


async def test_import_keeps_fields_it_does_not_mention_and_never_reverts_a_status(office: Office) -> None:
    await office.importar(patient(1, Observações="portão azul"))
    id = (await office.one("SELECT id FROM appointments"))["id"]
    by_hand = {"status": "Confirmado", "carro": "CARRO 9", "canal_confirmacao": "telefone", "cep": "13010-001"}
    await office.agendamentos.alterar(id, by_hand, by="alguém")
    await office.work_on()
    columns = ["Nome do Paciente", "Data", "Hora", "Unidade", "Endereço Completo", "Documento Completo", "Telefone"]
    row: list[Cell] = [*patient(1)]
    again = [dict(zip(HEADER, row, strict=True))[name] for name in columns]
    content = xlsx([[*columns, "Status"], [*again[:-2], "***.982.247-**", None, "pendente"]])
    done = await office.importacao.importar(content, "outra.xlsx", by="alguém")
    assert (done["imported"], done["duplicates"], done["jobs_enqueued"]) == (0, 1, 0)
    kept = await office.agendamentos.um(id)
    assert {name: kept[name] for name in by_hand} == by_hand
    assert (kept["telefone"], kept["observacoes"], kept["cpf"]) == ("5511900000001", "portão azul", "52998224725")
    assert kept["normalization_status"] == "completed"
    assert [(each["coluna"], each["problema"]) for each in done["warnings"]] == [("Documento Completo", "coberto")]
    content = xlsx([[*columns, "Status"], [*again, "coletado"]])
    await office.importacao.importar(content, "outra.xlsx", by="alguém")
    assert (await office.agendamentos.um(id))["status"] == "Coletado"


async def test_new_address_does_not_keep_the_old_cep(office: Office) -> None:
    id = await office.criar(data_agendamento="11/03/2026", endereco_completo="Rua Um, 1, Campinas/SP", cep="13010-001")
    header = ["Nome do Paciente", "Data", "Endereço Completo", "Documento Completo"]
    for address, cep in (("Rua Um, 1, Campinas/SP", "13010-001"), ("Rua Dois, 2, Recife/PE", None)):
        content = xlsx([header, ["Pessoa Fictícia", "11/03/2026", address, None]])
        await office.importacao.importar(content, "agenda.xlsx", by="alguém")
        kept = await office.agendamentos.um(id)
        assert (kept["endereco_completo"], kept["cep"]) == (address, cep)


async def test_reimported_export_changes_nothing(office: Office) -> None:
    header = [*HEADER, "Marca", "Protocolo", "Nr. Carteira", "Canal de Confirmação"]
    more: list[Cell] = ["Marca", "P-1", "0001", "telefone"]
    names: list[dict[str, Cell]] = [{}, {"Nome do Paciente": "=CMD()"}, {"Data": "talvez"}]
    content = xlsx([header, *([*patient(n, **some), more[0], f"P-{n}", *more[2:]] for n, some in enumerate(names))])
    await office.importacao.importar(content, "agenda.xlsx", by="alguém")
    await office.importar(patient(7))
    for row in await office.agendamentos.lista(Filtro(), 10):
        await office.agendamentos.alterar(row["id"], {"carro": "CARRO 1", "status": "Agendado"}, by="alguém")
    await office.work_on()
    wanted = "SELECT * FROM appointments ORDER BY id"
    before = await rows(office.database, wanted)
    exported = em_csv(before, Visao.SEM_DOCUMENTOS, header=True)
    for cells in csv.reader(exported.splitlines(), delimiter=";"):
        assert not any("529" in cell for cell in cells[1:])  # the first cell is an id with random digits
    done = await office.importacao.importar(f"\ufeff{exported}".encode(), "agendamentos.csv", by="alguém")
    assert (done["imported"], done["duplicates"], done["jobs_enqueued"]) == (0, 4, 0)
    others = ("importacao_id", "linha", "updated_at")
    after = await rows(office.database, wanted)
    assert [{**row, **dict.fromkeys(others)} for row in after] == [{**row, **dict.fromkeys(others)} for row in before]


async def test_concurrent_changes_are_all_kept(office: Office) -> None:
    id = await office.criar(data_agendamento="11/03/2026", endereco_completo="Rua Um, 1, Campinas/SP")
    header = ["Nome do Paciente", "Data", "Endereço Completo", "Documento Completo", "Nome do Exame"]
    for n in range(5):
        changes = [
            {"telefone": f"55119{90000000 + n}"},
            {"observacoes": f"nota {n}"},
            {"endereco_completo": f"Rua Nova, {n}"},
        ]
        content = xlsx([header, ["Pessoa Fictícia", "11/03/2026", None, None, f"exame {n}"]])
        await asyncio.gather(
            *(office.agendamentos.alterar(id, change, by="alguém") for change in changes),
            office.importacao.importar(content, "agenda.xlsx", by="alguém"),
        )
        kept = await office.agendamentos.um(id)
        assert {name: kept[name] for change in changes for name in change} == {
            k: v for each in changes for k, v in each.items()
        }
        assert (kept["exames"], kept["normalization_job_id"] is not None) == (f"exame {n}", True)


async def test_concurrent_changes_cannot_make_two_appointments_equal(office: Office) -> None:
    one, other = await office.criar(), await office.criar(nome_paciente="Outra")
    wanted = {"nome_paciente": "Uma Só"}
    ended = await asyncio.gather(
        *(office.agendamentos.alterar(id, wanted, by="alguém") for id in (one, other)), return_exceptions=True
    )
    assert sorted(isinstance(each, AgendamentoRepetido) for each in ended) == [False, True]


async def test_bad_row_stops_no_other_and_every_problem_has_its_line(office: Office) -> None:
    done = await office.importar(
        patient(1),
        patient(2, **{"Nome do Paciente": " "}),
        [None] * 10,
        patient(4, Data="31/02/2026", Telefone="90000-0001"),
        patient(5, **{"Endereço Completo": None, "Documento Completo": "-"}),
        patient(1, Observações="a mesma de novo"),
    )
    assert (done["total_rows"], done["valid_rows"], done["invalid_rows"], done["imported"], done["duplicates"]) == (
        5,
        4,
        1,
        3,
        1,
    )
    assert done["errors"] == [{"linha": 3, "coluna": "Nome do Paciente", "problema": "sem_nome"}]
    assert [(each["linha"], each["problema"]) for each in done["warnings"]] == [
        (5, "data_ilegivel"), (5, "telefone_ilegivel"), (7, "repetido"),
    ]  # fmt: skip
    states = await rows(office.database, "SELECT linha, normalization_status FROM appointments ORDER BY linha")
    assert [(each["linha"], each["normalization_status"]) for each in states] == [
        (5, "pending"),
        (6, "skipped"),
        (7, "pending"),
    ]


async def test_laboratorys_sheet_is_read_by_its_own_header(office: Office) -> None:
    header = [
        "NOME  DA MARCA", "nome da unidade", "Nome do Paciente", "Data/Hora Inicio Agendamento", "Nome da Sala",
        "Contatos do Paciente", "Documentos do Paciente", "CEP", "Endereço Coleta", "Status Confirmação",
    ]  # fmt: skip
    row: list[Cell] = [
        "Marca", "Unidade", "Pessoa Fictícia", 46092.604166666664, "LAB-SP-COL-DOM-CARRO A - manhã",
        "11 90000-0001 / 11 90000-0002", 11144477735.0, 1310200.0, "Rua Modelo, 5, São Paulo/SP", "confirmado",
    ]  # fmt: skip
    content = xlsx([["Relatório do dia"], [], header, row, [*row[:4], "Recepção", *row[5:]]])
    done = await office.importacao.importar(content, "coleta.xlsx", by="alguém")
    assert (done["imported"], done["skipped"], done["cars_created"]) == (1, 1, 1)
    assert done["warnings"] == [{"linha": 5, "coluna": "Nome da Sala", "problema": "sala"}]
    kept = await office.one("SELECT * FROM appointments")
    assert (kept["data_agendamento"], kept["hora_agendamento"], kept["carro"]) == ("2026-03-11", "14:30", "CARRO A")
    assert (kept["telefone"], kept["cep"], kept["status"], kept["linha"]) == (
        "5511900000001",
        "01310-200",
        "Confirmado",
        4,
    )
    assert (kept["documento_completo"], kept["endereco_completo"]) == ("11144477735", "Rua Modelo, 5, São Paulo/SP")


async def test_rows_are_committed_in_pieces_and_an_interrupted_import_resumes(office: Office) -> None:
    content = xlsx([HEADER, *(patient(n) for n in range(1, 601))])
    taken = office.importacao._try

    async def dies(id: str, desde: int, pedaco: Pedaco) -> bool:
        if desde:
            raise asyncio.CancelledError
        return await taken(id, desde, pedaco)

    office.importacao._try = dies  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await office.importacao.importar(content, "agenda.xlsx", by="alguém")
    office.importacao._try = taken  # type: ignore[method-assign]
    assert (await office.one("SELECT count(*) AS n FROM appointments"))["n"] == 500
    loop = ImportLoop(office.importacao)
    await loop.tick()
    assert (await office.one("SELECT count(*) AS n FROM appointments"))[
        "n"
    ] == 500  # another process may still work on the rest
    await office.clock.advance(timedelta(minutes=1))
    await loop.tick()
    done = await office.one("SELECT status, imported, jobs_enqueued FROM importacoes")
    assert (done["status"], done["imported"], done["jobs_enqueued"]) == ("concluida", 600, 600)
    assert (await office.one("SELECT count(*) AS n FROM importacao_arquivos"))["n"] == 0
    assert await office.work_on(2000) == 600
    assert (await office.agendamentos.contagem())["completed"] == 600


@pytest.mark.parametrize(
    ("content", "name", "motivo", "said"),
    [
        (xlsx([]), "a.xlsx", MotivoDaLinha.VAZIA, "empty"),
        (b"", "a.xlsx", MotivoDaLinha.VAZIA, "empty"),
        (
            xlsx([HEADER[:7], patient()[:7]]),
            "a.xlsx",
            MotivoDaLinha.SEM_COLUNAS,
            "Endereço Completo, Documento Completo",
        ),
        ("Nome;Endereço\nPessoa;Rua".encode("latin-1"), "a.xlsx", MotivoDaLinha.NAO_E_PLANILHA, "CSV"),
        (b"%PDF-1.7", "a.xlsx", MotivoDaLinha.NAO_E_PLANILHA, "PDF"),
        (xlsx([["a", "b"], ["c", "d"]]), "a.xlsx", MotivoDaLinha.SEM_CABECALHO, "header"),
    ],
    ids=["no cell", "nothing", "columns", "csv", "pdf", "no header"],
)
async def test_refused_file_gives_its_reason_and_leaves_nothing(
    office: Office, content: bytes, name: str, motivo: MotivoDaLinha, said: str
) -> None:
    with pytest.raises(RECUSAS[motivo], match=said):
        await office.importacao.importar(content, name, by="alguém")
    assert await rows(office.database, "SELECT id FROM importacoes") == []
    assert issubclass(RECUSAS[motivo], PlanilhaRecusada)


async def test_cp1252_csv_is_recognised_by_its_name(office: Office) -> None:
    content = (";".join(HEADER) + "\r\n" + ";".join(str(cell or "") for cell in patient(3))).encode("cp1252")
    done = await office.importacao.importar(content, "agenda.csv", by="alguém")
    assert done["imported"] == 1
    assert (await office.one("SELECT nome_paciente FROM appointments"))["nome_paciente"] == "Pessoa Fictícia 00003"


async def test_formula_is_never_computed_and_gets_a_warning(office: Office) -> None:
    done = await office.importar(
        patient(1, Observações='\x00formula:HYPERLINK("http://x","y")', **{"Nome do Paciente": "=1+1"})
    )
    assert done["warnings"] == [{"linha": 2, "coluna": None, "problema": "formula"}]
    kept = await office.one("SELECT nome_paciente, observacoes FROM appointments")
    assert (kept["nome_paciente"], kept["observacoes"]) == ("=1+1", None)


async def test_only_changed_fields_of_an_appointment_are_read_again(office: Office) -> None:
    id = await office.criar(endereco_completo="Rua Um, 1, Centro, Campinas/SP", data_agendamento="11/03/2026")
    assert await office.work_on() == 1
    assert (await office.agendamentos.um(id))["data_agendamento"] == "2026-03-11"
    changed = await office.agendamentos.alterar(id, {"observacoes": "ligar antes"}, by="alguém")
    assert (changed["normalization_status"], await office.work_on()) == ("completed", 0)
    changed = await office.agendamentos.alterar(
        id, {"endereco_completo": "Rua Dois, 2, Centro, Recife/PE"}, by="alguém"
    )
    assert (changed["normalization_status"], changed["endereco_normalizado"]) == ("pending", None)
    assert await office.work_on() == 1
    assert (await office.agendamentos.um(id))["endereco_normalizado"]["cidade"] == "Recife"
    log = await rows(office.database, "SELECT action, after FROM audit_log ORDER BY at, id")
    assert [each["action"] for each in log] == ["agendamento.criar", "agendamento.alterar", "agendamento.alterar"]
    assert log[1]["after"] == {"campos": ["observacoes"]}  # names of fields, without their values


async def test_invalid_value_is_refused_with_its_field_name(office: Office) -> None:
    id = await office.criar()
    with pytest.raises(AgendamentoRepetido):
        await office.criar()
    for campos in (
        {"data_agendamento": "31/02/2026"},
        {"cor": "azul"},
        {"observacoes": "a\x00b"},
        {"documento_completo": "***"},
        {"status": "Talvez"},
    ):
        with pytest.raises(AgendamentoRecusado, match=next(iter(campos))):
            await office.agendamentos.alterar(id, campos, by="alguém")
    with pytest.raises(AgendamentoInexistente):
        await office.agendamentos.um("00000000-0000-7000-8000-000000000000")


async def test_list_has_filters_and_pages(office: Office) -> None:
    await office.importar(*(patient(n, Data=f"{n:02d}/03/2026") for n in range(1, 8)))
    first = await office.agendamentos.lista(Filtro(), 3)
    rest = await office.agendamentos.lista(Filtro(antes_de=first[-1]["id"]), 10)
    assert (len(first), len(rest), len({row["id"] for row in [*first, *rest]})) == (3, 4, 7)
    some = await office.agendamentos.lista(Filtro(de="2026-03-03", ate="2026-03-05", unidade="Unidade Modelo"), 10)
    assert sorted(row["data_agendamento"] for row in some) == ["2026-03-03", "2026-03-04", "2026-03-05"]
    assert await office.agendamentos.lista(Filtro(unidade="Outra"), 10) == []


async def test_appointments_without_a_working_task_are_found(office: Office) -> None:
    lost, dead = (
        await office.criar(endereco_completo="Rua Um, 1, Campinas/SP"),
        await office.criar(nome_paciente="Outra", endereco_completo="Rua Dois, 2, Campinas/SP"),
    )
    jobs = {
        row["id"]: row["job"]
        for row in await rows(office.database, "SELECT id, normalization_job_id AS job FROM appointments")
    }
    await write(office.database, "DELETE FROM tasks WHERE id = :id", id=jobs[lost])
    assert await office.work.tasks.cancel(jobs[dead], "alguém cancelou")
    loop = Conferente(office.database, office.agendamentos, office.clock)
    await loop.tick()
    assert (await office.agendamentos.contagem())["pending"] == 2
    await office.clock.advance(timedelta(minutes=6))
    await loop.tick()
    assert (await office.agendamentos.um(dead))["normalization_error"] == "alguém cancelou"
    assert await office.work_on() == 1
    assert await office.agendamentos.contagem() == {
        "pending": 0, "processing": 0, "completed": 1, "failed": 1, "skipped": 0,
    }  # fmt: skip


async def test_nothing_is_enqueued_while_both_readings_are_off(database_url: str) -> None:
    off = settings_of(database_url, address_normalization_enabled=False, document_normalization_enabled=False)
    async with build(off, FakeClock(START)).work as work:
        office = Office(work, FakeClock(START), off)
        done = await office.importar(patient(1))
        assert (done["jobs_enqueued"], (await office.agendamentos.contagem())["skipped"]) == (0, 1)


async def test_appointments_skipped_while_reading_was_off_can_be_read_later(database_url: str) -> None:
    off = settings_of(database_url, address_normalization_enabled=False, document_normalization_enabled=False)
    nothing = {"Endereço Completo": None, "Documento Completo": None}
    async with build(off, FakeClock(START)).work as work:
        office = Office(work, FakeClock(START), off)
        await office.importar(patient(1), patient(2), patient(3, **nothing))
        assert await office.agendamentos.reprocessar(limit=10, by="alguém") == []
    clock, on = FakeClock(START), settings_of(database_url)
    async with build(on, clock).work as work:
        office = Office(work, clock, on)
        again = await office.importar(patient(1), patient(3, **nothing))
        assert (again["duplicates"], again["jobs_enqueued"]) == (2, 1)
        assert len(await office.agendamentos.reprocessar(limit=10, by="alguém")) == 1
        assert await office.work_on() == 2
        assert (await office.agendamentos.contagem())["completed"] == 2
        assert await office.agendamentos.reprocessar(limit=10, by="alguém") == []
        every = [row["id"] for row in await office.agendamentos.lista(Filtro(), 10)]
        assert (
            len(await office.agendamentos.reprocessar(every, limit=10, by="alguém")) == 2
        )  # an explicit list includes them
        assert (await office.agendamentos.contagem())["pending"] == 2
        assert await office.work_on() == 2
        assert [row["cpf"] for row in await rows(office.database, f"{READ} ORDER BY linha")].count("52998224725") == 2


async def test_appointments_set_to_waiting_by_an_operator_are_enqueued_immediately(office: Office) -> None:
    await office.importar(patient(1), patient(2))
    await office.work_on()
    await write(
        office.database, "UPDATE appointments SET normalization_status = 'pending', normalization_job_id = NULL"
    )
    assert len(await office.agendamentos.reprocessar(limit=10, by="alguém")) == 2
    # the tasks of these appointments are still waiting
    assert await office.agendamentos.reprocessar(limit=10, by="alguém") == []
    assert await office.work_on() == 2
    assert (await office.agendamentos.contagem())["completed"] == 2


async def test_health_counts_the_progress_of_reading(office: Office) -> None:
    health = julia_of(office.work).appointments.health
    await office.importar(patient(1), patient(2), patient(3, **{"Endereço Completo": None, "Documento Completo": None}))
    before = await health.documento()
    assert (before["status"], before["metrics"]["queue_size"], before["metrics"]["has_worker"]) == ("healthy", 2, False)
    await office.clock.advance(timedelta(minutes=2))
    assert (await health.documento())["alerts"] == ["no_worker"]
    await office.work_on()
    after = await health.documento()
    figures = {name: after["metrics"][name] for name in ("queue_size", "processing_rate_per_minute", "error_rate")}
    assert figures == {"queue_size": 0, "processing_rate_per_minute": 0.4, "error_rate": 0.0}
    assert after["metrics"]["appointments"] == {
        "pending": 0,
        "processing": 0,
        "completed": 2,
        "failed": 0,
        "skipped": 1,
    }


async def test_import_record_is_deleted_after_half_a_year_and_appointments_stay(office: Office) -> None:
    await office.importar(patient(1))
    loop = ImportLoop(office.importacao)
    await office.clock.advance(timedelta(days=179))
    await loop.tick()
    assert len(await office.importacao.recentes(10)) == 1
    await office.clock.advance(timedelta(days=2))
    await loop.tick()
    assert await office.importacao.recentes(10) == []
    assert len(await office.agendamentos.lista(Filtro(), 10)) == 1


async def test_demonstration_sheet_is_imported_and_read(office: Office) -> None:
    sheet = planilha_de_demonstracao(office.clock.now().date())
    await office.importacao.importar(sheet, "demonstracao.csv", by="demo")
    assert await office.work_on() > 30
    counts = await office.agendamentos.contagem()
    assert (counts["failed"], counts["completed"] + counts["skipped"]) == (0, 40)


async def test_reading_by_the_rules_logs_the_same_steps_as_a_reading_by_the_model(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="julia.agendamentos")
    id = await office.criar(endereco_completo="Rua Um, 1, Campinas/SP", documento_completo="CPF 529.982.247-25")
    await office.work_on()
    assert [record.getMessage() for record in caplog.records if record.name == "julia.agendamentos"] == [
        f"Starting normalization for appointment {id}",
        f"Normalizing address for appointment {id}",
        f"Address normalized for appointment {id}",
        f"Normalizing documents for appointment {id}",
        f"Documents normalized for appointment {id}",
        f"Normalization completed successfully for {id}",
    ]


async def test_chosen_columns_are_shown_and_remembered_for_files_with_the_same_titles(office: Office) -> None:
    titles: list[Cell] = ["Quando" if name == "Data" else name for name in HEADER]
    content = xlsx([titles, patient(1), patient(2)])
    with pytest.raises(ColunasIncertas, match='"Quando=data"'):
        await office.importacao.importar(content, "agenda.xlsx", by="alguém")
    done = await office.importacao.importar(content, "agenda.xlsx", by="alguém", colunas=["Quando=data"])
    assert resultado(done)["colunas"]["Quando"] == "data"
    later = await office.importacao.importar(xlsx([titles, patient(3)]), "abril.xlsx", by="alguém")
    assert (later["imported"], resultado(later)["colunas"]["Quando"]) == (1, "data")
    assert {
        row["data_agendamento"] for row in await rows(office.database, "SELECT data_agendamento FROM appointments")
    } == {"2026-03-11"}
