"""Access to a PostgreSQL server, either directly or through a pooler that may run every transaction in a different
session.

Behind such a pooler (PgBouncer's transaction mode) no session setting survives a transaction. So the driver sends no
start-up parameters, uses no named prepared statements, and begins every transaction with its own ``SET LOCAL``.
``LISTEN`` needs a direct address.

``?pooler=transaction`` in the address declares a pooler; ``?pooler=none`` declares that there is none. Without this
parameter, the first connection detects a pooler by the start-up parameters, which a pooler refuses or ignores.
"""

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from batuta.kernel.errors import InvalidSetting
from batuta.kernel.reasons import Reason
from batuta.stores.sql.database import ConnectionLimits

REFUSED_PARAMETER = "unsupported startup parameter"
_MARK = ("plan_cache_mode", "force_generic_plan")
_READ_MARK = "SELECT current_setting('plan_cache_mode') AS mark"
_WAYS: dict[str | None, bool | None] = {"transaction": True, "none": False, None: None}


class BehindPooler(Exception):
    """Raised when the first connection detects an undeclared pooler."""


class PostgresServer:
    """A server and its address. All sets of connections share this object, so that the pooler detection runs once."""

    def __init__(self, url: str, direct_url: str | None = None) -> None:
        """Create a server from its address. ``direct_url`` is an address for LISTEN that bypasses the pooler."""
        self.url, declared = _split_pooler(url)
        self.where = _where(self.url)
        self.direct_url = direct_url
        self.is_pooled = declared  # None until the first connection has detected whether there is a pooler

    @property
    def listens_at(self) -> str | None:
        """The address for LISTEN, or None if the process must poll the tables instead."""
        return self.direct_url or (None if self.is_pooled else self.url)

    def connecting(self, limits: ConnectionLimits) -> dict[str, Any]:
        """Return the arguments for ``asyncpg.connect``, which depend on whether the server is behind a pooler."""
        if self.is_pooled:
            return {"statement_cache_size": 0}
        return {"server_settings": _session(limits)}

    def beginning(self, statement: str, limits: ConnectionLimits) -> str:
        """Return the statement that begins a transaction. Behind a pooler, the statement also sets the transaction's
        limits with ``SET LOCAL``. In both cases it takes one round trip.
        """
        if not self.is_pooled:
            return statement
        return "; ".join([statement, *(f"SET LOCAL {name} = '{value}'" for name, value in _session(limits).items())])

    async def recognise(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        """Raise BehindPooler if the server ignored the start-up parameters of this connection."""
        if self.is_pooled is None:
            if await _is_pooled(connection):
                raise BehindPooler
            self.is_pooled = False

    def refuses_parameters(self, error: BaseException) -> bool:
        return self.is_pooled is None and REFUSED_PARAMETER in str(error)


async def _is_pooled(connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
    """Return whether the server ignored the start-up parameters of a connection. The query that finds this out leaves
    no prepared statement behind.
    """
    await connection.execute("BEGIN")
    try:
        mark = await (await connection.prepare(_READ_MARK, name="")).fetchval()
    finally:
        await connection.execute("ROLLBACK")
    return bool(mark != _MARK[1])


def _session(limits: ConnectionLimits) -> dict[str, str]:
    return {
        "application_name": limits.name,
        "timezone": "UTC",
        # Use generic plans: every statement is written for its index, and planning it each time would cost more than
        # executing it.
        **dict([_MARK]),
        # JIT is off, because the planner overestimates the cost of reading 500 rows of a large table and would compile
        # the plan, which costs more than executing it.
        "jit": "off",
        "statement_timeout": _milliseconds(limits.statement.total_seconds()),
        "lock_timeout": _milliseconds(limits.row_lock.total_seconds()),
        "idle_in_transaction_session_timeout": _milliseconds(limits.idle_in_transaction.total_seconds()),
    }


def _split_pooler(url: str) -> tuple[str, bool | None]:
    """Return the address without its ``pooler`` parameter, and the parameter's meaning: True or False, or None if the
    parameter is absent.
    """
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    mode = dict(given).get("pooler")
    if mode not in _WAYS:
        why = Reason("strange_pooler", "pooler={pooler} is neither transaction nor none", pooler=mode)
        raise InvalidSetting(name="DATABASE_URL", why=why)
    if mode is None:
        return url, None
    kept = urlencode([(name, value) for name, value in given if name != "pooler"])
    return urlunsplit(parts._replace(query=kept)), _WAYS[mode]


def _where(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path}"


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))
