"""The queries in the operators' manuals work as written, with `batuta sql` on both databases and with any client on
PostgreSQL.
"""

from datetime import timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import asyncpg
import pytest

from app.composition.catalogue import migrations
from app.contexts.mensagens.fila import FILA_MENSAGENS
from batuta import BatutaError
from batuta.kernel.clock import SystemClock
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import NewItem
from batuta.runlog.execution import Ending, Status
from batuta.stores import connect
from batuta.stores.sql.database import Database
from batuta.stores.sql.migrations import Migrator, engine_migrations
from batuta.stores.sql.operators import read_for_operators
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.controls import SqlControls, SqlSwitches
from batuta.stores.sql.tables.executions import SqlExecutionLog
from batuta.testing import EventRecorder, FakeClock
from tests.engine.dispatch.scheduling import Endpoint, House, job
from tests.julia.grupos.bancada import bancada, vaga
from tests.julia.tables import PHONE, add_doctor

STUCK_IN_GROUPS = """
-- Ver itens travados
SELECT estagio, COUNT(*)
FROM grupo_pipeline_fila
WHERE status = 'pendente'
  AND updated_at < NOW() - INTERVAL '1 hour'
GROUP BY estagio;
"""
STUCK_AT_A_STAGE = """
SELECT id, grupo_id, estagio, erro
FROM grupo_pipeline_fila
WHERE status = 'pendente'
  AND estagio = 'extracao'  -- ou outro estagio
  AND updated_at < NOW() - INTERVAL '1 hour'
LIMIT 20;
"""
RESET_GROUPS = """
-- Resetar itens travados
UPDATE grupo_pipeline_fila
SET status = 'pendente', tentativas = tentativas + 1, erro = NULL
WHERE status = 'pendente'
  AND updated_at < NOW() - INTERVAL '1 hour';
"""
LAST_OF_A_JOB = """
-- Ultimas 20 execucoes de um job
SELECT job_name, started_at, status, duration_ms, items_processed
FROM job_executions
WHERE job_name = 'processar_grupos'
ORDER BY started_at DESC
LIMIT 20;
"""
FAILED = """
-- Jobs que falharam nas ultimas 24h
SELECT job_name, started_at, error
FROM job_executions
WHERE status = 'error'
  AND started_at > NOW() - INTERVAL '24 hours'
ORDER BY started_at DESC;
"""
MEAN_DURATIONS = """
-- Media de duracao por job (ultimos 7 dias)
SELECT
  job_name,
  COUNT(*) as execucoes,
  AVG(duration_ms) as duracao_media_ms,
  MAX(duration_ms) as duracao_max_ms,
  SUM(CASE WHEN status = 'error' THEN 1 ELSE 0 END) as erros
FROM job_executions
WHERE started_at > NOW() - INTERVAL '7 days'
GROUP BY job_name
ORDER BY duracao_media_ms DESC;
"""
RAN_LATELY = """
-- Jobs que nao rodaram nas ultimas 2h (stale)
SELECT DISTINCT job_name
FROM job_executions
WHERE job_name IN (
  'heartbeat',
  'processar_mensagens_agendadas',
  'processar_campanhas_agendadas',
  'processar_grupos'
)
AND started_at > NOW() - INTERVAL '2 hours'
ORDER BY job_name;
"""
ITEMS_TODAY = """
-- Itens processados por job hoje
SELECT
  job_name,
  COUNT(*) as execucoes,
  SUM(items_processed) as total_processados
FROM job_executions
WHERE DATE(started_at) = CURRENT_DATE
  AND items_processed IS NOT NULL
GROUP BY job_name
ORDER BY total_processados DESC;
"""
ERRORS_OF_A_JOB = """
SELECT started_at, error
FROM job_executions
WHERE job_name = 'nome_do_job'
  AND status = 'error'
ORDER BY started_at DESC
LIMIT 10;
"""
LAST_OF_THE_QUEUE = """
SELECT started_at, status, items_processed
FROM job_executions
WHERE job_name = 'processar_mensagens_agendadas'
ORDER BY started_at DESC
LIMIT 10;
"""
BY_CATEGORY = """
-- Execucoes por categoria (hoje)
SELECT
    -- Extrair categoria do job_name
    CASE
        WHEN job_name LIKE '%campanha%' THEN 'campanha'
        WHEN job_name LIKE '%followup%' THEN 'followup'
        WHEN job_name LIKE '%grupo%' THEN 'grupos'
        ELSE 'outros'
    END as categoria,
    COUNT(*) as execucoes,
    COUNT(*) / 24.0 as por_hora
FROM job_executions
WHERE executed_at >= CURRENT_DATE
GROUP BY 1
ORDER BY execucoes DESC;
"""

