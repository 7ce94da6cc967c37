"""With BATUTA_KEYS set, the identity documents in appointments are unreadable in the database and usable everywhere
else.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta

import pytest

from app.contexts.agendamentos.importacao import ImportLoop
from app.contexts.agendamentos.relato import Visao, em_csv
from app.contexts.agendamentos.service import Filtro
from app.main import build
from batuta.errors import KeyMissing
from batuta.stores.sql.database import AsJson
from batuta.testing import FakeClock
from tests.julia.agendamentos.sheets import HEADER, patient, xlsx
from tests.julia.agendamentos.test_service import START, Office, settings_of
from tests.julia.lgpd.pessoas import insert, lgpd_of
from tests.julia.tables import rows

OLD, NEW = "o" * 32, "n" * 32
CPF, CARD, PHONE = "52998224725", "carteira-canary", "5511900000001"
DOCUMENTS = {"documento_completo": f"CPF {CPF}", "carteira_convenio": CARD}
STORED = "SELECT * FROM appointments ORDER BY id"
MINUTES = timedelta(minutes=2)

Open = Callable[..., AbstractAsyncContextManager[Office]]


@pytest.fixture
def opened(database_url: str) -> Open:
    """Open Julia with the given encryption keys. Every call uses the same clock."""
    clock = FakeClock(START)

    @asynccontextmanager
    async def open_office(*keys: str) -> AsyncIterator[Office]:
        settings = settings_of(database_url, batuta_keys=",".join(keys) or None)
        async with build(settings, clock).work as work:
            yield Office(work, clock, settings)

    return open_office


async def raw(office: Office) -> str:
    return str(await rows(office.database, STORED))


async def test_documents_are_unreadable_in_the_database_and_shown_with_permission(opened: Open) -> None:
    async with opened(NEW) as office:
        id = await office.criar(**DOCUMENTS, telefone=PHONE)
        await office.importar(patient(2, **{"Documento Completo": f"CPF {CPF}"}))
        assert await office.work_on() == 2
        text = await raw(office)
        assert [sign for sign in (CPF, CARD, "529.982.247-25") if sign in text] == []
        row = await office.agendamentos.um(id)
        assert (row["cpf"], row["documento_completo"]) == (CPF, DOCUMENTS["documento_completo"])
        assert row["documento_normalizado"]["cpf"] == CPF
        csv = em_csv(await office.agendamentos.lista(Filtro(), 10), Visao.INTEIRA, header=False)
        assert csv.count(CPF) == 4
        # Unchanged text is not read again, although each encryption of it differs.
        await office.agendamentos.alterar(id, {"documento_completo": DOCUMENTS["documento_completo"]}, by="ana")
        await office.importar(patient(2, **{"Documento Completo": f"CPF {CPF}"}))
        assert await office.work_on() == 0
        await office.agendamentos.alterar(id, {"documento_completo": "CPF 11144477735"}, by="ana")
        assert await office.work_on() == 1
        assert (await office.agendamentos.um(id))["cpf"] == "11144477735"


async def test_reading_waits_for_its_key_and_rotation_makes_the_old_one_unnecessary(opened: Open) -> None:
    async with opened() as office:
        plain = await office.criar(**DOCUMENTS, hora_agendamento="10:00")
        await office.work_on()
    async with opened(OLD) as office:
        id = await office.criar(**DOCUMENTS, telefone=PHONE)
        await office.importar(patient(3, **{"Documento Completo": f"CPF {CPF}"}))
    async with opened(NEW) as office:
        with pytest.raises(KeyMissing):
            await office.agendamentos.um(id)
        await office.work_on()
        waiting = await rows(office.database, "SELECT attempts FROM tasks WHERE status = 'queued'")
        assert [each["attempts"] for each in waiting] == [0, 0]
        # An import that updates the appointment waits too, and does not fail.
        with pytest.raises(KeyMissing):
            await office.importacao.importar(xlsx([HEADER, patient(3)]), "a.xlsx", by="ana")
        for _ in range(12):
            office.clock.step(MINUTES)
            await ImportLoop(office.importacao).tick()
    async with opened(NEW, OLD) as office:
        columns = office.work.encrypted_columns
        for column in columns.columns:
            async for _ in columns.rotate(column):
                pass
        assert CPF not in await raw(office)
    async with opened(NEW) as office:
        office.clock.step(MINUTES)
        await ImportLoop(office.importacao).tick()
        assert [row["status"] for row in await rows(office.database, "SELECT status FROM importacoes")] == [
            "concluida"
        ] * 2
        assert await office.work_on() == 2
        assert [(await office.agendamentos.um(each))["cpf"] for each in (plain, id)] == [CPF, CPF]


async def test_export_and_erasure_of_a_person_read_encrypted_data(opened: Open) -> None:
    async with opened(NEW) as office:
        work, now = office.work, office.work.clock.now()
        await office.criar(**DOCUMENTS, hora_agendamento="10:00")  # the patient is found by the document alone
        await office.work_on()
        await insert(
            work, "clientes", id=work.ids.new(), telefone=PHONE, primeiro_nome="Pessoa", sobrenome="Fictícia", cpf=CPF,
            created_at=now,
        )  # fmt: skip
        secret = work.encryption.encrypt([[f"ligar para {PHONE}"], {}], "tasks.args")
        await insert(
            work, "tasks", id=work.ids.new(), queue="default", name="x", args=AsJson([secret, {}, {}]), status="failed",
            available_at=now, created_at=now, finished_at=now,
        )  # fmt: skip
        document = await lgpd_of(work).exportar(PHONE, por="ana", motivo="pediu")
        assert CARD in json.dumps(document["tabelas"]["appointments"])
        assert "sealed:" not in json.dumps(document)
        assert document["mencoes"] == {"tasks.args": 1}
        receipt = await lgpd_of(work).apagar(PHONE, por="ana", motivo="pediu")
        assert receipt.completo
        assert await rows(work.database, STORED) == []
        (task,) = await rows(work.database, "SELECT args FROM tasks WHERE name = 'x'")
        assert work.encryption.read(task["args"], "tasks.args") == [[["ligar para [removido]"], {}], {}, {}]


async def test_a_text_that_looks_encrypted_stays_a_text(opened: Open) -> None:
    written = "sealed:v1.00000000.AAAA"
    async with opened() as office:
        id = await office.criar(documento_completo=written)
        assert (await office.agendamentos.um(id))["documento_completo"] == written
