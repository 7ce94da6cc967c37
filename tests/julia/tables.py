"""Helpers for tests on Julia's tables: plain SQL, and obviously fictitious people."""

from datetime import datetime
from typing import Any

from app.composition.envio import Sending, build_sending
from app.composition.jobs import HISTORY
from app.composition.julia import julia_of
from app.contexts.comum.whatsapp import WhatsApp
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.kernel.clock import SystemClock
from batuta.kernel.ids import Ids
from batuta.stores.sql.database import Database, Query
from batuta.stores.sql.queries import in_dialect, load_all, query_of
from batuta.testing.clock import START
from tests.stored import readable

PHONE = "5511900000001"
_ids = Ids(SystemClock())


def sending_through(work: Batuta, settings: Settings, line: WhatsApp) -> Sending:
    """Build a second sending service. It uses the same database records as the first, and the test's own gateway."""
    julia = julia_of(work)
    return build_sending(work, settings, julia.messages, julia.chips.chips, line)


async def write(database: Database, sql: str, **values: Any) -> int:
    return await database.run(_query(database, sql, writes=True), **values)


async def rows(database: Database, sql: str, **values: Any) -> list[dict[str, Any]]:
    return [readable(row) for row in await database.all(_query(database, sql, writes=False), **values)]


async def one(database: Database, sql: str, **values: Any) -> dict[str, Any]:
    (row,) = await rows(database, sql, **values)
    return row


async def prune(database: Database, context: str, *, before: datetime, limit: int = 10) -> dict[str, int]:
    """Run the statements in a context's history.sql. Return the number of rows deleted from each table."""
    (file,) = (file for file in HISTORY if file.parents[1].name == context)
    return {
        query.name: await database.run(query, before=before, limit=limit) for query in load_all(file, database.dialect)
    }


async def add_doctor(database: Database, telefone: str = PHONE, *, now: datetime = START) -> str:
    id = _ids.new()
    await write(
        database,
        "INSERT INTO clientes (id, telefone, primeiro_nome, created_at) VALUES (:id, :telefone, 'Médica Teste', :now)",
        id=id,
        telefone=telefone,
        now=now,
    )
    return id


async def add_chip(
    database: Database, instance: str = "julia-sim", *, tipo: str = "julia", status: str = "active"
) -> str:
    id = _ids.new()
    await write(
        database,
        "INSERT INTO chips (id, instance_name, tipo, status, evolution_connected, created_at, updated_at)"
        " VALUES (:id, :instance, :tipo, :status, TRUE, :now, :now)",
        id=id,
        instance=instance,
        tipo=tipo,
        status=status,
        now=START,
    )
    return id


def _query(database: Database, sql: str, *, writes: bool) -> Query:
    return in_dialect(query_of("test", sql, writes=writes), database.dialect)
