"""Rate limits on both databases: checked and reserved in one step, for all processes together."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from batuta.engine.batuta import Batuta
from batuta.guard.base import WORKED, Admit, Effect, EffectReport, Hold
from batuta.guard.rate import Limit, RateGuard, Reserved, gap
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import InvalidName
from batuta.kernel.ids import Ids
from batuta.stores import connect
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.tables.rates import MARGIN, SqlRates
from batuta.supervise.retention import Pruner
from batuta.testing import FakeClock

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
PER_HOUR = Limit(name="envios/hora", key="envios", most=20, per=HOUR)
PER_DAY = Limit(name="envios/dia", key="envios", most=100, per=DAY)
PER_DOCTOR = Limit(name="medico/hora", key="medico", most=3, per=HOUR, each=True)
PER_PHONE = gap("telefone/intervalo", "telefone", 45 * SECOND, each=True)


@pytest.fixture
def rates(database: Database, ids: Ids, clock: FakeClock) -> SqlRates:
    return SqlRates(database, ids, clock, own_time=True)


@pytest.fixture
async def elsewhere(rates: SqlRates, database_url: str, ids: Ids, clock: FakeClock) -> AsyncIterator[SqlRates]:
    """A second ``SqlRates`` object with its own connection to the same database. It stands for another process with the
    same rate limits.
    """
    database = connect(database_url, SystemClock())
    await database.open()
    yield SqlRates(database, ids, clock, own_time=True)
    await database.close()


async def take(rates: SqlRates, *limits: Limit) -> Reserved:
    reserved = await rates.reserve(limits)
    assert isinstance(reserved, Reserved), reserved
    return reserved


async def use(rates: SqlRates, *limits: Limit, times: int = 1) -> None:
    for _ in range(times):
        await rates.confirm((await take(rates, *limits)).id)


async def held(rates: SqlRates, *limits: Limit) -> Hold:
    hold = await rates.reserve(limits)
    assert isinstance(hold, Hold), hold
    return hold


async def test_two_processes_together_never_take_more_than_allowed(rates: SqlRates, elsewhere: SqlRates) -> None:
    asked = [each.reserve([PER_HOUR]) for _ in range(60) for each in (rates, elsewhere)]
    answers = await asyncio.gather(*asked)
    assert sum(isinstance(answer, Reserved) for answer in answers) == 20


async def test_hold_names_the_limit_and_when_there_is_room(rates: SqlRates, clock: FakeClock) -> None:
    await use(rates, PER_HOUR, PER_DAY)
    first = clock.now()
    await clock.advance(60)
    await use(rates, PER_HOUR, PER_DAY, times=19)
    assert await held(rates, PER_HOUR, PER_DAY) == Hold(first + HOUR, "rate limit envios/hora: 20 in 1 h")
    await clock.advance(59 * 60 - 1)
    await held(rates, PER_HOUR, PER_DAY)
    await clock.advance(1)
    await use(rates, PER_HOUR, PER_DAY)
    await held(rates, PER_HOUR, PER_DAY)


async def test_burst_at_the_edge_of_an_hour_does_not_double_the_limit(rates: SqlRates, clock: FakeClock) -> None:
    """A limit of 20 messages per hour holds in every period of 60 minutes. A counter that restarts with each clock hour
    would admit 20 messages at 12:59 and 20 more at 13:00.
    """
    await clock.advance(59 * 60)
    await use(rates, PER_HOUR, times=20)
    await clock.advance(60)
    await held(rates, PER_HOUR)


async def test_hold_ends_with_the_limit_that_takes_longest(rates: SqlRates, clock: FakeClock) -> None:
    small = Limit(name="dia", key="envios", most=3, per=DAY)
    await use(rates, PER_HOUR, small, times=3)
    hold = await held(rates, Limit(name="hora", key="envios", most=2, per=HOUR), small)
    assert hold == Hold(clock.now() + DAY, "rate limit dia: 3 in 1 d")


async def test_all_limits_are_reserved_or_none(rates: SqlRates) -> None:
    ana, rui = PER_DOCTOR.of("ana"), PER_DOCTOR.of("rui")
    await use(rates, PER_HOUR, ana, times=3)
    assert (await held(rates, PER_HOUR, ana)).reason == "rate limit medico/hora: 3 in 1 h"
    assert await rates.count_used([PER_HOUR]) == {"envios/hora": 3}
    await use(rates, PER_HOUR, rui)
    assert await rates.count_used([PER_HOUR, PER_DAY]) == {"envios/hora": 4, "envios/dia": 4}


async def test_two_messages_to_the_same_phone_have_a_pause_between_them(rates: SqlRates, clock: FakeClock) -> None:
    one, another = PER_PHONE.of("1"), PER_PHONE.of("2")
    await use(rates, one)
    await use(rates, another)
    assert (await held(rates, one)).until == clock.now() + 45 * SECOND
    await clock.advance(45)
    await use(rates, one)


async def test_unused_token_is_returned_and_a_used_one_is_not(rates: SqlRates, clock: FakeClock) -> None:
    limit = Limit(name="um", key="um", most=1, per=HOUR)
    reserved = await take(rates, limit)
    await held(rates, limit)
    await rates.release(reserved.id)
    again = await take(rates, limit)
    await rates.confirm(again.id)
    await rates.release(again.id)
    await held(rates, limit)


async def test_token_counts_from_its_use_and_not_from_its_reservation(rates: SqlRates, clock: FakeClock) -> None:
    """A rate limit counts a message from the instant at which it is sent, not from its reservation. Otherwise, two
    messages that were reserved early and sent late could together exceed the limit of a window.
    """
    limit = gap("gap", "gap", 10 * SECOND)
    reserved = await take(rates, limit)
    await clock.advance(8)
    await rates.confirm(reserved.id)
    await clock.advance(9)
    assert (await held(rates, limit)).until == clock.now() + SECOND
    await clock.advance(1)
    await take(rates, limit)


async def test_token_of_a_dead_process_counts_as_used_at_the_last_instant(rates: SqlRates, clock: FakeClock) -> None:
    limit = gap("gap", "gap", 10 * SECOND)
    assert isinstance(await rates.reserve([limit], use_within=30 * SECOND), Reserved)
    await clock.advance(39)
    await held(rates, limit)
    await clock.advance(1)
    await take(rates, limit)


async def test_callers_recheck_soon_while_a_token_is_in_use(rates: SqlRates, clock: FakeClock) -> None:
    limit = Limit(name="um", key="um", most=1, per=DAY)
    await take(rates, limit)
    assert (await held(rates, limit)).until == clock.now() + SECOND


async def test_reservation_and_business_row_commit_together(rates: SqlRates, database: Database) -> None:
    limit = Limit(name="um", key="um", most=1, per=HOUR)
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as transaction:
            assert isinstance(await rates.reserve([limit], within=transaction), Reserved)
            raise ZeroDivisionError
    async with database.transaction() as transaction:
        reserved = await rates.reserve([limit], within=transaction)
        assert isinstance(reserved, Reserved)
        await rates.confirm(reserved.id, within=transaction)
    await held(rates, limit)


async def test_unavailable_database_admits_nothing(ids: Ids, clock: FakeClock) -> None:
    nowhere = connect("sqlite:///nowhere/none.db", SystemClock())
    guard = RateGuard(rates=SqlRates(nowhere, ids, clock, own_time=True), limits=(PER_HOUR,))
    assert await guard.admit(clock.now()) == Hold(clock.now() + SECOND, "cannot read the rate limits")


async def test_unsent_effect_returns_its_token_and_an_uncertain_one_does_not(rates: SqlRates, clock: FakeClock) -> None:
    guard = RateGuard(rates=rates, limits=(Limit(name="dois", key="dois", most=2, per=HOUR),))

    async def admitted() -> Admit:
        verdict = await guard.admit(clock.now())
        assert isinstance(verdict, Admit)
        return verdict

    assert (await admitted()).by == clock.now() + MINUTE
    await clock.advance(3700)
    await (await admitted()).ticket.report(EffectReport(Effect.UNREACHED))
    await (await admitted()).ticket.give_back()
    await (await admitted()).ticket.report(EffectReport(Effect.TIMED_OUT))
    await (await admitted()).ticket.report(WORKED)
    assert isinstance(await guard.admit(clock.now()), Hold)


async def test_pruner_deletes_tokens_outside_every_window(
    rates: SqlRates, database: Database, clock: FakeClock
) -> None:
    await use(rates, PER_HOUR, PER_DOCTOR.of("ana"), times=3)
    await use(rates, PER_DAY)
    await clock.advance((HOUR + MARGIN + MINUTE).total_seconds())
    assert await rates.prune(limit=100) == 0
    await clock.advance(1)
    assert await rates.prune(limit=4) == 4
    assert await rates.prune(limit=4) == 2
    left = query_of("left", "SELECT count(*) AS n FROM rate_tokens", writes=False)
    row = await database.one(in_dialect(left, database.dialect))
    assert row is not None
    assert row["n"] == 1


async def test_token_of_a_short_window_is_kept_for_the_long_window_of_its_key(
    database_url: str, clock: FakeClock
) -> None:
    work = Batuta(database_url, clock=clock)
    hour, day = Limit(name="h", key="k", most=2, per=HOUR), Limit(name="d", key="k", most=4, per=DAY)
    pruner = Pruner(work.retentions())
    async with work:
        for limit in (hour, day):
            work.limit(limit)
        for _ in range(2):
            await use(work.rates, hour, times=2)
            await clock.advance(3 * HOUR)
            await pruner.tick()
        await held(work.rates, hour, day)
        await clock.advance(2 * DAY)
        await pruner.tick()
        await use(work.rates, hour, day)


async def test_process_whose_clock_is_ahead_prunes_no_valid_token(
    database: Database, clock: FakeClock, ids: Ids
) -> None:
    """A process whose clock is ahead deletes no rate-limit token that still counts. On PostgreSQL the server's clock
    decides which tokens have expired; on SQLite all processes share the machine's clock.
    """
    clock.step(SystemClock().now() - clock.now())
    own_time = database.dialect == "sqlite"
    rates = SqlRates(database, ids, clock if own_time else SystemClock())
    ahead = SqlRates(database, ids, clock)
    await use(rates, PER_HOUR, times=20)
    if not own_time:
        clock.step(3 * DAY)
    await ahead.prune(limit=100)
    await held(rates, PER_HOUR)


async def test_clock_of_the_database_decides_on_postgres(database: Database, ids: Ids) -> None:
    rates = SqlRates(database, ids, SystemClock())
    limit = Limit(name="um", key="um", most=1, per=HOUR)
    await use(rates, limit)
    hold = await held(rates, limit)
    assert abs(hold.until - SystemClock().now() - HOUR) < MINUTE


@pytest.mark.parametrize(
    "wrong", [{"most": 0}, {"per": timedelta(0)}, {"per": timedelta(days=400)}, {"name": " "}, {"key": ""}]
)
def test_invalid_limit_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidName):
        Limit(**{"name": "x", "key": "x", "most": 1, "per": HOUR, **wrong})  # type: ignore[arg-type]
