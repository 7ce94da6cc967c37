"""The chips' jobs on both databases, with a gateway that gives scripted answers."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.composition.chips import build_chips
from app.composition.julia import julia_of
from app.contexts.chips.service import DecisaoDoChip, Fase, StatusDoChip, TipoDeChip, UnknownChip
from app.contexts.comum.whatsapp import EstadoDaConexao, Instancia, Unavailable
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.queue.outcome import Done, Failed, Outcome, Partial, Skipped
from batuta.reasons import code_of, decode
from batuta.receive.endpoints import JobCall
from batuta.testing import FakeClock
from tests.julia.line import ScriptedLine
from tests.julia.tables import add_chip, add_doctor, one, prune, rows, write

# A Wednesday, eleven o'clock in São Paulo.
OPEN = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
PHONE = "5511900000000"


class Chips:
    def __init__(self, work: Batuta, clock: FakeClock, line: ScriptedLine) -> None:
        self.work, self.clock, self.line = work, clock, line
        self.database = work.database
        self._handlers = build_chips(work, julia_of(work).messages, line).handlers

    async def run(self, name: str) -> Outcome:
        now = self.clock.now()
        call = JobCall(key=str(uuid4()), params={}, started_at=now, deadline=now + HOUR)
        return await self._handlers[name.replace("_", "-")](call)

    async def chip(self, instance: str = "julia-sim") -> dict[str, Any]:
        return await one(self.database, "SELECT * FROM chips WHERE instance_name = :i", i=instance)

    async def said(
        self,
        chip: str,
        doctor: str,
        tipo: str = "saida",
        *,
        at: datetime | None = None,
        delivery: str | None = None,
        pedido: str | None = None,
    ) -> None:
        await write(
            self.database,
            "INSERT INTO interacoes (cliente_id, tipo, autor_tipo, conteudo, chip_id, delivery_status, pedido, created_at)"
            " VALUES (:doctor, :tipo, :autor, 'texto', :chip, :delivery, :pedido, :at)",
            doctor=doctor,
            tipo=tipo,
            autor="julia" if tipo == "saida" else "medico",
            chip=chip,
            delivery=delivery or ("delivered" if tipo == "saida" else None),
            pedido=pedido,
            at=at or self.clock.now(),
        )

    async def failed(self, chip: str, *, at: datetime | None = None) -> None:
        await write(
            self.database,
            "INSERT INTO chip_erros (id, chip_id, motivo, created_at) VALUES (:id, :chip, 'refused', :at)",
            id=str(uuid4()),
            chip=chip,
            at=at or self.clock.now(),
        )

    async def later(self, by: timedelta) -> None:
        self.clock.step(by)


@pytest.fixture
async def chips(database_url: str, clock: FakeClock) -> AsyncIterator[Chips]:
    clock.step(OPEN - clock.now())
    work = build(Settings(database_url=database_url), clock=clock).work
    async with work:
        yield Chips(work, clock, ScriptedLine(clock))


def instance(name: str = "julia-sim", state: EstadoDaConexao = EstadoDaConexao.OPEN, **facts: Any) -> Instancia:
    return Instancia(name=name, state=state, **facts)


def details(answer: Outcome) -> dict[str, Any]:
    assert isinstance(answer, Done | Partial), answer
    assert isinstance(answer.result, dict)
    return dict(answer.result)


# sincronizar_chips


async def test_new_instance_becomes_a_chip_without_permissions(chips: Chips) -> None:
    chips.line.listed = [instance(telefone=PHONE), instance("escuta", EstadoDaConexao.CLOSE)]
    assert details(await chips.run("sincronizar_chips"))["novas"] == 2
    found = await chips.chip()
    assert (found["status"], found["telefone"], found["evolution_connected"]) == ("warming", PHONE, True)
    assert (found["trust_score"], found["trust_level"], found["warming_started_at"]) == (50, "amarelo", OPEN)
    assert [found[f"pode_{word}"] for word in ("prospectar", "followup", "responder")] == [False] * 3
    assert ((await chips.chip("escuta"))["status"], (await chips.chip("escuta"))["evolution_connected"]) == (
        "pending",
        False,
    )
    assert details(await chips.run("sincronizar_chips"))["novas"] == 0
    assert len(await rows(chips.database, "SELECT id FROM chips")) == 2


async def test_line_that_drops_and_returns_keeps_the_status_of_its_chip(chips: Chips) -> None:
    await add_chip(chips.database)
    for state, connected in (
        (EstadoDaConexao.CLOSE, False),
        (EstadoDaConexao.CONNECTING, False),
        (EstadoDaConexao.OPEN, True),
    ):
        chips.line.listed = [instance(state=state)]
        assert isinstance(await chips.run("sincronizar_chips"), Done)
        found = await chips.chip()
        assert (found["status"], found["evolution_connected"]) == ("active", connected)
    assert await rows(chips.database, "SELECT id FROM chip_transitions") == []


@pytest.mark.parametrize("listed", [(), Unavailable("HTTP 500")], ids=["nothing", "no answer"])
async def test_missing_or_empty_answer_changes_nothing_and_is_a_failure(
    chips: Chips, listed: tuple[()] | Unavailable
) -> None:
    await add_chip(chips.database)
    before = await chips.chip()
    chips.line.listed = listed
    answer = await chips.run("sincronizar_chips")
    assert isinstance(answer, Failed)
    assert "nothing was changed" in answer.error
    assert await chips.chip() == before


async def test_incomplete_list_disconnects_only_instances_unknown_to_the_gateway(chips: Chips) -> None:
    for name in ("julia-sim", "sumida", "omitida", "calada"):
        await add_chip(chips.database, name)
    chips.line.listed = [instance()]
    chips.line.states = {
        "sumida": Unavailable("HTTP 404", permanent=True, not_found=True),
        "calada": Unavailable("HTTP 500"),
    }
    answer = await chips.run("sincronizar_chips")
    assert isinstance(answer, Partial)
    assert "the list omits omitida" in answer.reason
    found = await rows(chips.database, "SELECT instance_name, status FROM chips WHERE NOT evolution_connected")
    assert found == [{"instance_name": "sumida", "status": "active"}]


async def test_no_job_gives_a_listener_permission_to_send(chips: Chips) -> None:
    await add_chip(chips.database, "escuta", tipo="listener")
    chips.line.listed = [instance("escuta", telefone=PHONE)]
    await chips.run("sincronizar_chips")
    await chips.run("atualizar_trust_scores")
    found = await chips.chip("escuta")
    assert (found["tipo"], found["telefone"]) == ("listener", PHONE)
    assert [found[f"pode_{word}"] for word in ("prospectar", "followup", "responder")] == [False] * 3
    # If it is paired again under another name, it is still the listener.
    chips.line.listed = [instance("escuta-nova", telefone=PHONE)]
    assert details(await chips.run("sincronizar_chips"))["renomeadas"] == 1
    assert (await chips.chip("escuta-nova"))["id"] == found["id"]


async def test_webhook_event_during_the_query_is_newer(chips: Chips) -> None:
    await add_chip(chips.database)
    chips.line.listed = [instance(state=EstadoDaConexao.CLOSE)]

    async def opens_meanwhile() -> None:
        chips.clock.step(timedelta(seconds=1))
        await write(
            chips.database, "UPDATE chips SET evolution_connected = TRUE, conexao_em = :em", em=chips.clock.now()
        )

    chips.line.before_answering = opens_meanwhile
    await chips.run("sincronizar_chips")
    assert (await chips.chip())["evolution_connected"] is True


async def test_ban_without_a_webhook_event_is_found(chips: Chips) -> None:
    await add_chip(chips.database)
    chips.line.listed = [instance(state=EstadoDaConexao.CLOSE, code=403)]
    await chips.run("sincronizar_chips")
    assert (await chips.chip())["status"] == "banned"
    assert code_of(decode((await chips.chip())["ban_reason"])) == "chip_banido_403"
    (noted,) = await rows(chips.database, "SELECT from_status, to_status, triggered_by FROM chip_transitions")
    assert noted == {"from_status": "active", "to_status": "banned", "triggered_by": "sincronizar_chips"}
    chips.line.listed = [instance()]
    await chips.run("sincronizar_chips")
    assert (await chips.chip())["status"] == "banned"


async def test_phone_that_is_paired_again_after_a_logout_keeps_its_status(chips: Chips) -> None:
    await add_chip(chips.database)
    chips.line.listed = [instance(state=EstadoDaConexao.CLOSE, code=401)]
    await chips.run("sincronizar_chips")
    assert (await chips.chip())["status"] == "pending"
    chips.line.listed = [instance()]
    assert details(await chips.run("sincronizar_chips"))["voltaram"] == 1
    assert ((await chips.chip())["status"], (await chips.chip())["evolution_connected"]) == ("active", True)


async def test_two_new_instances_with_one_number_are_one_chip_and_a_doubt(chips: Chips) -> None:
    chips.line.listed = [instance("um", telefone=PHONE), instance("dois", telefone=PHONE)]
    answer = await chips.run("sincronizar_chips")
    assert isinstance(answer, Partial)
    assert "dois" in answer.reason
    assert len(await rows(chips.database, "SELECT id FROM chips")) == 1


# verificar_whatsapp


async def test_one_failed_check_is_ignored_and_the_second_in_a_row_counts(chips: Chips) -> None:
    await add_chip(chips.database)
    chips.line.state = EstadoDaConexao.CLOSE
    first = await chips.run("verificar_whatsapp")
    assert isinstance(first, Partial)
    assert "disconnected at the next one): julia-sim" in first.reason
    assert details(first)["conexao"] == "desconectado_aguardando"
    assert (await chips.chip())["evolution_connected"] is True
    # Another process, after a restart, knows about the first failure.
    again = Chips(chips.work, chips.clock, chips.line)
    second = await again.run("verificar_whatsapp")
    assert (type(second), details(second)["conexao"]) == (Partial, "desconectado")
    assert ((await chips.chip())["evolution_connected"], (await chips.chip())["status"]) == (False, "active")
    await chips.run("verificar_whatsapp")
    events = await rows(chips.database, "SELECT event_type FROM business_events")
    assert events == [{"event_type": "chip_desconectado"}]


async def test_successful_check_resets_the_count_of_failures(chips: Chips) -> None:
    await add_chip(chips.database)
    for state in (EstadoDaConexao.CLOSE, EstadoDaConexao.OPEN, EstadoDaConexao.CLOSE):
        chips.line.state = state
        last = await chips.run("verificar_whatsapp")
    assert details(last)["conexao"] == "desconectado_aguardando"
    assert ((await chips.chip())["conexao_falhas"], (await chips.chip())["evolution_connected"]) == (1, True)


@pytest.mark.parametrize("job", ["sincronizar_chips", "verificar_whatsapp"])
async def test_failing_requests_open_the_circuit_and_an_open_circuit_holds_them(chips: Chips, job: str) -> None:
    await add_chip(chips.database)
    chips.line.listed = chips.line.state = Unavailable("HTTP 503", permanent=True)
    for _ in range(5):
        assert isinstance(await chips.run(job), Failed)
    (found,) = [each for each in await chips.work.circuits.look() if each.name == "evolution"]
    assert (found.state, found.failures) == ("open", 5)
    chips.line.listed, chips.line.state = [instance()], EstadoDaConexao.OPEN
    held = await chips.run(job)
    assert isinstance(held, Failed)
    assert "circuit open: evolution" in held.error
    chips.clock.step(timedelta(minutes=5, seconds=1))
    assert isinstance(await chips.run(job), Done)
    (found,) = [each for each in await chips.work.circuits.look() if each.name == "evolution"]
    assert found.state == "closed"


async def test_check_without_an_answer_changes_nothing(chips: Chips) -> None:
    await add_chip(chips.database)
    await add_chip(chips.database, "outra")
    chips.line.state = Unavailable("HTTP 500")
    assert isinstance(await chips.run("verificar_whatsapp"), Failed)
    assert ((await chips.chip())["conexao_falhas"], (await chips.chip())["evolution_connected"]) == (0, True)
    chips.line.states = {"outra": EstadoDaConexao.OPEN}
    partly = await chips.run("verificar_whatsapp")
    assert isinstance(partly, Partial)
    assert (partly.items, "julia-sim" in partly.reason) == (1, True)


async def test_only_chips_that_send_are_checked(chips: Chips) -> None:
    await add_chip(chips.database, "escuta", tipo="listener")
    await add_chip(chips.database, "nova", status="warming")
    assert isinstance(await chips.run("verificar_whatsapp"), Skipped)


async def test_jobs_without_a_gateway_are_skipped_with_the_reason(chips: Chips) -> None:
    alone = build_chips(chips.work, julia_of(chips.work).messages, None).handlers
    now = chips.clock.now()
    call = JobCall(key="k", params={}, started_at=now, deadline=now + HOUR)
    for name in ("sincronizar-chips", "verificar-whatsapp", "validar-telefones"):
        answer = await alone[name](call)
        assert isinstance(answer, Skipped)
        assert "EVOLUTION_API_URL" in answer.reason


# atualizar_trust_scores


async def test_trust_is_computed_from_the_messages(chips: Chips) -> None:
    chip = await add_chip(chips.database)
    began = OPEN - 60 * DAY
    await write(chips.database, "UPDATE chips SET fase_warmup = 'operacao', warming_started_at = :began", began=began)
    for n in range(4):
        doctor = await add_doctor(chips.database, f"551190000100{n}")
        delivery = "failed" if n == 3 else "read" if n == 2 else "delivered"
        await chips.said(chip, doctor, at=OPEN - 10 * DAY, delivery=delivery)
        if n < 2:
            await chips.said(chip, doctor, "entrada", at=OPEN - 9 * DAY, pedido="opt_out" if n == 0 else None)
    # A message that arrived before ours is not an answer.
    early = await add_doctor(chips.database, "5511900001009")
    await chips.said(chip, early, "entrada", at=OPEN - 20 * DAY)
    answer = await chips.run("atualizar_trust_scores")
    found = await chips.chip()
    assert (found["taxa_resposta"], found["taxa_delivery"], found["taxa_block"]) == (0.5, 0.75, 0.25)
    assert (found["conversas_bidirecionais"], found["dias_sem_erro"], found["erros_ultimas_24h"]) == (2, 10, 0)
    assert found["tipos_midia_usados"] == ["texto"]
    # 30 + 15 + 20 + 15·0.75/0.95 − 20 + 2.5 + 1.5 + 10 + 15
    assert (found["trust_score"], found["trust_level"]) == (85, "verde")
    assert (found["limite_hora"], found["limite_dia"], found["delay_minimo_segundos"]) == (30, 100, 45)
    assert found["pode_prospectar"] is True
    assert sum(found["trust_factors"].values()) == pytest.approx(85.84, abs=0.01)
    assert details(answer)["chips"] == [{"telefone": None, "score": 85, "nivel": "verde"}]


async def test_recent_message_does_not_count_as_lost(chips: Chips) -> None:
    chip, doctor = await add_chip(chips.database), await add_doctor(chips.database)
    await chips.said(chip, doctor, at=OPEN - HOUR, delivery="delivered")
    await chips.said(chip, doctor, at=OPEN - timedelta(minutes=1), delivery="sent")
    await chips.run("atualizar_trust_scores")
    assert (await chips.chip())["taxa_delivery"] == 1.0
    await chips.later(HOUR)
    await chips.run("atualizar_trust_scores")
    assert (await chips.chip())["taxa_delivery"] == 0.5


async def test_history_grows_only_when_the_score_changes(chips: Chips) -> None:
    chip, doctor = await add_chip(chips.database), await add_doctor(chips.database)
    for _ in range(3):
        await chips.run("atualizar_trust_scores")
    assert len(await rows(chips.database, "SELECT id FROM chip_trust_history")) == 1
    await chips.said(chip, doctor, at=OPEN - HOUR)
    await chips.run("atualizar_trust_scores")
    history = await rows(chips.database, "SELECT trust_score FROM chip_trust_history ORDER BY created_at, trust_score")
    assert [row["trust_score"] for row in history] == [55, 72]


async def test_every_chip_in_use_is_scored_including_paused_and_degraded(chips: Chips) -> None:
    for status in ("active", "degraded", "paused", "warming", "banned", "pending"):
        await add_chip(chips.database, status, status=status)
    assert details(await chips.run("atualizar_trust_scores"))["atualizados"] == 4


async def test_chip_with_ten_failures_in_a_row_is_demoted_with_the_reason(chips: Chips) -> None:
    chip, doctor = await add_chip(chips.database), await add_doctor(chips.database)
    for n in range(12):
        await chips.failed(chip, at=OPEN - timedelta(minutes=60 - n))
        if n == 2:
            await chips.said(chip, doctor, at=OPEN - timedelta(minutes=57, seconds=30))
    # there were nine failures since the last sent message
    assert details(await chips.run("atualizar_trust_scores"))["rebaixados"] == 0
    await chips.failed(chip, at=OPEN - timedelta(minutes=5))
    assert details(await chips.run("atualizar_trust_scores"))["rebaixados"] == 1
    assert (await chips.chip())["status"] == "degraded"
    (noted,) = await rows(chips.database, "SELECT from_status, to_status, reason, triggered_by FROM chip_transitions")
    assert code_of(decode(noted.pop("reason"))) == "chip_falhas_seguidas"
    assert noted == {
        "from_status": "active",
        "to_status": "degraded",
        "triggered_by": "atualizar_trust_scores",
    }
    assert details(await chips.run("atualizar_trust_scores"))["rebaixados"] == 0


async def test_chip_with_low_trust_is_demoted(chips: Chips) -> None:
    chip = await add_chip(chips.database)
    await write(chips.database, "UPDATE chips SET created_at = :now", now=OPEN)
    for n in range(20):
        doctor = await add_doctor(chips.database, f"55119000010{n:02d}")
        await chips.said(chip, doctor, at=OPEN - HOUR, delivery="failed")
        if n < 2:
            await chips.said(chip, doctor, "entrada", pedido="opt_out", at=OPEN - timedelta(minutes=1))
    assert details(await chips.run("atualizar_trust_scores"))["rebaixados"] == 1
    found = await chips.chip()
    assert (found["taxa_block"], found["taxa_delivery"], found["erros_ultimas_24h"]) == (0.1, 0.0, 20)
    assert (found["trust_score"], found["trust_level"], found["status"]) == (8, "critico", "degraded")
    (noted,) = await rows(chips.database, "SELECT reason FROM chip_transitions")
    assert code_of(decode(noted["reason"])) == "chip_confianca_baixa"


async def test_error_of_a_send_counts_in_the_trust(chips: Chips) -> None:
    from app.contexts.chips.selecao import Emissores

    chip = await add_chip(chips.database)
    emissores = Emissores(chips.database.dialect, chips.work.ids)
    async with chips.database.transaction() as transaction:
        await emissores.rest(transaction, chip, "disconnected", until=OPEN + HOUR, now=OPEN)
    await chips.run("atualizar_trust_scores")
    found = await chips.chip()
    assert (found["erros_ultimas_24h"], found["dias_sem_erro"]) == (1, 0)
    await chips.later(3 * DAY)
    await chips.run("atualizar_trust_scores")
    found = await chips.chip()
    assert (found["erros_ultimas_24h"], found["dias_sem_erro"]) == (0, 3)


# snapshot_chips_diario, resetar_contadores_chips


async def test_daily_snapshot_covers_the_local_day_and_every_chip(chips: Chips) -> None:
    chip, doctor = await add_chip(chips.database), await add_doctor(chips.database)
    for status in ("degraded", "paused", "banned"):
        await add_chip(chips.database, status, status=status)
    # 22:30 of the tenth in São Paulo is already the eleventh in UTC.
    await chips.said(chip, doctor, at=datetime(2026, 3, 11, 1, 30, tzinfo=UTC))
    await chips.said(chip, doctor, at=datetime(2026, 3, 11, 3, 0, tzinfo=UTC), delivery="read")
    await chips.said(chip, doctor, at=datetime(2026, 3, 12, 2, 30, tzinfo=UTC), delivery="failed")
    await chips.said(chip, doctor, "entrada", at=datetime(2026, 3, 12, 2, 40, tzinfo=UTC))
    await chips.later(datetime(2026, 3, 12, 2, 55, tzinfo=UTC) - OPEN)
    answer = details(await chips.run("snapshot_chips_diario"))
    assert (answer["data"], answer["total_chips"], answer["snapshots_criados"]) == ("2026-03-11", 4, 4)
    row = await one(chips.database, "SELECT * FROM chip_daily_snapshots WHERE chip_id = :chip", chip=chip)
    assert row["data"] == date(2026, 3, 11)
    assert (row["msgs_enviadas"], row["msgs_recebidas"], row["msgs_entregues"], row["msgs_lidas"], row["msgs_erro"]) == (
        2, 1, 1, 1, 1
    )  # fmt: skip
    assert (row["taxa_resposta"], row["taxa_delivery"], row["status"], row["trust_score"]) == (1.0, 0.5, "active", 50)
    again = details(await chips.run("snapshot_chips_diario"))
    assert (again["snapshots_criados"], again["snapshots_existentes"]) == (0, 4)
    assert len(await rows(chips.database, "SELECT id FROM chip_daily_snapshots")) == 4


async def test_late_snapshot_covers_the_missed_day(chips: Chips) -> None:
    await add_chip(chips.database)
    await chips.later(-3 * HOUR)
    assert details(await chips.run("snapshot_chips_diario"))["data"] == "2026-03-10"


async def test_reset_closes_the_previous_day_and_counts_todays_messages(chips: Chips) -> None:
    chip, doctor = await add_chip(chips.database), await add_doctor(chips.database)
    await write(chips.database, "UPDATE chips SET msgs_enviadas_hoje = 7, msgs_recebidas_hoje = 3")
    await chips.said(chip, doctor, at=OPEN)
    await chips.later(datetime(2026, 3, 12, 2, 55, tzinfo=UTC) - OPEN)
    await chips.run("snapshot_chips_diario")
    # One message is sent between the snapshot and midnight, the other between midnight and the reset.
    await chips.said(chip, doctor, at=datetime(2026, 3, 12, 2, 58, tzinfo=UTC))
    await chips.said(chip, doctor, at=datetime(2026, 3, 12, 3, 2, tzinfo=UTC))
    await write(chips.database, "UPDATE chips SET status = 'paused', trust_score = 10")
    await chips.later(timedelta(minutes=10))
    assert details(await chips.run("resetar_contadores_chips")) == {"chips_resetados": 1, "snapshots_criados": 0}
    row = await one(chips.database, "SELECT msgs_enviadas, status, trust_score FROM chip_daily_snapshots")
    assert row == {"msgs_enviadas": 2, "status": "active", "trust_score": 50}
    found = await chips.chip()
    assert (found["msgs_enviadas_hoje"], found["msgs_recebidas_hoje"]) == (1, 0)
    # Running the job again at any hour changes nothing.
    await chips.later(8 * HOUR)
    await chips.run("resetar_contadores_chips")
    assert (await chips.chip())["msgs_enviadas_hoje"] == 1


async def test_reset_creates_a_missing_snapshot_of_the_previous_day_first(chips: Chips) -> None:
    chip, doctor = await add_chip(chips.database), await add_doctor(chips.database)
    await add_chip(chips.database, "parada", status="degraded")
    await chips.said(chip, doctor, at=OPEN)
    await chips.later(datetime(2026, 3, 12, 3, 5, tzinfo=UTC) - OPEN)
    assert details(await chips.run("resetar_contadores_chips")) == {"chips_resetados": 2, "snapshots_criados": 2}
    row = await one(chips.database, "SELECT data, msgs_enviadas FROM chip_daily_snapshots WHERE chip_id = :c", c=chip)
    assert row == {"data": date(2026, 3, 11), "msgs_enviadas": 1}


async def test_history_of_the_chips_is_pruned_and_daily_snapshots_stay(chips: Chips) -> None:
    chip = await add_chip(chips.database)
    await chips.failed(chip)
    await chips.run("atualizar_trust_scores")
    await chips.run("snapshot_chips_diario")
    assert await prune(chips.database, "chips", before=OPEN) == {"chip_trust_history": 0, "chip_erros": 0}
    assert await prune(chips.database, "chips", before=OPEN + HOUR) == {"chip_trust_history": 1, "chip_erros": 1}
    assert len(await rows(chips.database, "SELECT id FROM chip_daily_snapshots")) == 1


# batuta chip


async def decide(chips: Chips, instance: str = "julia-sim", **what: Any) -> dict[str, str]:
    julia = julia_of(chips.work).chips.chips
    async with chips.database.transaction() as transaction:
        return await julia.decidir(
            transaction, instance, DecisaoDoChip(**what), "aquecido", by="pessoa", now=chips.clock.now()
        )


async def test_operator_activates_a_chip_and_author_and_reason_are_recorded(chips: Chips) -> None:
    chip = await add_chip(chips.database, status="degraded")
    for _ in range(10):
        await chips.failed(chip)
    after = await decide(chips, status=StatusDoChip.ACTIVE, fase=Fase.OPERACAO)
    assert after == {"status": "active", "tipo": "julia", "fase": "operacao"}
    (noted,) = await rows(chips.database, "SELECT from_status, to_status, reason, triggered_by FROM chip_transitions")
    assert noted == {
        "from_status": "degraded", "to_status": "active", "reason": "aquecido", "triggered_by": "pessoa"
    }  # fmt: skip
    # Earlier failures no longer count, so they do not demote the chip again.
    assert details(await chips.run("atualizar_trust_scores"))["rebaixados"] == 0
    assert ((await chips.chip())["pode_responder"], (await chips.chip())["limite_dia"]) == (True, 50)


async def test_chip_that_becomes_a_listener_loses_every_permission(chips: Chips) -> None:
    await add_chip(chips.database)
    await write(chips.database, "UPDATE chips SET pode_prospectar = TRUE, pode_followup = TRUE, pode_responder = TRUE")
    await decide(chips, tipo=TipoDeChip.LISTENER)
    found = await chips.chip()
    assert [found[f"pode_{word}"] for word in ("prospectar", "followup", "responder")] == [False] * 3
    assert (found["status"], await rows(chips.database, "SELECT id FROM chip_transitions")) == ("active", [])


async def test_operator_lifts_a_ban(chips: Chips) -> None:
    await add_chip(chips.database, status="banned")
    await write(chips.database, "UPDATE chips SET banned_at = :now, ban_reason = '403: forbidden'", now=OPEN)
    await decide(chips, fase=Fase.SETUP)
    assert (await chips.chip())["ban_reason"] == "403: forbidden"
    await decide(chips, status=StatusDoChip.WARMING)
    found = await chips.chip()
    assert (found["status"], found["banned_at"], found["ban_reason"]) == ("warming", None, None)


async def test_decision_about_an_unknown_chip_is_refused(chips: Chips) -> None:
    with pytest.raises(UnknownChip, match="no chip has the instance outra"):
        await decide(chips, "outra", status=StatusDoChip.PAUSED)
