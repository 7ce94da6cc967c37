"""Appointments whose tasks begin together are read and written in batches, without affecting each other."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from app.contexts.agendamentos.model import StatusDaLeitura
from app.contexts.agendamentos.repository import appointment_queries
from app.contexts.agendamentos.service import QUEUE, TASK, Ligado
from app.contexts.agendamentos.tasks import Normalizador
from app.main import build
from batuta.testing import FakeClock
from tests.julia.agendamentos.sheets import patient
from tests.julia.agendamentos.test_service import READ, START, Office, settings_of
from tests.julia.tables import one, rows

MANY = 40


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Office]:
    clock, settings = FakeClock(START), settings_of(database_url, arq_max_jobs=2 * MANY)
    async with build(settings, clock).work as work:
        yield Office(work, clock, settings)


async def test_tasks_that_begin_together_share_their_statements(office: Office) -> None:
    await office.importar(*(patient(n) for n in range(1, MANY + 1)))
    calls: list[str] = []
    office.database.observe(lambda call, *_: calls.append(call))
    assert await office.work_on() == MANY
    assert (await office.agendamentos.contagem())["completed"] == MANY
    assert len(calls) < MANY / 2


async def test_batch_reading_gives_each_appointment_its_own_result(office: Office) -> None:
    await office.importar(
        patient(1), patient(2, **{"Documento Completo": None}), patient(3, **{"Endereço Completo": "não informado"})
    )
    await office.work_on()
    first, second, third = await rows(office.database, f"{READ} ORDER BY linha")
    assert first["endereco_normalizado"]["numero"] == "1"
    assert (second["endereco_normalizado"]["numero"], second["documento_normalizado"]) == ("2", None)
    assert (third["endereco_normalizado"], third["documento_normalizado"]["cpf"]) == (None, third["cpf"])
    assert {each["normalization_status"] for each in (first, second, third)} == {"completed"}
    nothing = (
        "SELECT count(*) AS n FROM appointments WHERE documento_normalizado IS NULL OR endereco_normalizado IS NULL"
    )
    assert await one(office.database, nothing) == {"n": 2}


async def test_task_for_an_invalid_appointment_affects_no_other_in_its_batch(office: Office) -> None:
    id = await office.work.tasks.enqueue(TASK, "abc")
    await office.importar(patient(1), patient(2))
    await office.work_on(3)
    assert (await office.agendamentos.contagem())["completed"] == 2
    status = await office.work.status(id)
    assert status is not None
    assert status.result == {"success": False, "appointment_id": "abc", "fields_normalized": []}


async def test_locked_appointment_delays_no_other_and_is_written_in_its_turn(office: Office) -> None:
    await office.importar(*(patient(n) for n in range(1, 6)))
    held: dict[str, Any] = await one(office.database, "SELECT id FROM appointments WHERE linha = 2")
    done = "SELECT count(*) AS n FROM appointments WHERE normalization_status = 'completed'"
    async with office.database.transaction() as transaction:
        await transaction.one(appointment_queries(office.database.dialect).hold, id=held["id"])
        working = asyncio.create_task(office.work.work_once(QUEUE, 100))
        if office.database.dialect == "postgres":  # SQLite has one writer, for which every task waits
            async with asyncio.timeout(30):
                while (await _read_in_another_task(office, done))["n"] < 4:
                    pass
    assert await working == 5
    assert (await office.agendamentos.contagem())["completed"] == 5


@pytest.mark.parametrize("is_new_first", [True, False])
async def test_only_the_reading_of_the_current_text_is_written(office: Office, is_new_first: bool) -> None:
    await office.importar(patient(1))
    id = str((await one(office.database, "SELECT id FROM appointments"))["id"])
    normalizador = Normalizador(office.database, Ligado(), office.clock)

    async def reading() -> Callable[[], Coroutine[Any, Any, bool]]:
        stored = await normalizador._sources.ask(id)
        assert stored is not None
        row = dict(stored)
        return partial(normalizador._write, row, await normalizador._lido(row), StatusDaLeitura.COMPLETED)

    old = await reading()
    await office.agendamentos.alterar(id, {"endereco_completo": "Rua Nova, 999, Centro, Campinas/SP"}, by="alguém")
    new = await reading()
    both = [new, old] if is_new_first else [old, new]
    assert await asyncio.gather(*(write() for write in both)) == [write is new for write in both]
    assert (await one(office.database, READ))["endereco_normalizado"]["numero"] == "999"


async def _read_in_another_task(office: Office, sql: str) -> dict[str, Any]:
    """Run the query in another asyncio task, because the current one has an open transaction."""
    return await asyncio.create_task(one(office.database, sql))
