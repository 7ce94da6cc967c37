"""Operators' actions in the groups pipeline, and its jobs, on both databases."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from app.contexts.esteira.jobs import CANARIO
from app.contexts.leitura_grupos.api import Leitura
from batuta.queue.item import Lease
from batuta.queue.outcome import Done, Failed, Outcome, Partial, Skipped, StageOutcome
from batuta.receive.endpoints import JobCall
from batuta.stores.sql.database import Row
from batuta.testing import FakeClock
from tests.julia.grupos.bancada import Bancada, bancada, leitor_de_linhas, vaga
from tests.julia.tables import prune


async def run(mesa: Bancada, name: str, **params: str) -> Outcome:
    handler: Callable[[JobCall], Awaitable[Outcome]] = mesa.handlers[name]
    now: datetime = mesa.clock.now()
    return await handler(
        JobCall(key="k", params=params, started_at=now, deadline=now + timedelta(minutes=5), by="operadora")
    )


async def ok(mesa: Bancada, name: str, **params: str) -> Any:
    answer = await run(mesa, name, **params)
    assert isinstance(answer, Done), answer
    return answer


async def page(mesa: Bancada, name: str = "grupos") -> Any:
    return await mesa.work.health.page(name)


async def broken(lease: Lease) -> StageOutcome:
    return Failed("it is broken", permanent=True)


async def drop(lease: Lease) -> StageOutcome:
    return Skipped("extracao_falhou")


async def test_one_run_of_the_job_takes_a_row_through_all_stages_and_counts_each(mesa: Bancada) -> None:
    await mesa.dizem(vaga())
    await mesa.dizem("bom dia a todos")
    answer = await ok(mesa, "processar-grupos")
    assert answer.items == 2 + 1 + 3
    assert answer.result["ciclo"]["por_estagio"] == {
        "pendente": 2, "classificacao": 0, "extracao": 1, "normalizacao": 1, "deduplicacao": 1, "importacao": 1,
    }  # fmt: skip
    assert answer.result["ciclo"]["erros"] == 0
    fila = answer.result["fila"]
    assert (fila["finalizado"], fila["descartado"], fila["pendente"], fila["erros_max_tentativas"]) == (2, 1, 0, 0)


async def test_batch_has_the_requested_size(mesa: Bancada) -> None:
    for _ in range(5):
        await mesa.dizem("bom dia a todos")
    assert (await ok(mesa, "processar-grupos", batch_size="2", max_workers="1")).items == 2
    assert isinstance(await run(mesa, "processar-grupos", batch_size="muitos"), Failed)


async def test_two_concurrent_runs_share_the_work_and_repeat_none(mesa: Bancada) -> None:
    for n in range(40):
        await mesa.dizem(vaga(dia=f"2026-03-{1 + n % 30:02d}", hospital=f"Hospital Inventado {n}"))
    one, two = await asyncio.gather(ok(mesa, "processar-grupos"), ok(mesa, "processar-grupos"))
    await mesa.trabalha()
    assert set(await mesa.fila()) == {"finalizado"}
    assert len(await mesa.rows("SELECT id FROM vagas")) == 40
    assert one.result["ciclo"]["erros"] == two.result["ciclo"]["erros"] == 0


async def test_failed_rows_resume_at_their_stage_for_one_stage_or_all(mesa: Bancada) -> None:
    mesa.instead["normalizacao"] = broken
    await mesa.dizem(vaga())
    await mesa.trabalha()
    del mesa.instead["normalizacao"]
    mesa.instead["pendente"] = broken
    await mesa.dizem("bom dia a todos")
    await mesa.trabalha()
    assert (await ok(mesa, "status-grupos")).result["fila"]["erros_max_tentativas"] == 2
    revived = await ok(mesa, "reprocessar-grupos-erro", estagio="normalizacao")
    assert revived.result == {
        "sucesso": True, "reprocessados": 1, "mensagem": "1 itens enviados para reprocessamento",
    }  # fmt: skip
    note = await mesa.one("SELECT actor, subject FROM audit_log WHERE action = 'queue.retry'")
    (row,) = await mesa.rows("SELECT id FROM fila_processamento_grupos WHERE estagio = 'normalizacao'")
    assert tuple(note.values()) == ("operadora", f"fila_processamento_grupos:{row['id']}")
    worked = await mesa.trabalha()
    assert (worked["extracao"], worked["normalizacao"]) == (0, 1)
    assert len(await mesa.rows("SELECT id FROM vagas")) == 1
    assert isinstance(await run(mesa, "reprocessar-grupos-erro", estagio="tudo"), Failed)


async def test_messages_missing_from_the_queue_are_enqueued_once(mesa: Bancada) -> None:
    await mesa.dizem(vaga())
    await mesa.write("DELETE FROM fila_processamento_grupos")
    assert len(await mesa.operacao.esquecidas(10)) == 1
    assert [(await ok(mesa, "backfill-fila-grupos")).items for _ in range(2)] == [1, 0]
    await mesa.trabalha()
    assert len(await mesa.rows("SELECT id FROM vagas")) == 1


async def test_processed_messages_are_read_again_and_only_new_vacancies_are_added(
    database_url: str, clock: FakeClock
) -> None:
    most = [1]

    async def reads(texto: str, mensagem: Row) -> Leitura:
        """Read at most ``most[0]`` vacancies from a message, as an older version of the rules might."""
        leitura = await leitor_de_linhas(texto, mensagem)
        return replace(leitura, vagas=leitura.vagas[: most[0]])

    async with bancada(database_url, clock, leitor=reads) as mesa:
        await mesa.dizem("bom dia a todos", em=clock.now() - timedelta(days=40))
        await mesa.dizem(f"{vaga()}\n{vaga(dia='2026-03-21')}")
        await mesa.trabalha()
        assert len(await mesa.rows("SELECT id FROM vagas")) == 1
        most[0], day = 9, f"{clock.now():%Y-%m-%d}"
        period = {"desde": day, "ate": day}
        counted = await ok(mesa, "backfill-fila-grupos", **period)
        assert (counted.items, counted.result) == (0, {"encontradas": 1, "enfileiradas": 0})
        again = await ok(mesa, "backfill-fila-grupos", **period, enfileirar="true")
        assert again.result == {"encontradas": 1, "enfileiradas": 1}
        await mesa.trabalha()
        days = [str(row["data"]) for row in await mesa.rows("SELECT data FROM vagas ORDER BY data")]
        assert days == ["2026-03-20", "2026-03-21"]
        assert [row["ordinal"] for row in await mesa.rows("SELECT ordinal FROM vagas_grupo ORDER BY ordinal")] == [0, 1]
        message = await mesa.one("SELECT * FROM mensagens_grupo WHERE qtd_vagas_extraidas > 0")
        assert (message["status"], message["qtd_vagas_extraidas"], message["vagas_a_caminho"]) == ("processada", 2, 0)
        # the messages were read again less than a week ago
        assert (await ok(mesa, "backfill-fila-grupos", **period, enfileirar="true")).items == 0
        clock.step(timedelta(days=8))
        await ok(mesa, "limpar-grupos-finalizados")
        assert (await ok(mesa, "backfill-fila-grupos", **period, enfileirar="true")).items == 1
        await mesa.trabalha()
        assert len(await mesa.rows("SELECT id FROM vagas_grupo")) == 2
        for wrong in ({"desde": day}, {"desde": "ontem", "ate": day}):
            assert isinstance(await run(mesa, "backfill-fila-grupos", **wrong), Failed)


async def test_message_without_a_vacancy_is_read_again_by_its_own_date(mesa: Bancada) -> None:
    await mesa.dizem(vaga(), em=mesa.clock.now() - timedelta(days=3))
    await mesa.trabalha()
    await mesa.write("DELETE FROM vagas_grupo_chaves")
    await mesa.write("DELETE FROM vagas_grupo_fontes")
    await mesa.write("DELETE FROM fila_processamento_grupos")
    await mesa.write("DELETE FROM vagas_historico")
    await mesa.write("DELETE FROM vagas")
    await mesa.write("DELETE FROM vagas_grupo")
    await mesa.write("UPDATE mensagens_grupo SET status = 'descartada', qtd_vagas_extraidas = 0")
    day = f"{mesa.clock.now() - timedelta(days=3):%Y-%m-%d}"
    assert (await ok(mesa, "backfill-fila-grupos", desde=day, ate=day, enfileirar="true")).items == 1
    await mesa.trabalha()
    assert len(await mesa.rows("SELECT id FROM vagas")) == 1
    await mesa.write("DELETE FROM fila_processamento_grupos")
    await mesa.write("UPDATE mensagens_grupo SET texto = '[removido]'")
    assert (await ok(mesa, "backfill-fila-grupos", desde=day, ate=day)).result["encontradas"] == 0


async def test_finished_rows_are_deleted_after_a_week_and_failed_rows_stay(mesa: Bancada) -> None:
    await mesa.dizem(vaga())
    await mesa.trabalha()
    mesa.instead["pendente"] = broken
    await mesa.dizem(vaga(dia="2026-03-21"))
    await mesa.trabalha()
    mesa.clock.step(timedelta(days=6))
    assert (await ok(mesa, "limpar-grupos-finalizados")).result["removidos"] == 0
    mesa.clock.step(timedelta(days=2))
    assert (await ok(mesa, "limpar-grupos-finalizados")).result["removidos"] == 2
    assert await mesa.fila() == ["erro"]
    # The message is still known, so a repetition is not processed again.
    await mesa.dizem(vaga(), id="3EB0000001")
    assert await mesa.fila() == ["erro"]


async def test_old_messages_are_pruned_and_sources_of_a_vaga_stay(mesa: Bancada) -> None:
    await mesa.dizem("bom dia a todos", id="3EBA")
    await mesa.dizem(vaga(), id="3EBB")
    await mesa.trabalha()
    await mesa.dizem("ninguém leu ainda", id="3EBC")
    mesa.clock.step(timedelta(days=40))
    before = mesa.clock.now() - timedelta(days=30)
    assert (await prune(mesa.work.database, "grupos", before=before))[
        "mensagens_grupo"
    ] == 0  # the message's row is still in the queue
    await ok(mesa, "limpar-grupos-finalizados")
    assert [(await prune(mesa.work.database, "grupos", before=before))["mensagens_grupo"] for _ in range(2)] == [1, 0]
    left = await mesa.rows("SELECT message_id FROM mensagens_grupo ORDER BY message_id")
    assert [row["message_id"] for row in left] == ["3EBB", "3EBC"]


async def test_daily_figures_use_sao_paulo_time_and_are_idempotent(mesa: Bancada) -> None:
    evening = mesa.clock.now().astimezone(mesa.work.zone).replace(hour=22)
    mesa.clock.step(evening - mesa.clock.now())
    await mesa.dizem(vaga())
    await mesa.dizem(vaga(), grupo="120363000000000002@g.us")
    await mesa.dizem("bom dia a todos")
    await mesa.trabalha()
    mesa.clock.step(timedelta(hours=3))
    for _ in range(2):
        answer = await ok(mesa, "consolidar-metricas-grupos")
        assert answer.result["data"] == evening.date().isoformat()
    day = await mesa.one("SELECT * FROM metricas_pipeline_diarias")
    names = (
        "grupos_ativos",
        "mensagens_total",
        "mensagens_processadas",
        "heuristica_passou",
        "vagas_importadas",
        "vagas_duplicadas",
    )
    assert [day[name] for name in names] == [2, 3, 3, 2, 1, 1]
    groups = await mesa.rows(
        "SELECT mensagens_total, vagas_extraidas FROM metricas_grupos_diarias ORDER BY mensagens_total"
    )
    assert [tuple(row.values()) for row in groups] == [(1, 1), (2, 1)]
    assert day["data"] == date(2026, 1, 5)


async def test_canary_passes_every_stage_and_becomes_no_open_vacancy(database_url: str, clock: FakeClock) -> None:
    async with bancada(database_url, clock, leitor=None) as mesa:
        assert (await ok(mesa, "canario-grupos")).result == {"ultimo": None, "perdido": False}
        assert (await ok(mesa, "canario-grupos")).items == 1
        await mesa.trabalha()
        row = await mesa.one("SELECT origem, status, deleted_at FROM vagas")
        assert (row["origem"], row["status"], row["deleted_at"]) == ("canario", "cancelada", clock.now())
        clock.step(timedelta(days=1))
        assert (await ok(mesa, "canario-grupos")).result["perdido"] is False


async def test_canary_is_counted_nowhere_and_hides_nothing(database_url: str, clock: FakeClock) -> None:
    async with bancada(database_url, clock, leitor=None) as mesa:
        await ok(mesa, "canario-grupos")
        await mesa.trabalha()
        today = clock.now().astimezone(mesa.work.zone).date().isoformat()
        counted = (await ok(mesa, "consolidar-metricas-grupos", data=today)).result
        names = ("grupos", "grupos_ativos", "mensagens_total", "heuristica_passou", "vagas_importadas", "p50_ms")
        assert [counted[name] for name in names] == [0, 0, 0, 0, 0, None]
        mesa.instead["extracao"] = drop
        for n in range(25):
            await mesa.dizem(CANARIO.format(dia=date(2026, 3, 1 + n)))
        await mesa.trabalha()
        clock.step(timedelta(hours=1))
        alerts = (await ok(mesa, "verificar-alertas-grupos")).result["alertas"]
        assert ("conversao_zero", 25) in [(each["tipo"], each["valor"]) for each in alerts]


async def test_late_old_message_is_not_the_groups_last(mesa: Bancada) -> None:
    await mesa.dizem("bom dia a todos")
    await mesa.dizem("bom dia a todos", em=mesa.clock.now() - timedelta(days=2))
    assert (await mesa.one("SELECT ultima_mensagem_em FROM grupos_whatsapp"))["ultima_mensagem_em"] == mesa.clock.now()


async def test_invalid_parameter_is_refused_with_the_expected_form(mesa: Bancada) -> None:
    for job, name, said in (
        ("consolidar-metricas-grupos", "data", "9999-12-31"),
        ("consolidar-metricas-grupos", "data", "ontem"),
        ("processar-grupos", "batch_size", "9" * 5000),
        ("processar-grupos", "max_workers", "-1"),
        ("reprocessar-grupos-erro", "limite", "9" * 5000),
        ("backfill-fila-grupos", "limite", "1e3"),
    ):
        answer = await run(mesa, job, **{name: said})
        assert isinstance(answer, Failed)
        assert (answer.permanent, name in answer.error) == (True, True)


async def test_lost_canary_raises_an_alert(mesa: Bancada) -> None:
    mesa.instead["extracao"] = broken
    await ok(mesa, "canario-grupos")
    await mesa.trabalha()
    assert [each["tipo"] for each in (await ok(mesa, "verificar-alertas-grupos")).result["alertas"]] == []
    mesa.clock.step(timedelta(hours=1))
    assert [each["tipo"] for each in (await ok(mesa, "verificar-alertas-grupos")).result["alertas"]] == ["canario"]
    assert isinstance(await run(mesa, "canario-grupos"), Partial)


async def test_health_has_both_pages_and_a_row_waiting_for_its_retry_is_not_stuck(mesa: Bancada) -> None:
    async def later(lease: Lease) -> StageOutcome:
        return Failed("again")

    await mesa.dizem(vaga())
    found = await page(mesa)
    assert found == await page(mesa, "grupos-worker")
    assert found["status"] == "healthy"
    assert found["metrics"] == {"pendentes": 1, "travados": 0, "erros_24h": 0, "em_revisao": 0}
    assert found["travados"] == {"count": 0, "threshold_degraded": 100, "threshold_unhealthy": 500}
    assert (found["fila"]["pendente"], found["fila"]["erros_max_tentativas"]) == (1, 0)
    mesa.instead["pendente"] = later
    await mesa.trabalha()
    await mesa.clock.advance(timedelta(minutes=50))
    assert (await page(mesa))["metrics"]["travados"] == 0
    await mesa.clock.advance(timedelta(hours=2))
    assert (await page(mesa))["metrics"]["travados"] == 1


async def test_alert_is_raised_when_no_vaga_comes_out(mesa: Bancada) -> None:
    mesa.instead["extracao"] = drop
    for n in range(25):
        await mesa.dizem(vaga(dia=f"2026-03-{1 + n:02d}"))
    await mesa.trabalha()
    mesa.clock.step(timedelta(hours=1))
    alerts = (await ok(mesa, "verificar-alertas-grupos")).result["alertas"]
    assert [(each["tipo"], each["severidade"], each["valor"]) for each in alerts] == [
        ("conversao_zero", "critical", 25)
    ]
    assert "grupos.conversao_zero" in {each.cause for each in (await mesa.work.health.look(fresh=True)).findings}


async def test_vaga_in_review_expires_when_its_day_is_past(mesa: Bancada) -> None:
    mesa.clock.step(_at(mesa, 10) - mesa.clock.now())
    for day in ("2026-03-20", "2026-03-28"):
        await mesa.dizem("plantão\n" + vaga("Vila Inventada", dia=day))
    await mesa.trabalha()
    await mesa.write(
        "UPDATE vagas_grupo SET data = NULL, motivo_status = 'match_incompleto:data' WHERE data > '2026-03-25'"
    )
    await mesa.dizem("plantão\n" + vaga("Vila Inventada", dia="2026-04-30"))
    await mesa.trabalha()
    mesa.clock.step(_at(mesa, 20) - mesa.clock.now())
    assert (await ok(mesa, "limpar-grupos-finalizados")).result["vencidas"] == 0  # tonight's shift is still open
    mesa.clock.step(timedelta(days=1))
    assert (await ok(mesa, "limpar-grupos-finalizados")).result["vencidas"] == 1
    mesa.clock.step(timedelta(days=20))
    assert (await ok(mesa, "limpar-grupos-finalizados")).result["vencidas"] == 1  # a month without a day
    found = await mesa.rows("SELECT status, motivo_status FROM vagas_grupo ORDER BY motivo_status")
    assert [tuple(row.values()) for row in found] == [
        ("descartada", "data_passada"), ("descartada", "expirada"), ("aguardando_revisao", "hospital_incerto"),
    ]  # fmt: skip
    assert len(await mesa.rows("SELECT 1 FROM vagas_grupo_chaves")) == 1


def _at(mesa: Bancada, day: int) -> datetime:
    """Return an instant shortly before midnight in São Paulo, at which it is already the next day in UTC."""
    return datetime(2026, 3, day, 23, 30, tzinfo=mesa.work.zone)