WAITING = """
SELECT COUNT(*)
FROM fila_mensagens
WHERE status = 'pendente';
"""
STUCK = """
-- Ver se ha mensagens travadas (processando por muito tempo)
SELECT id, created_at, telefone_destino
FROM fila_mensagens
WHERE status = 'processando'
  AND updated_at < NOW() - INTERVAL '5 minutes';
"""
RESET_STUCK = """
-- Resetar mensagens travadas para pendente
UPDATE fila_mensagens
SET status = 'pendente', tentativas = tentativas + 1
WHERE status = 'processando'
  AND updated_at < NOW() - INTERVAL '5 minutes';
"""


@pytest.fixture
async def asked(database_url: str) -> Any:
    """A database in which a scheduler has executed two runs, and a function that runs a query on it."""
    clock, events = SystemClock(), EventRecorder()
    database = connect(database_url, clock)
    await database.open()
    await Migrator(database, engine_migrations(), clock, events).migrate()
    house = House(database, clock, events)  # type: ignore[arg-type]
    ids = Ids(clock)
    switches, controls = SqlSwitches(database, ids, events), SqlControls(database, ids, events)
    house.log = SqlExecutionLog(
        database, switches, controls, ids, clock
    )  # the server's clock is used, as in production
    worked = job("processar_grupos", target=Endpoint(answer=Ending(status=Status.SUCCESS, items=200)))
    failed = job("nome_do_job", target=Endpoint(answer=Ending(status=Status.ERROR, error="HTTP 500")))
    for each in (worked, failed):
        await house.scheduler(each).run_by_hand(each)
    # A zone in which it is about noon, so that no day ends between the runs and the queries.
    zone = ZoneInfo(f"Etc/GMT{clock.now().hour - 12:+d}")
    yield partial(_read, database, zone)
    await database.close()


async def _read(database: Database, zone: ZoneInfo, query: str) -> list[dict[str, Any]]:
    return await read_for_operators(database, query, zone)


async def test_query_shows_the_last_executions_of_a_job(asked: Any) -> None:
    (row,) = await asked(LAST_OF_A_JOB)
    assert (row["job_name"], row["status"], row["items_processed"]) == ("processar_grupos", "success", 200)
    assert row["started_at"].utcoffset() == timedelta(0)
    assert await asked(LAST_OF_THE_QUEUE) == []


async def test_queries_show_failures_and_their_errors(asked: Any) -> None:
    assert [(row["job_name"], row["error"]) for row in await asked(FAILED)] == [("nome_do_job", "HTTP 500")]
    assert [row["error"] for row in await asked(ERRORS_OF_A_JOB)] == ["HTTP 500"]


async def test_queries_show_durations_items_and_recent_jobs(asked: Any) -> None:
    durations = {row["job_name"]: (row["execucoes"], row["erros"]) for row in await asked(MEAN_DURATIONS)}
    assert durations == {"processar_grupos": (1, 0), "nome_do_job": (1, 1)}
    assert [row["job_name"] for row in await asked(RAN_LATELY)] == ["processar_grupos"]
    assert [(row["job_name"], row["total_processados"]) for row in await asked(ITEMS_TODAY)] == [
        ("processar_grupos", 200)
    ]


async def test_query_by_category_uses_the_older_name_of_the_column(asked: Any) -> None:
    found = {row["categoria"]: (row["execucoes"], row["por_hora"]) for row in await asked(BY_CATEGORY)}
    assert set(found) == {"grupos", "outros"}
    assert float(found["grupos"][1]) == pytest.approx(1 / 24)


