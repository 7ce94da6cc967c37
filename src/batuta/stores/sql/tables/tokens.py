"""Stores bearer tokens in ``api_tokens``, with an audit entry for each creation, rotation and revocation."""

from datetime import datetime, timedelta

from batuta.access import Scope, Token
from batuta.kernel.ids import Ids
from batuta.kernel.values import dataclass
from batuta.stores.sql.database import AsJson, Database, Query, Row, Transaction, from_row
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries
from batuta.stores.sql.tables.audit import AuditLog

USE_NOTED_EVERY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class TokenQueries:
    keep: Query
    token: Query
    tokens: Query
    revoke: Query
    expire: Query
    used: Query
    end_session: Query
    ended: Query
    prune_sessions: Query


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
        async with self._database.transaction() as transaction:
            await self._keep(transaction, token)

    async def rotate(self, old: Token, new: Token, *, until: datetime) -> bool:
        """Store a token's successor, and let the old token expire at ``until``. Return False if the old token stays
        unchanged because it has been revoked or expires earlier; the successor is stored even then.
        """
        async with self._database.transaction() as transaction:
            await self._keep(transaction, new)
            await self._audit.note(
                transaction,
                actor=new.created_by,
                action="token.rotate",
                subject=old.id,
                after={"new": new.id, "until": until.isoformat()},
                now=new.created_at,
            )
            return bool(await transaction.run(self._queries.expire, id=old.id, at=until))

    async def _keep(self, transaction: Transaction, token: Token) -> None:
        scopes = sorted(token.scopes)
        await transaction.run(
            self._queries.keep,
            id=token.id,
            name=token.name,
            secret_hash=token.secret_hash,
            scopes=AsJson(scopes),
            by=token.created_by,
            now=token.created_at,
            expires_at=token.expires_at,
            networks=AsJson([*token.networks]),
        )
        await self._audit.note(
            transaction,
            actor=token.created_by,
            action="token.create",
            subject=token.id,
            after={"name": token.name, "scopes": scopes},
            now=token.created_at,
        )

    async def note_use(self, token: Token, *, now: datetime) -> None:
        """Record a token's last use, but at most once an hour, because a write per request would cost more than the
        request itself.
        """
        if token.last_used_at is None or now - token.last_used_at >= USE_NOTED_EVERY:
            await self._database.run(self._queries.used, id=token.id, now=now)

    async def end_session(self, session: str, *, until: datetime) -> None:
        """Record the end of a session, so that every process refuses its cookie. ``until`` is when the cookie
        expires.
        """
        await self._database.run(self._queries.end_session, session=session, until=until)

    async def is_ended(self, session: str) -> bool:
        return await self._database.one(self._queries.ended, session=session) is not None

    async def prune(self, *, before: datetime, limit: int) -> int:
        """Delete at most ``limit`` ended sessions whose cookie expired before the instant ``before``, and return how
        many were deleted.
        """
        return await self._database.run(self._queries.prune_sessions, before=before, limit=limit)

    async def revoke(self, id: str, *, by: str, now: datetime) -> bool:
        """Revoke a token. Return False if the token is unknown or already revoked."""
        async with self._database.transaction() as transaction:
            if not await transaction.run(self._queries.revoke, id=id, now=now):
                return False
            await self._audit.note(transaction, actor=by, action="token.revoke", subject=id, now=now)
        return True


def _token(row: Row) -> Token:
    scopes = frozenset(Scope(scope) for scope in row["scopes"])
    return from_row(Token, row, scopes=scopes, networks=tuple(row["networks"]))
