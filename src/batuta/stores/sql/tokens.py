"""Stores bearer tokens in ``api_tokens``, with an audit entry for each creation and revocation."""

from dataclasses import dataclass
from datetime import datetime

from batuta.access import Scope, Token
from batuta.kernel.ids import Ids
from batuta.stores.sql.audit import AuditLog
from batuta.stores.sql.database import AsJson, Database, Query, Row, from_row
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries


@dataclass(frozen=True, slots=True)
class TokenQueries:
    keep: Query
    token: Query
    tokens: Query
    revoke: Query


class SqlTokens:
    def __init__(self, database: Database, ids: Ids) -> None:
        self._database = database
        self._queries = load_queries(TokenQueries, STATEMENTS / "tokens.sql", database.dialect)
        self._audit = AuditLog(database.dialect, ids)

    async def find(self, id: str) -> Token | None:
        row = await self._database.one(self._queries.token, id=id)
        return None if row is None else _token(row)

    async def all(self) -> list[Token]:
        return [_token(row) for row in await self._database.all(self._queries.tokens)]

    async def keep(self, token: Token) -> None:
        scopes = sorted(token.scopes)
        async with self._database.transaction() as transaction:
            await transaction.run(
                self._queries.keep,
                id=token.id,
                name=token.name,
                secret_hash=token.secret_hash,
                scopes=AsJson(scopes),
                by=token.created_by,
                now=token.created_at,
            )
            await self._audit.note(
                transaction,
                actor=token.created_by,
                action="token.create",
                subject=token.id,
                after={"name": token.name, "scopes": scopes},
                now=token.created_at,
            )

    async def revoke(self, id: str, *, by: str, now: datetime) -> bool:
        """Revoke a token. Return False if the token is unknown or already revoked."""
        async with self._database.transaction() as transaction:
            if not await transaction.run(self._queries.revoke, id=id, now=now):
                return False
            await self._audit.note(transaction, actor=by, action="token.revoke", subject=id, now=now)
        return True


def _token(row: Row) -> Token:
    return from_row(Token, row, scopes=frozenset(Scope(scope) for scope in row["scopes"]))
