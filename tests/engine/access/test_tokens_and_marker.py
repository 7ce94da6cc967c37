"""Storage and verification of API tokens, and the marker that ties a database to one project. The tests run on both
databases.
"""

import secrets

import pytest

from batuta.access import Scope, mint, proves, split_token
from batuta.kernel.errors import InvalidName, MarkerMismatch
from batuta.kernel.ids import Ids
from batuta.stores.sql.database import Database
from batuta.stores.sql.migrations import Mark, Marker
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.tables.tokens import SqlTokens
from batuta.testing import FakeClock


@pytest.fixture
def tokens(database: Database, ids: Ids) -> SqlTokens:
    return SqlTokens(database, ids)


async def test_stored_token_is_found_by_its_id_and_verified_by_its_secret(tokens: SqlTokens, clock: FakeClock) -> None:
    token, text = mint("painel", [Scope.READ], by="ana", now=clock.now(), chance=secrets.token_hex)
    await tokens.keep(token)
    parts = split_token(text)
    assert parts is not None
    found = await tokens.find(parts[0])
    assert found == token
    assert proves(found, parts[1], now=clock.now())
    assert not proves(found, parts[1][::-1], now=clock.now())


async def test_secret_is_not_stored_in_the_database(tokens: SqlTokens, database: Database, clock: FakeClock) -> None:
    token, text = mint("painel", [Scope.READ], by="ana", now=clock.now(), chance=secrets.token_hex)
    await tokens.keep(token)
    secret = text.rpartition("_")[2]
    for table in ("api_tokens", "audit_log"):
        everything = in_dialect(query_of("all", f"SELECT * FROM {table}", writes=False), database.dialect)
        assert secret not in repr([[row[key] for key in row.keys()] for row in await database.all(everything)])  # noqa: SIM118


async def test_revoked_token_is_refused(tokens: SqlTokens, clock: FakeClock) -> None:
    token, text = mint("painel", [Scope.READ], by="ana", now=clock.now(), chance=secrets.token_hex)
    await tokens.keep(token)
    assert await tokens.revoke(token.id, by="ana", now=clock.now())
    assert not await tokens.revoke(token.id, by="ana", now=clock.now())
    found = await tokens.find(token.id)
    assert found is not None
    assert not proves(found, text.rpartition("_")[2], now=clock.now())


@pytest.mark.parametrize("text", ["", "bat_", "bat_x_y", "bat_" + "0" * 12 + "_" + "g" * 48, "Bearer x"])
def test_text_in_another_format_is_not_looked_up(text: str) -> None:
    assert split_token(text) is None


def test_token_without_a_name_or_a_scope_is_refused(clock: FakeClock) -> None:
    for name, scopes in ((" ", [Scope.READ]), ("painel", [])):
        with pytest.raises(InvalidName):
            mint(name, scopes, by="ana", now=clock.now(), chance=secrets.token_hex)


async def test_database_marked_for_another_project_is_refused(database: Database, clock: FakeClock) -> None:
    mine, yours, unset = (Marker(database, Mark(setting="PLACE", project=each)) for each in ("mine", "yours", None))
    with pytest.raises(MarkerMismatch, match="belongs to project '-', not 'mine': check DATABASE_URL and PLACE"):
        await mine.require()
    await mine.set_once(now=clock.now())
    await yours.set_once(now=clock.now())
    await unset.set_once(now=clock.now())
    await mine.require()
    with pytest.raises(MarkerMismatch, match="belongs to project 'mine', not 'yours'"):
        await yours.require()
    with pytest.raises(MarkerMismatch, match="belongs to project 'mine', not '-'"):
        await unset.require()  # a missing setting gives no access
