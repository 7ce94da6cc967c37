"""Julia's frequent statements use their index, whatever the size of the table."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from app.contexts.campanhas.alcance import Alcance
from app.contexts.campanhas.lotes import batch_queries
from app.contexts.campanhas.repository import campaign_queries, start_queries
from app.contexts.envio import saude
from app.contexts.envio.saude import FilaQueries
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.qualidade import alertas
from app.contexts.qualidade.alertas import AlertQueries
from batuta.stores.sql.database import AsJson, Database, Query
from batuta.stores.sql.queries import in_dialect, load_queries, query_of
from batuta.stores.sql.queue.statements import postgres_claim_queries, queue_queries, sqlite_claim_queries
from batuta.testing import FakeClock
from tests.plans.test_hot_statements import insert_rows, plan

TABLES = (
    "INSERT INTO clientes (id, telefone, created_at) SELECT {id}, '5511' || (900000000 + i), now() FROM n",
    "INSERT INTO fila_mensagens (id, cliente_id, telefone_destino, conteudo, agendar_para, created_at, status)"
    " SELECT id, id, telefone, 't', now(), now(), CASE substr(telefone, 13, 1) WHEN '0' THEN 'pendente' ELSE 'enviada' END"
    " FROM clientes",
)
STUCK = "SELECT id FROM fila_mensagens WHERE status = 'processando' AND updated_at < :now"
DOUBTS = "SELECT id FROM fila_mensagens WHERE envio_estado IS NOT NULL ORDER BY envio_desde LIMIT 100"
OF_DOCTOR = "SELECT id FROM fila_mensagens WHERE cliente_id = :id ORDER BY created_at DESC LIMIT 10"
TO_LOOK_UP = (
    "SELECT id FROM clientes WHERE status_telefone IN ('pendente', 'validando', 'erro') AND deleted_at IS NULL"
    " AND coalesce(telefone_validar_em, created_at) <= :now ORDER BY coalesce(telefone_validar_em, created_at) LIMIT 50"
)
# Matches a scan of a whole table. A derived table and a row of constants are not tables.
SCANNED = re.compile(r"SCAN (?!CONSTANT|waiting)(?!.*USING)")
BY_PHONE = "SELECT id FROM clientes WHERE telefone_chave = :phone AND deleted_at IS NULL"


async def fill(database: Database) -> None:
    await insert_rows(database, *TABLES, rows=20_000)


@pytest.fixture
def full(julia: Database) -> Database:
    return julia


async def test_messages_are_claimed_reset_reconciled_and_found_by_index(full: Database, clock: FakeClock) -> None:
    def query(text: str) -> Query:
        return in_dialect(query_of("q", text, writes=False), full.dialect)

    now = clock.now()
    id = "00000001-0000-7000-8000-000000000000"
    rescue = await plan(full, queue_queries(FILA_MENSAGENS, full.dialect).rescue, limit=100, now=now)
    assert "fila_mensagens_leased" in rescue
    next_at = queue_queries(FILA_MENSAGENS, full.dialect).next_at
    assert "fila_mensagens_ready" in await plan(full, next_at, now=now, queue="fila_mensagens")
    assert "fila_mensagens_stuck" in await plan(full, query(STUCK), now=now)
    assert "fila_mensagens_in_doubt" in await plan(full, query(DOUBTS))
    assert "fila_mensagens_of_doctor" in await plan(full, query(OF_DOCTOR), id=id)
    assert "clientes_to_validate" in await plan(full, query(TO_LOOK_UP), now=now)
    assert "clientes_by_phone" in await plan(full, query(BY_PHONE), phone="5511900000001")


async def test_campaign_progress_reads_only_the_rows_of_the_campaign(full: Database, clock: FakeClock) -> None:
    campaigns, start, reach = (
        campaign_queries(full.dialect),
        start_queries(full.dialect),
        Alcance(full.dialect)._queries,
    )
    now, id = clock.now(), "00000001-0000-7000-8000-000000000000"
    assert "fila_mensagens_of_campaign" in await plan(full, campaigns.messages, id=1, held=None)
    assert "campanha_destinatarios" in await plan(full, campaigns.recipients, id=1)
    of_batch = batch_queries(full.dialect)
    for query in (of_batch.unfinished, of_batch.counts):
        assert "fila_mensagens_of_campaign" in await plan(full, query, lotes=AsJson([id]))
    if full.dialect == "postgres":
        return  # PostgreSQL knows its row counts, and these tables are empty here
    assert "fila_mensagens_of_doctor" in await plan(full, start.next, id=1, limit=500)
    assert "interacoes_once" in await plan(full, reach.delivered, message_id="x", now=now)
    assert "campaign_contact_history_of_doctor" in await plan(full, reach.last, cliente_id=id, since=now, until=now)


async def test_queue_health_uses_indexes(full: Database, clock: FakeClock) -> None:
    queries = load_queries(FilaQueries, Path(saude.__file__).parent / "sql" / "saude.sql", full.dialect)
    counted = await plan(full, queries.metrics, **saude.query_values(clock.now()))
    for index in ("fila_mensagens_by_sending", "fila_mensagens_by_failing", "fila_mensagens_in_doubt"):
        assert index in counted


async def test_figures_of_the_alerts_are_read_by_index(full: Database, clock: FakeClock) -> None:
    queries = load_queries(AlertQueries, Path(alertas.__file__).parent / "sql" / "alertas.sql", full.dialect)
    now = clock.now()
    offers = await plan(full, queries.offers, since=now - timedelta(days=1), until=now)
    assert "fila_mensagens_sent_by_type" in offers
    if full.dialect == "postgres":
        return  # PostgreSQL knows its row counts, and the other tables are empty here
    ago = {"hour_ago": now, "day_ago": now, "week_ago": now}
    plans = [
        await plan(full, queries.handovers, now=now, **ago),
        await plan(full, queries.places, now=now, day_ago=now, week_ago=now, least=5, most=10),
        await plan(full, queries.answered, hours_ago=now, since=now, most=10),
        await plan(full, queries.silence, since=now, settled=now),
        await plan(full, queries.scores, since=now),
        await plan(full, queries.durations, hour_ago=now),
    ]
    assert "conversas_historico_by_time" in plans[0]
    assert [line for each in (offers, *plans) for line in each.splitlines() if SCANNED.search(line)] == []


async def test_claim_reads_only_the_waiting_messages(full: Database, clock: FakeClock) -> None:
    given = {"limit": 10, "holds": AsJson([]), "now": clock.now(), "queue": "fila_mensagens"}
    if full.dialect == "sqlite":
        picked = await plan(full, sqlite_claim_queries(FILA_MENSAGENS).pick, **given)
    else:
        picked = await plan(full, postgres_claim_queries(FILA_MENSAGENS).claim, owner="a", lease=30_000_000, **given)
    assert "fila_mensagens_ready" in picked
