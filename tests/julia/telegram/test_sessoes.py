"""The guarantees for stored sessions: they are encrypted, each has one owner, and the encryption keys can be
replaced.
"""

import asyncio
import sys
from datetime import timedelta

import pytest

from app.composition.telegram.port import LateRing
from app.contexts.telegram.porta import OwnedElsewhere, SessionRevoked, Unavailable
from app.contexts.telegram.sessoes import LEASE, ChaveErrada, SemChave, Sessoes
from batuta.kernel import Ids, make_owner
from batuta.sql import Database, query_of
from batuta.testing import FakeClock
from tests.julia.tables import write

CONTA = "00000000-0000-7000-8000-000000000001"
OTHER = "00000000-0000-7000-8000-000000000002"
SESSION = "1BVtsOHcBu-canary-session"
STORED = query_of("stored", "SELECT conta_id, cifrada FROM telegram_sessoes ORDER BY conta_id", writes=False)
SECOND = timedelta(seconds=1)


@pytest.fixture
async def database(database: Database, clock: FakeClock) -> Database:
    """A database with two Telegram accounts."""
    insert = "INSERT INTO telegram_contas (id, nome, created_at, updated_at) VALUES (:id, :name, :now, :now)"
    for id in (CONTA, OTHER):
        await write(database, insert, id=id, name=id, now=clock.now())
    return database


def vault(database: Database, clock: FakeClock, dono: str = "one", keys: tuple[str, ...] = ("first key",)) -> Sessoes:
    return Sessoes(database, LateRing(keys), clock, dono)


async def test_a_stored_session_is_unreadable_without_its_key(database: Database, clock: FakeClock) -> None:
    await vault(database, clock).store(CONTA, SESSION)
    (row,) = await database.all(STORED)
    assert "canary" not in row["cifrada"]
    assert await vault(database, clock).take(CONTA) == SESSION
    lost = await vault(database, clock, keys=("another key",)).take(CONTA)
    assert isinstance(lost, Unavailable)
    assert "TELEGRAM_SESSION_KEYS" in lost.why


async def test_process_without_the_key_does_not_take_the_session(database: Database, clock: FakeClock) -> None:
    right, wrong = vault(database, clock, "right"), vault(database, clock, "wrong", keys=("another key",))
    await right.store(CONTA, SESSION)
    assert isinstance(await wrong.take(CONTA), Unavailable)
    assert await right.take(CONTA) == SESSION
    assert isinstance(await wrong.take(CONTA), OwnedElsewhere)


async def test_a_session_has_one_owner_until_the_lease_ends(database: Database, clock: FakeClock) -> None:
    one, two = vault(database, clock, "one"), vault(database, clock, "two")
    await one.store(CONTA, SESSION)
    assert await one.take(CONTA) == SESSION
    assert await two.take(CONTA) == OwnedElsewhere(clock.now() + LEASE)
    clock.step(LEASE - SECOND)
    assert await one.renew(CONTA) is None
    clock.step(2 * SECOND)
    assert isinstance(await two.take(CONTA), OwnedElsewhere)  # the owner has renewed its lease
    clock.step(LEASE)
    assert await two.take(CONTA) == SESSION
    assert isinstance(await one.renew(CONTA), OwnedElsewhere)
    await one.release(CONTA)  # releases nothing, because it is no longer the owner
    assert isinstance(await one.take(CONTA), OwnedElsewhere)
    await two.release(CONTA)
    assert await one.take(CONTA) == SESSION


async def test_the_session_of_a_killed_process_is_free_at_once(database: Database, clock: FakeClock) -> None:
    ended = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from batuta.kernel import *; print(make_owner(Ids(SystemClock())))"),
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await ended.communicate()
    killed = vault(database, clock, printed.decode().strip())
    alive, this = vault(database, clock, make_owner(Ids(clock))), vault(database, clock, "this")
    await killed.store(CONTA, SESSION)
    await killed.take(CONTA)
    assert await this.take(CONTA) == SESSION
    assert isinstance(await killed.renew(CONTA), OwnedElsewhere)
    await this.release(CONTA)
    await alive.take(CONTA)
    assert isinstance(await this.take(CONTA), OwnedElsewhere)  # the process of the owner runs


async def test_a_new_login_replaces_the_session_and_its_owner(database: Database, clock: FakeClock) -> None:
    worker = vault(database, clock, "worker")
    await worker.store(CONTA, SESSION)
    await worker.take(CONTA)
    await vault(database, clock, "login").store(CONTA, "new session")
    assert await worker.renew(CONTA) is not None
    assert await worker.take(CONTA) == "new session"


async def test_a_new_key_encrypts_old_sessions_again(database: Database, clock: FakeClock) -> None:
    old = vault(database, clock, keys=("old",))
    await old.store(CONTA, SESSION)
    await old.store(OTHER, "second")
    both = vault(database, clock, keys=("new", "old"))
    assert await both.take(CONTA) == SESSION  # take also encrypts the session with the newest key
    assert await both.encrypt_all_again() == 1
    assert await both.encrypt_all_again() == 0
    await both.release(CONTA)
    assert await vault(database, clock, keys=("new",)).take(CONTA) == SESSION
    assert await vault(database, clock, keys=("new",)).take(OTHER) == "second"


async def test_a_removed_session_is_gone(database: Database, clock: FakeClock) -> None:
    sessoes = vault(database, clock)
    await sessoes.store(CONTA, SESSION)
    assert await sessoes.remove(CONTA)
    assert not await sessoes.remove(CONTA)
    assert isinstance(await sessoes.take(CONTA), SessionRevoked)


async def test_nothing_is_stored_without_a_key(database: Database, clock: FakeClock) -> None:
    with pytest.raises(SemChave, match="SECRET_KEY"):
        await vault(database, clock, keys=()).store(CONTA, SESSION)
    assert await database.all(STORED) == []


@pytest.mark.parametrize("broken", ["", "v1", "v1.00.!!", "v2.aaaa.AAAA", "v1.ffffffff.AAAA"])
def test_a_damaged_session_is_refused(broken: str) -> None:
    with pytest.raises(ChaveErrada):
        LateRing(("key",)).decrypt(CONTA, broken)


def test_the_session_of_one_account_cannot_be_used_for_another() -> None:
    ring = LateRing(("key",))
    with pytest.raises(ChaveErrada):
        ring.decrypt(OTHER, ring.encrypt(CONTA, SESSION))


def test_two_encryptions_of_a_session_differ() -> None:
    ring = LateRing(("key",))
    assert ring.encrypt(CONTA, SESSION) != ring.encrypt(CONTA, SESSION)
