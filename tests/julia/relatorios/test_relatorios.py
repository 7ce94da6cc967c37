"""Reports on both databases: their figures are counts of stored rows, and a report is sent once, even after a crash."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.comum.entrega import Entrega, Entregue, Incerto, Recusado
from app.contexts.relatorios.jobs import ReportJobs
from app.contexts.relatorios.periodos import TipoDeRelatorio
from app.contexts.relatorios.service import Relatorio, Relatorios
from app.web.boards import reports_board
from batuta.health import Severity
from batuta.queue.outcome import Done, Failed, Partial
from batuta.receive.endpoints import JobCall
from tests.julia.envio.sending import Office, doctor_writes
from tests.julia.plantoes.mesa import add_doctors, add_vaga, shifts
from tests.julia.tables import add_doctor, rows, write

HOUR = timedelta(hours=1)
# The clock of an office: a Wednesday, eleven o'clock in São Paulo.
TEN = datetime(2026, 3, 11, 13, 0, tzinfo=UTC)


@dataclass
class Canal:
    """A destination that records what is delivered to it and answers as scripted."""

    nome: str = "slack"
    answer: Entrega | BaseException = field(default_factory=Entregue)
    received: list[Relatorio] = field(default_factory=list)

    async def enviar(self, relatorio: Relatorio) -> Entrega:
        self.received.append(relatorio)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def reports(office: Office, *canais: Canal) -> Relatorios:
    return Relatorios(office.work.database, canais, office.work.ids, office.clock)


async def run(office: Office, relatorios: Relatorios, tipo: str = "manha", **params: str) -> Any:
    jobs, now = ReportJobs(relatorios, office.work.zone, office.clock), office.clock.now()
    given = params if tipo == "semanal" else {"tipo": tipo, **params}
    call = JobCall(key="k", params=given, started_at=now, deadline=now + 5 * HOUR)
    return await (jobs.report_semanal(call) if tipo == "semanal" else jobs.report_periodo(call))


async def send(office: Office, doctor: str, at: datetime, status: str = "enviada") -> None:
    id = await office.put(doctor)
    await write(
        office.work.database,
        "UPDATE fila_mensagens SET status = :status, enviada_em = CASE WHEN :sent THEN CAST(:at AS timestamptz) END,"
        " outcome_at = :at WHERE id = :id",
        status=status, sent=status == "enviada", at=at, id=id,
    )  # fmt: skip


async def figures(office: Office, tipo: str = "manha", **params: str) -> dict[str, Any]:
    answer = await run(office, reports(office), tipo, **params)
    assert isinstance(answer, Done)
    assert isinstance(answer.result, dict)
    found: dict[str, Any] = answer.result["metricas"]
    return found


async def test_every_figure_is_a_count_of_rows_in_the_period(office: Office, doctor: str) -> None:
    other = await add_doctor(office.work.database, "5511900000002")
    await send(office, doctor, TEN - HOUR)
    await send(office, doctor, TEN - HOUR, status="bloqueada")
    await send(office, other, TEN - 2 * HOUR)
    await send(office, other, TEN - 2 * HOUR, status="erro")
    await send(office, other, TEN - 2 * HOUR, status="pendente")
    await send(office, doctor, TEN)  # belongs to the next period
    await send(office, doctor, TEN - 11 * HOUR)  # 23:00 of the day before
    office.clock.step(TEN - HOUR / 2 - office.clock.now())
    await doctor_writes(office, doctor, "m1")
    office.clock.step(TEN + HOUR - office.clock.now())
    found = (await figures(office))["periodo"]
    assert found == {
        "enviadas": 2, "bloqueadas": 1, "com_erro": 1, "recebidas": 1, "medicos_contatados": 2, "medicos_que_responderam": 1,
        "taxa_resposta": 50.0, "plantoes_reservados": 0, "medicos_com_reserva": 0, "plantoes_realizados": 0, "optouts": 0,
        "pendencias_novas": 0, "pendencias_abertas": 0,
    }  # fmt: skip


async def test_response_rate_counts_answers_after_the_contact_only(office: Office, doctor: str) -> None:
    office.clock.step(TEN - 3 * HOUR - office.clock.now())
    await doctor_writes(office, doctor, "m1")
    office.clock.step(TEN + HOUR - office.clock.now())
    assert (await figures(office))["periodo"]["taxa_resposta"] is None
    await write(office.work.database, "DELETE FROM relatorios")
    await send(office, doctor, TEN - HOUR)
    assert (await figures(office))["periodo"]["taxa_resposta"] == 0.0


async def test_end_of_day_also_counts_the_whole_day_and_the_groups(office: Office, doctor: str) -> None:
    await send(office, doctor, TEN - HOUR)
    await send(office, doctor, TEN + 9 * HOUR)  # 19:00
    office.clock.step(TEN + 10 * HOUR - office.clock.now())
    found = await figures(office, "fim_dia")
    assert (found["periodo"]["enviadas"], found["dia"]["enviadas"]) == (1, 2)
    assert found["grupos"] == {"mensagens": 0, "vagas_lidas": 0, "duplicadas": 0, "importadas": 0, "em_revisao": 0}


async def test_report_does_not_count_the_daily_test_message_of_the_groups(office: Office) -> None:
    now = TEN + 8 * HOUR
    grupos = julia_of(office.work).groups.grupos
    async with office.work.database.transaction() as transaction:
        await grupos.ensaiar(transaction, "Plantão fictício", now.date(), now=now)
    await write(office.work.database, "UPDATE mensagens_grupo SET created_at = :now", now=now)
    office.clock.step(TEN + 10 * HOUR - office.clock.now())
    assert (await figures(office, "fim_dia"))["grupos"]["mensagens"] == 0


async def test_weekly_report_counts_the_previous_week_with_classes_and_reservations(office: Office) -> None:
    (doctor,) = await add_doctors(office, 1)
    vaga = await add_vaga(office)
    await shifts(office).plantoes.reservar(vaga, doctor, por="gestora")
    await doctor_writes(office, doctor, "m1")
    await write(office.work.database, "UPDATE interacoes SET classe = 'objecao'")
    office.clock.step(timedelta(days=5))  # the Monday after
    relatorios = reports(office)
    answer = await run(office, relatorios, "semanal")
    assert isinstance(answer, Done)
    (stored,) = await relatorios.listar(TipoDeRelatorio.SEMANAL, limite=5)
    assert stored.periodo.inicio == datetime(2026, 3, 9, tzinfo=office.work.zone)
    assert stored.metricas["classes"] == {"objecao": 1}
    assert (stored.metricas["periodo"]["plantoes_reservados"], stored.metricas["periodo"]["medicos_com_reserva"]) == (
        1,
        1,
    )
    (best,) = stored.destaques
    assert (best["vaga"], best["hospital"], best["data"]) == (vaga, "Hospital Fictício", "2026-03-20")
    assert doctor not in str(best)


@pytest.mark.parametrize("tipo", [None, "xyz", "", "semanal "])
async def test_a_missing_or_unknown_tipo_is_refused_with_the_next_step(office: Office, tipo: str | None) -> None:
    now = office.clock.now()
    jobs = ReportJobs(reports(office), office.work.zone, office.clock)
    call = JobCall(key="k", params={} if tipo is None else {"tipo": tipo}, started_at=now, deadline=now + HOUR)
    answer = await jobs.report_periodo(call)
    assert isinstance(answer, Failed)
    assert answer.permanent  # the api answers 400
    assert "manha, almoco, tarde, fim_dia" in str(answer.error)
    assert "/jobs/report-periodo?tipo=manha" in str(answer.error)
    assert await rows(office.work.database, "SELECT id FROM relatorios") == []


@pytest.mark.parametrize("day", ["ontem", "2026-03-12", "2026-13-01", "0001-01-01"])
async def test_a_day_that_cannot_be_used_is_refused(office: Office, day: str) -> None:
    for tipo in ("manha", "semanal"):
        answer = await run(office, reports(office), tipo, data=day)
        assert isinstance(answer, Failed), day
        assert answer.permanent


async def test_a_report_is_sent_once_however_often_its_job_runs(office: Office, doctor: str) -> None:
    canal = Canal()
    relatorios = reports(office, canal)
    await asyncio.gather(*(run(office, relatorios) for _ in range(3)))
    await send(office, doctor, TEN - HOUR)  # this row is stored late, and the stored figures do not change
    again = await run(office, relatorios)
    assert len(canal.received) == 1
    assert again.result["metricas"]["periodo"]["enviadas"] == 0
    assert again.result["envios"] == {"slack": {"estado": "enviado", "erro": None}}
    assert len(await rows(office.work.database, "SELECT id FROM relatorios")) == 1


async def test_a_report_of_a_process_that_died_while_sending_is_not_sent_again_by_a_job(office: Office) -> None:
    canal = Canal(answer=asyncio.CancelledError())  # the process stops between the request and the record of its result
    relatorios = reports(office, canal)
    with pytest.raises(asyncio.CancelledError):
        await run(office, relatorios)
    canal.answer = Entregue()
    office.clock.step(HOUR)
    answer = await run(office, relatorios)
    assert isinstance(answer, Partial)
    assert "batuta relatorios reenviar" in str(answer.reason)
    assert len(canal.received) == 1
    (finding,) = (await relatorios.ask()).findings
    assert (finding.cause, finding.severity, finding.value) == ("relatorios.nao_entregues", Severity.WARNING, 1)
    (stored,) = await relatorios.listar(limite=1)
    assert (await relatorios.reenviar(stored.id)).envios == {"slack": "enviado"}
    assert (len(canal.received), (await relatorios.ask()).findings) == (2, ())


async def test_a_refused_report_is_sent_by_the_next_run_and_an_uncertain_one_is_not(office: Office) -> None:
    slack, webhook = Canal(answer=Recusado("HTTP 404")), Canal("webhook", Incerto("HTTP 500"))
    relatorios = reports(office, slack, webhook)
    answer = await run(office, relatorios)
    assert isinstance(answer, Partial)
    (stored,) = await relatorios.listar(limite=1)
    assert (stored.envios, stored.erros["slack"]) == ({"slack": "recusado", "webhook": "incerto"}, "HTTP 404")
    slack.answer = webhook.answer = Entregue()
    office.clock.step(3 * HOUR)  # 14:00: the report of lunch
    assert isinstance(await run(office, relatorios, "almoco"), Done)
    assert [each.periodo.tipo for each in slack.received] == ["manha", "manha", "almoco"]
    assert [each.periodo.tipo for each in webhook.received] == ["manha", "almoco"]


async def test_before_the_end_of_the_period_figures_are_returned_but_not_stored_or_sent(
    office: Office, doctor: str
) -> None:
    canal = Canal()
    await send(office, doctor, office.clock.now())
    answer = await run(office, reports(office, canal), "almoco")
    assert answer.result["previa"] is True
    assert answer.result["metricas"]["periodo"]["enviadas"] == 1
    assert canal.received == []
    assert await rows(office.work.database, "SELECT id FROM relatorios") == []


async def test_without_a_destination_the_report_is_stored_and_the_job_ends_well(office: Office) -> None:
    relatorios = julia_of(office.work).reports.relatorios
    assert relatorios.destinos == ()
    answer = await run(office, relatorios)
    assert isinstance(answer, Done)
    assert answer.result is not None
    board = await reports_board(julia_of(office.work))
    assert [(each.label, each.name, each.state) for each in board.courses] == [
        ("relatorio.nome.manha", "11/03", "estado.relatorio.guardado")
    ]
