"""Two imports run at the same time. They can wait for each other only on PostgreSQL, because SQLite has one writer."""

import asyncio

import pytest

from batuta.stores.sql.queries import in_dialect, query_of
from tests.engine.queue.test_keys_at_once import Undone, waited_for
from tests.julia.agendamentos.sheets import HEADER, patient, xlsx
from tests.julia.agendamentos.test_service import Office, office
from tests.julia.tables import rows, write

__all__ = ["office"]
HOLD = query_of("hold", "SELECT id FROM appointments WHERE id = :id FOR UPDATE", writes=True)
TOUCH = query_of("touch", "UPDATE tasks SET error = error WHERE status = 'failed'", writes=True)
PUT_BACK = query_of("put_back", "INSERT INTO appointments SELECT * FROM copia WHERE chave = :chave", writes=True)


@pytest.fixture
async def chaves(office: Office) -> list[str]:
    """Import three rows, copy them to the table ``copia``, and delete them. Return their keys in ascending order."""
    await office.importacao.importar(xlsx([[*HEADER], *map(patient, (1, 2, 3))]), "agenda.xlsx", by="alguém")
    found = await rows(office.database, "SELECT chave FROM appointments ORDER BY chave")
    await office.database.script("CREATE TABLE copia AS SELECT * FROM appointments")
    await write(office.database, "DELETE FROM tasks")
    await write(office.database, "DELETE FROM appointments")
    return [row["chave"] for row in found]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_two_files_with_the_same_rows_in_another_order_are_both_imported(
    office: Office, chaves: list[str]
) -> None:
    holds, may_end = asyncio.Event(), asyncio.Event()

    async def hold_the_middle_one() -> None:
        async with office.database.transaction() as transaction:
            await transaction.run(in_dialect(PUT_BACK, "postgres"), chave=chaves[1])
            holds.set()
            await may_end.wait()
            raise Undone

    order = await rows(office.database, "SELECT nome_paciente FROM copia ORDER BY chave")
    numbers = [int(row["nome_paciente"].split()[-1]) for row in order]
    files = [xlsx([[*HEADER], *map(patient, each)]) for each in (numbers, numbers[::-1])]
    holder = asyncio.create_task(hold_the_middle_one())
    await holds.wait()
    both = [asyncio.create_task(office.importacao.importar(file, "agenda.xlsx", by="alguém")) for file in files]
    await waited_for(office.database, 2)
    may_end.set()
    with pytest.raises(Undone):
        await holder
    ended = await asyncio.gather(*both)
    assert [each["status"] for each in ended] == ["concluida", "concluida"]
    assert sorted(each["imported"] for each in ended) == [0, 3]
    assert len(await rows(office.database, "SELECT id FROM appointments")) == 3


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_reprocessing_and_an_import_do_not_deadlock(office: Office) -> None:
    await office.importacao.importar(xlsx([[*HEADER], patient(1)]), "agenda.xlsx", by="alguém")
    await write(office.database, "UPDATE tasks SET status = 'failed'")
    await write(office.database, "UPDATE appointments SET normalization_status = 'failed'")
    ((id,),) = [row.values() for row in await rows(office.database, "SELECT id FROM appointments")]
    holds, may_go_on = asyncio.Event(), asyncio.Event()

    async def change() -> None:
        """Lock the appointment and then its task, as an import does."""
        async with office.database.transaction() as transaction:
            await transaction.all(in_dialect(HOLD, "postgres"), id=id)
            holds.set()
            await may_go_on.wait()
            await transaction.run(in_dialect(TOUCH, "postgres"))

    changing = asyncio.create_task(change())
    await holds.wait()
    again = asyncio.create_task(office.agendamentos.reprocessar(limit=10, by="alguém"))
    await waited_for(office.database, 1)
    may_go_on.set()
    await changing
    assert await again == [str(id)]
