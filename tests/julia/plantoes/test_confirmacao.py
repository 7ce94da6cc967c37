"""The hourly job ``processar_confirmacao_plantao``: shifts that have ended wait for an operator's confirmation, and
vacancies whose start has passed expire. The tests run on both databases.
"""

import asyncio
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.contexts.plantoes.model import Feita, Impedida, MotivoDaCancelada, Repetida
from app.contexts.vagas.api import StatusDaVaga
from batuta.health import Severity
from batuta.queue.outcome import Done, Failed
from batuta.receive.endpoints import JobCall
from tests.julia.envio.sending import Office
from tests.julia.plantoes.mesa import DAY, add_doctors, add_vaga, events, history, shifts, vaga
from tests.julia.tables import rows, write

ZONE = ZoneInfo("America/Sao_Paulo")
PENDENTE = StatusDaVaga.PENDENTE_CONFIRMACAO


async def run(office: Office, **params: str) -> Any:
    now = office.clock.now()
    call = JobCall(key="k", params=params, started_at=now, deadline=now + timedelta(minutes=5))
    return await shifts(office).confirmacao.processar_confirmacao_plantao(call)


async def figures(office: Office, **params: str) -> tuple[int, int]:
    answer = await run(office, **params)
    assert isinstance(answer, Done)
    assert isinstance(answer.result, dict)
    assert answer.items == answer.result["processadas"] + answer.result["vencidas"]
    return answer.result["processadas"], answer.result["vencidas"]


def until(office: Office, hour: int, day: date = DAY) -> None:
    """Set the clock to this hour in São Paulo."""
    office.clock.step(datetime(day.year, day.month, day.day, hour, tzinfo=ZONE) - office.clock.now())


async def reserved(office: Office, **values: Any) -> str:
    (doctor,) = await add_doctors(office, 1)
    id = await add_vaga(office, **values)
    await shifts(office).plantoes.reservar(id, doctor, por="gestora")
    return id


async def test_a_night_shift_is_asked_about_two_hours_after_it_ends_on_the_next_day(office: Office) -> None:
    id = await reserved(office)  # 19:00 to 07:00
    until(office, 23)
    assert await figures(office) == (0, 0)
    until(office, 8, DAY + timedelta(days=1))
    assert await figures(office) == (0, 0)
    until(office, 9, DAY + timedelta(days=1))
    assert await figures(office) == (1, 0)
    row = await vaga(office, id)
    assert (row["status"], row["pendente_confirmacao_em"]) == ("pendente_confirmacao", office.clock.now())
    assert (await history(office, id))[-1] == ("reservada", "pendente_confirmacao", "sistema", "plantao_terminou")
    assert await figures(office) == (0, 0)
    assert (await events(office, id)).count("vaga_pendente_confirmacao") == 1


async def test_a_shift_without_hours_has_an_end_and_raises_nothing(office: Office) -> None:
    with_period, bare = await reserved(office), await add_vaga(office)
    await write(office.work.database, "UPDATE vagas SET hora_inicio = NULL, hora_fim = NULL")
    await write(
        office.work.database, "UPDATE vagas SET periodo_id = NULL, status = 'reservada' WHERE id = :id", id=bare
    )
    until(office, 2, DAY + timedelta(days=1))
    assert await figures(office) == (1, 0)  # a day without hours ends at midnight
    assert (await vaga(office, bare))["status"] == "pendente_confirmacao"
    until(office, 9, DAY + timedelta(days=1))
    assert await figures(office) == (1, 0)
    assert (await vaga(office, with_period))["status"] == "pendente_confirmacao"


async def test_the_buffer_is_an_argument_and_a_wrong_one_is_refused(office: Office) -> None:
    await reserved(office)
    until(office, 8, DAY + timedelta(days=1))
    for wrong in ("-1", "2.5", "duas", "", "9999"):
        answer = await run(office, buffer_horas=wrong)
        assert isinstance(answer, Failed), wrong
    assert await figures(office, buffer_horas="1") == (1, 0)