async def test_days_begin_at_midnight_of_the_zone(database_url: str, clock: FakeClock) -> None:
    database = connect(database_url, clock)
    await database.open()
    zone = ZoneInfo("America/Sao_Paulo")
    try:
        (row,) = await _read(
            database, zone, "SELECT DATE(NOW()) = CURRENT_DATE AS today, NOW() >= CURRENT_DATE AS later"
        )
    finally:
        await database.close()
    assert (bool(row["today"]), bool(row["later"])) == (True, True)


@pytest.mark.parametrize("query", ["DELETE FROM job_executions", "SELECT 1; SELECT 2", "SELECT nothing FROM nowhere"])
async def test_statement_that_writes_or_is_wrong_is_refused(asked: Any, query: str) -> None:
    with pytest.raises(BatutaError):
        await asked(query)


@pytest.fixture
async def fila(postgres_url: str) -> Any:
    """Julia's tables, a queue that uses the server's clock, and a plain connection for queries."""
    clock = SystemClock()
    database = connect(postgres_url, clock)
    await database.open()
    await Migrator(database, [*engine_migrations(), *migrations()], clock, EventRecorder()).migrate()
    queue = SqlQueue(database, FILA_MENSAGENS, Ids(clock), clock)
    values = {"cliente_id": await add_doctor(database), "telefone_destino": PHONE, "conteudo": "mensagem de teste"}
    await queue.put([NewItem(values=values) for _ in range(3)])
    connection = await asyncpg.connect(postgres_url)
    yield connection, queue
    await connection.close()
    await database.close()


async def test_query_counts_waiting_messages(fila: Any) -> None:
    connection, queue = fila
    assert (await connection.fetchval(WAITING)) == 3
    await queue.settle_and_claim([], LeaseHolder(owner="a", lease=timedelta(minutes=1)), 1)
    assert (await connection.fetchval(WAITING)) == 2
    assert await connection.fetch(STUCK) == []


async def test_queries_show_and_reset_stuck_messages_without_a_second_send(fila: Any) -> None:
    connection, queue = fila
    sends, dies, lives = (await queue.settle_and_claim([], LeaseHolder(owner="a", lease=timedelta(hours=1)), 3)).leases
    await connection.execute("UPDATE fila_mensagens SET updated_at = updated_at - INTERVAL '6 minutes'")
    await connection.execute(
        "UPDATE fila_mensagens SET envio_estado = 'intent', envio_desde = NOW() WHERE id = $1", sends.id
    )
    await connection.execute("UPDATE fila_mensagens SET lease_until = NOW() WHERE id = ANY($1)", [sends.id, dies.id])
    assert {str(row["id"]) for row in await connection.fetch(STUCK)} == {sends.id, dies.id, lives.id}
    assert await connection.execute(RESET_STUCK) == "UPDATE 3"
    await queue.rescue(10)
    again = (await queue.settle_and_claim([], LeaseHolder(owner="b", lease=timedelta(minutes=1)), 10)).leases
    # The item of the live worker stays, and the message that may have been sent is not repeated.
    assert [lease.id for lease in again] == [dies.id]


async def test_queries_show_and_reset_stuck_group_rows_at_their_stage(postgres_url: str) -> None:
    clock = FakeClock(SystemClock().now() - timedelta(hours=3))
    async with bancada(postgres_url, clock) as mesa:
        await mesa.dizem(vaga())
        await mesa.dizem(vaga(dia="2026-12-01"))
        for stage in ("pendente", "classificacao"):
            await mesa.work.work_once(stage, 10)
        connection = await asyncpg.connect(postgres_url)
        try:
            assert [tuple(row) for row in await connection.fetch(STUCK_IN_GROUPS)] == [("extracao", 2)]
            rows = await connection.fetch(STUCK_AT_A_STAGE)
            assert len(rows) == 2
            assert await connection.execute(RESET_GROUPS) == "UPDATE 2"
            assert await connection.fetch(STUCK_IN_GROUPS) == []
            assert {
                row["tentativas"] for row in await connection.fetch("SELECT tentativas FROM grupo_pipeline_fila")
            } == {1}
        finally:
            await connection.close()
        clock.step(timedelta(hours=4))
        await mesa.trabalha()
        assert set(await mesa.fila()) == {"finalizado"}
