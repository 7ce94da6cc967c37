"""The periods for which conversations, group messages and appointments are kept, on both databases."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from app.main import build
from app.settings import Settings
from batuta.config import load_settings
from batuta.engine.batuta import Batuta
from batuta.errors import ConfigError
from batuta.queue.outcome import Done
from batuta.receive.endpoints import JobCall
from batuta.testing import FakeClock
from tests.julia.lgpd.pessoas import Pessoa, add_everywhere, add_shift, dump, lgpd_of
from tests.julia.tables import one, rows, write

OFF = {"keep_conversations_days": "off", "keep_group_messages_days": "off", "keep_appointments_days": "off"}


@pytest.fixture
async def work(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with build(Settings(database_url=database_url), clock=clock).work as work:
        yield work


async def prune(work: Batuta) -> dict[str, Any]:
    endpoint = work.endpoints.find("limpar-historico")
    assert endpoint is not None
    now = work.clock.now()
    outcome = await endpoint.handler(JobCall(params={}, key="x", started_at=now, deadline=now + timedelta(minutes=5)))
    assert isinstance(outcome, Done)
    assert isinstance(outcome.result, dict)
    found: Any = outcome.result["linhas"]
    assert outcome.items == sum(found.values())
    return dict(found)


async def settled(work: Batuta, clock: FakeClock) -> Pessoa:
    """Add a person whose messages, appointments and vacancies have all ended, so that their retention periods begin."""
    ana, now = await add_everywhere(work, 3), clock.now()
    await write(work.database, "UPDATE fila_mensagens SET status = 'enviada', finalizada_em = :now", now=now)
    await write(
        work.database, "UPDATE appointments SET normalization_status = 'completed', data_agendamento = '2026-01-02'"
    )
    await write(work.database, "UPDATE vagas_grupo SET status = 'importada'")
    await add_shift(work, ana, "realizada")
    return ana


async def test_texts_of_conversations_are_removed_after_two_years(work: Batuta, clock: FakeClock) -> None:
    ana = await settled(work, clock)
    clock.step(timedelta(days=729))
    assert not {"interacoes", "fila_mensagens"} & {*await prune(work)}
    clock.step(timedelta(days=2))
    found = await prune(work)
    assert (found["interacoes"], found["fila_mensagens"], found["fila_mensagens_dlq"]) == (2, 2, 1)
    said = await rows(work.database, "SELECT conteudo, telefone, tipo FROM interacoes")
    assert [(row["conteudo"], row["telefone"], row["tipo"]) for row in said] == [("[removido]", None, "entrada")] * 2
    assert (await one(work.database, "SELECT telefone FROM clientes"))["telefone"] == ana.telefone
    assert await prune(work) == {}


async def test_authors_and_texts_of_groups_are_removed_after_half_a_year(work: Batuta, clock: FakeClock) -> None:
    ana = await settled(work, clock)
    clock.step(timedelta(days=179))
    assert "vagas_grupo" not in await prune(work)
    clock.step(timedelta(days=2))
    found = await prune(work)
    counts = [
        found[name] for name in ("mensagens_grupo", "vagas_grupo", "vagas_grupo_fontes", "vagas", "contatos_grupo")
    ]
    assert counts == [1, 1, 1, 1, 1]  # the message without a vacancy was deleted before
    tables = await dump(work)
    groups = ("mensagens_grupo", "vagas_grupo", "vagas_grupo_fontes", "vagas", "contatos_grupo")
    assert [row for name in groups for row in tables[name] if any(sign in row for sign in ana.sinais)] == []
    assert (len(tables["vagas_grupo"]), len(tables["vagas"])) == (1, 1)
    assert await prune(work) == {}


async def test_blocked_author_and_vacancy_in_review_stay(work: Batuta, clock: FakeClock) -> None:
    await settled(work, clock)
    await write(work.database, "UPDATE contatos_grupo SET bloqueado_em = :now", now=clock.now())
    await write(work.database, "UPDATE vagas_grupo SET status = 'aguardando_revisao'")
    clock.step(timedelta(days=200))
    found = await prune(work)
    assert ("contatos_grupo" in found, "vagas_grupo" in found) == (False, False)


async def test_appointment_is_deleted_a_year_after_the_visit_and_the_last_change(
    work: Batuta, clock: FakeClock
) -> None:
    await settled(work, clock)
    clock.step(timedelta(days=364))
    assert "appointments" not in await prune(work)
    clock.step(timedelta(days=2))
    for waits in ("normalization_status = 'pending'", "data_agendamento = '2099-01-02'"):
        await write(work.database, f"UPDATE appointments SET {waits}")
        assert "appointments" not in await prune(work)
        await write(
            work.database, "UPDATE appointments SET normalization_status = 'failed', data_agendamento = '2026-01-02'"
        )
    assert (await prune(work))["appointments"] == 1


async def test_off_keeps_everything_and_nothing_else_switches_a_retention_off(
    database_url: str, clock: FakeClock
) -> None:
    async with build(Settings(database_url=database_url, **OFF), clock=clock).work as work:
        await settled(work, clock)
        clock.step(timedelta(days=5000))
        assert not {"interacoes", "fila_mensagens", "vagas_grupo", "vagas", "appointments"} & {*await prune(work)}
    for wrong in ("0", "-1", "never"):
        with pytest.raises(ConfigError):
            load_settings(Settings, {"KEEP_CONVERSATIONS_DAYS": wrong})
    assert load_settings(Settings, {"KEEP_CONVERSATIONS_DAYS": "off"}).keep_conversations_days == "off"
    assert load_settings(Settings, {"KEEP_CONVERSATIONS_DAYS": ""}).keep_conversations_days == 730
    assert load_settings(Settings, {"KEEP_CONVERSATIONS_DAYS": "90"}).keep_conversations_days == 90


async def test_open_erasure_continues_in_the_same_job(work: Batuta, clock: FakeClock) -> None:
    ana, now = await add_everywhere(work, 3), clock.now()
    await write(
        work.database,
        "UPDATE fila_mensagens SET envio_estado = 'parked', envio_desde = :now WHERE status = 'pendente'",
        now=now,
    )
    assert not (await lgpd_of(work).apagar(ana.telefone, por="x", motivo="x")).completo
    await write(
        work.database, "UPDATE fila_mensagens SET status = 'cancelada', envio_estado = NULL, envio_desde = NULL"
    )
    assert (await prune(work))["lgpd_pedidos"] > 0
    assert (await one(work.database, "SELECT concluido_em FROM lgpd_pedidos"))["concluido_em"] is not None
