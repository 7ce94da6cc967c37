"""A job checks on WhatsApp whether doctors' phone numbers exist. The tests run on both databases."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.composition.chips import build_chips
from app.composition.julia import julia_of
from app.contexts.comum.whatsapp import Numero, Unavailable
from app.contexts.medicos.validacao import again_after, verdict_of
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.guard.base import Admit, Effect, EffectReport
from batuta.kernel.reasons import Reason
from batuta.queue.outcome import Done, Failed, Outcome, Partial, Skipped
from batuta.receive.endpoints import JobCall
from batuta.testing import FakeClock
from tests.julia.line import ScriptedLine
from tests.julia.tables import add_chip, add_doctor, one, rows, write

# A Wednesday, eleven o'clock in São Paulo.
OPEN = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
PHONES = ["5511900000001", "5511900000002", "5511900000003"]


class Office:
    def __init__(self, work: Batuta, clock: FakeClock) -> None:
        self.work, self.clock, self.line = work, clock, ScriptedLine(clock)

    async def run(self) -> Outcome:
        now = self.clock.now()
        call = JobCall(key=str(uuid4()), params={}, started_at=now, deadline=now + HOUR)
        return await build_chips(self.work, julia_of(self.work).messages, self.line).handlers["validar-telefones"](call)

    async def phones(self) -> dict[str, str]:
        found = await rows(self.work.database, "SELECT telefone, status_telefone FROM clientes")
        return {row["telefone"]: row["status_telefone"] for row in found}


@pytest.fixture
async def office(database_url: str, clock: FakeClock) -> AsyncIterator[Office]:
    clock.step(OPEN - clock.now())
    work = build(Settings(database_url=database_url), clock=clock).work
    async with work:
        await add_chip(work.database)
        for phone in PHONES:
            await add_doctor(work.database, phone, now=OPEN)
        yield Office(work, clock)


def number(telefone: str, exists: bool = True) -> Numero:
    return Numero(telefone=telefone, exists=exists, jid=f"{telefone}@s.whatsapp.net")


def details(answer: Outcome) -> dict[str, Any]:
    assert isinstance(answer, Done | Partial), answer
    assert isinstance(answer.result, dict)
    return dict(answer.result)


def test_number_missing_from_the_answer_is_an_error_and_never_invalid() -> None:
    found = [number("1" * 10), number("2" * 10, exists=False)]
    assert [verdict_of(each * 10, found) for each in "123"] == ["validado", "invalido", "erro"]
    assert [again_after(n) for n in (1, 2, 3, 9)] == [HOUR, 6 * HOUR, 24 * HOUR, 24 * HOUR]


async def test_each_phone_is_looked_up_once_and_the_result_written(office: Office) -> None:
    office.line.known = [number(PHONES[0]), number(PHONES[1], exists=False), number(PHONES[2])]
    assert details(await office.run()) == {"processados": 3, "validados": 2, "invalidos": 1, "erros": 0, "skips": 0}
    assert await office.phones() == dict(zip(PHONES, ("validado", "invalido", "validado"), strict=True))
    at = await rows(office.work.database, "SELECT telefone_validado_em FROM clientes")
    assert {row["telefone_validado_em"] for row in at} == {OPEN}
    assert details(await office.run())["processados"] == 0
    assert office.line.looked_up == [("julia-sim", PHONES)]


async def test_error_is_retried_later_with_growing_intervals(office: Office) -> None:
    office.line.known = [number(phone) for phone in PHONES[1:]]
    answer = await office.run()
    assert isinstance(answer, Partial)
    assert (details(answer)["erros"], (await office.phones())[PHONES[0]]) == (1, "erro")
    office.clock.step(HOUR - MINUTE)
    assert details(await office.run())["processados"] == 0
    office.clock.step(MINUTE)
    assert details(await office.run())["erros"] == 1
    office.clock.step(6 * HOUR)
    office.line.known = [number(PHONES[0])]
    assert details(await office.run())["validados"] == 1
    row = await one(
        office.work.database,
        "SELECT telefone_tentativas, telefone_validar_em FROM clientes WHERE telefone = :t",
        t=PHONES[0],
    )
    assert row == {"telefone_tentativas": 0, "telefone_validar_em": None}


async def test_claim_of_a_process_that_dies_expires(office: Office) -> None:
    async def dies() -> None:
        raise KeyboardInterrupt

    office.line.before_answering = dies
    with pytest.raises(KeyboardInterrupt):
        await office.run()
    assert set((await office.phones()).values()) == {"validando"}
    office.line.before_answering = None
    office.line.known = [number(phone) for phone in PHONES]
    office.clock.step(9 * MINUTE)
    assert details(await office.run())["processados"] == 0
    office.clock.step(MINUTE)
    assert details(await office.run())["validados"] == 3


async def test_row_left_in_progress_by_another_process_is_validated(office: Office) -> None:
    await write(office.work.database, "UPDATE clientes SET status_telefone = 'validando'")
    office.line.known = [number(phone) for phone in PHONES]
    assert details(await office.run())["validados"] == 3


async def test_late_result_does_not_overwrite_a_newer_one(office: Office) -> None:
    async def is_overtaken() -> None:
        office.clock.step(11 * MINUTE)
        await write(
            office.work.database, "UPDATE clientes SET status_telefone = 'invalido', telefone_validar_em = NULL"
        )

    office.line.before_answering = is_overtaken
    office.line.known = [number(phone) for phone in PHONES]
    assert details(await office.run())["skips"] == 3
    assert set((await office.phones()).values()) == {"invalido"}


async def test_concurrent_runs_never_look_up_the_same_phone(office: Office) -> None:
    nested: list[Outcome] = []

    async def another_runs() -> None:
        office.line.before_answering = None
        nested.append(await office.run())

    office.line.before_answering = another_runs
    office.line.known = [number(phone) for phone in PHONES]
    assert details(await office.run())["validados"] == 3
    assert details(nested[0])["processados"] == 0
    assert len(office.line.looked_up) == 1


async def test_gateway_that_does_not_answer_costs_no_attempt(office: Office) -> None:
    office.line.known = Unavailable("HTTP 500")
    answer = await office.run()
    assert isinstance(answer, Failed)
    assert "HTTP 500" in answer.error
    assert set((await office.phones()).values()) == {"pendente"}


def code_in(answer: Skipped) -> str:
    """Return the code of the reason that held a job."""
    assert isinstance(answer.reason, Reason)
    why = answer.reason.facts["why"]
    assert answer.reason.code == "held"
    assert isinstance(why, Reason)
    return why.code


async def test_circuit_holds_lookups_at_a_broken_gateway(office: Office) -> None:
    office.line.known = Unavailable("HTTP 500")
    for _ in range(5):
        assert isinstance(await office.run(), Failed)
    answer = await office.run()
    assert isinstance(answer, Skipped)
    assert code_in(answer) == "circuit_open"
    assert len(office.line.looked_up) == 5


async def test_chip_with_an_open_circuit_is_skipped(office: Office) -> None:
    await add_chip(office.work.database, "melhor")
    await write(office.work.database, "UPDATE chips SET trust_score = 90 WHERE instance_name = 'melhor'")
    breaker = office.work.circuits.breaker("chip:melhor")
    for _ in range(3):
        verdict = await breaker.admit(office.clock.now())
        assert isinstance(verdict, Admit)
        await verdict.ticket.report(EffectReport(Effect.BROKE, "429"))
    office.line.known = [number(phone) for phone in PHONES]
    await office.run()
    assert [instance for instance, _ in office.line.looked_up] == ["julia-sim"]


@pytest.mark.parametrize(
    "unfit",
    [
        "tipo = 'listener'",
        "status = 'warming'",
        "evolution_connected = FALSE",
        "cooldown_until = '2026-03-11T15:00:00+00:00'",
    ],
)
async def test_unfit_chip_looks_up_nothing(office: Office, unfit: str) -> None:
    if "cooldown" in unfit:
        await write(office.work.database, "UPDATE chips SET cooldown_until = :at", at=OPEN + HOUR)
    else:
        await write(office.work.database, f"UPDATE chips SET {unfit}")
    assert isinstance(await office.run(), Skipped)
    assert (office.line.looked_up, set((await office.phones()).values())) == ([], {"pendente"})


@pytest.mark.parametrize(
    ("at", "runs"),
    [
        (datetime(2026, 3, 11, 10, 59, tzinfo=UTC), False),
        (datetime(2026, 3, 11, 11, 0, tzinfo=UTC), True),
        (datetime(2026, 3, 14, 14, 0, tzinfo=UTC), True),  # a Saturday
        (datetime(2026, 3, 11, 22, 59, tzinfo=UTC), True),
        (datetime(2026, 3, 11, 23, 0, tzinfo=UTC), False),
    ],
)
async def test_no_phone_is_looked_up_at_night(office: Office, at: datetime, runs: bool) -> None:
    await write(office.work.database, "UPDATE clientes SET created_at = :at", at=OPEN - 48 * HOUR)
    office.clock.step(at - office.clock.now())
    assert isinstance(await office.run(), Skipped) is not runs


async def test_reason_names_the_next_opening_in_local_time(office: Office) -> None:
    office.clock.step(datetime(2026, 3, 11, 7, 15, tzinfo=UTC) - office.clock.now())  # 04:15 in São Paulo
    answer = await office.run()
    assert isinstance(answer, Skipped)
    assert isinstance(answer.reason, Reason)
    opens = answer.reason.facts["next"]
    assert isinstance(opens, datetime)
    assert (opens.hour, opens.utcoffset()) == (8, timedelta(hours=-3))


@pytest.mark.parametrize(
    ("key", "on"), [("pause.all", True), ("pause.queue.fila_mensagens", True), ("safe_mode", True)]
)
async def test_pause_holds_the_lookups(office: Office, key: str, on: bool) -> None:
    await office.work.switches.set(key, on, by="teste", reason="manutenção", now=office.clock.now())
    answer = await office.run()
    assert isinstance(answer, Skipped)
    assert code_in(answer) == "switch_on"
    assert office.line.looked_up == []


async def test_run_takes_the_fifty_oldest_phones_without_opt_outs(office: Office) -> None:
    await write(office.work.database, "UPDATE clientes SET opted_out = TRUE")
    for n in range(60):
        await add_doctor(office.work.database, f"55119000020{n:02d}", now=OPEN - (60 - n) * MINUTE)
    await office.run()
    ((_, asked),) = office.line.looked_up
    assert asked == [f"55119000020{n:02d}" for n in range(50)]