async def test_two_runs_at_once_count_each_change_once(office: Office) -> None:
    for _ in range(3):
        await add_vaga(office)
    await write(office.work.database, "UPDATE vagas SET status = 'reservada'")
    until(office, 12, DAY + timedelta(days=1))
    counted = await asyncio.gather(*(figures(office) for _ in range(3)))
    assert sum(processadas for processadas, _ in counted) == 3
    lines = await rows(office.work.database, "SELECT vaga_id FROM vagas_historico WHERE para = 'pendente_confirmacao'")
    assert len(lines) == 3


async def test_more_vacancies_than_one_page_are_all_seen(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.contexts.plantoes.confirmacao.PAGE", 2)
    for n in range(5):
        await add_vaga(office, data=DAY + timedelta(days=n % 2))
    await write(office.work.database, "UPDATE vagas SET status = 'reservada'")
    until(office, 12, DAY + timedelta(days=3))
    assert await figures(office) == (5, 0)


async def test_operator_confirms_a_shift_once_and_only_after_its_end(office: Office) -> None:
    held, missed = await reserved(office), await add_vaga(office)
    await write(office.work.database, "UPDATE vagas SET status = 'reservada'")
    plantoes, motivo = shifts(office).plantoes, MotivoDaCancelada.NAO_COMPARECEU
    early = await plantoes.realizar(held, por="gestora")
    assert early == Impedida(held, StatusDaVaga.RESERVADA, (PENDENTE,))
    assert await plantoes.cancelar(missed, motivo, por="gestora") == Impedida(
        missed, StatusDaVaga.RESERVADA, (PENDENTE,)
    )
    until(office, 12, DAY + timedelta(days=1))
    assert await figures(office) == (2, 0)
    assert await plantoes.realizar(held, por="gestora") == Feita(held, StatusDaVaga.REALIZADA)
    assert await plantoes.realizar(held, por="outra") == Repetida(held, StatusDaVaga.REALIZADA)
    assert await plantoes.cancelar(missed, motivo, por="gestora") == Feita(missed, StatusDaVaga.CANCELADA)
    assert isinstance(await plantoes.realizar(missed, por="gestora"), Impedida)
    row = await vaga(office, held)
    assert (row["realizada_por"], row["realizada_em"]) == ("gestora", office.clock.now())
    assert (await vaga(office, missed))["cancelada_motivo"] == "nao_compareceu"
    assert (await events(office, held))[-1] == "vaga_realizada"


async def test_an_open_vacancy_expires_when_its_shift_starts(office: Office) -> None:
    (doctor,) = await add_doctors(office, 1)
    open_one, announced = await add_vaga(office), await add_vaga(office, data=DAY + timedelta(days=1))
    await shifts(office).anuncios.anunciar(announced, [doctor], por="gestora")
    until(office, 18)
    assert await figures(office) == (0, 0)
    until(office, 19)
    assert await figures(office) == (0, 1)
    assert (await history(office, open_one))[-1] == ("aberta", "cancelada", "sistema", "vencida")
    assert (await vaga(office, open_one))["cancelada_motivo"] == "vencida"
    until(office, 20, DAY + timedelta(days=1))
    assert await figures(office) == (0, 1)
    assert (await vaga(office, announced))["status"] == "cancelada"


async def test_health_names_shifts_that_wait_for_a_person_and_a_job_that_does_not_run(office: Office) -> None:
    confirmacao = shifts(office).confirmacao
    await reserved(office)
    until(office, 10, DAY + timedelta(days=1))
    assert (await confirmacao.ask()).findings == ()
    until(office, 11, DAY + timedelta(days=1))
    (dead,) = (await confirmacao.ask()).findings
    assert (dead.cause, dead.severity, dead.value) == ("plantoes.reservada_passada", Severity.ERROR, 1)
    await figures(office)
    assert (await confirmacao.ask()).findings == ()
    since = office.clock.now()
    until(office, 11, DAY + timedelta(days=2))
    (waits,) = (await confirmacao.ask()).findings
    assert (waits.cause, waits.severity, waits.since) == ("plantoes.sem_confirmacao", Severity.WARNING, since)
