"""Database drivers and stores. ``connect`` selects the driver by the URL; all other code in the engine uses only the
interface in ``sql.database``.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from batuta.kernel.clock import Clock
from batuta.kernel.errors import InvalidSetting
from batuta.kernel.reasons import Reason
from batuta.stores.sql.database import ConnectionLimits, Database

FORMS = "sqlite:///file.db | sqlite:////absolute/file.db | postgresql://user:password@host:5432/name"

# The limits for an additional set of connections: as few connections as possible, and short timeouts.
_SOON = timedelta(seconds=5)
ASIDE = ConnectionLimits(connect=_SOON, statement=_SOON, lock=_SOON, idle_in_transaction=_SOON, readers=0, pool=2)
# Every timeout is the lease divided by this number. So even if a renewal has to wait for a connection and then for its
# statement, there is time for a second renewal.
_SHARE_OF_LEASE = 5
_SHORTEST = timedelta(milliseconds=100)


def liveness_limits(lease: timedelta, pool: int) -> ConnectionLimits:
    """Return the limits for the connections that renew leases and that settle or rescue items. Every timeout is at most
    a fifth of ``lease``.
    """
    usual, each = ConnectionLimits(), lease / _SHARE_OF_LEASE
    if each < _SHORTEST:
        least = (_SHORTEST * _SHARE_OF_LEASE).total_seconds()
        why = Reason("short_lease", "it is too short for renewals; set {least} s or more", least=f"{least:g}")
        raise InvalidSetting(name="lease", why=why)
    return ConnectionLimits(
        connect=min(usual.connect, each),
        statement=min(usual.statement, each),
        lock=min(usual.lock, each),
        idle_in_transaction=min(usual.idle_in_transaction, each),
        pool=pool,
        ready=0,
        name="batuta-liveness",
    )


def page_limits(statement: timedelta, pool: int) -> ConnectionLimits:
    """Return limits for the connections that serve dashboard pages: a small pool, and a short timeout per statement."""
    return ConnectionLimits(statement=statement, lock=_SOON, readers=2, pool=pool, ready=0, name="batuta-pages")


def connect(
    url: str,
    clock: Clock,
    limits: ConnectionLimits | Callable[[], ConnectionLimits] | None = None,
    *,
    direct_url: str | None = None,
    beside: Database | None = None,
) -> Database:
    """Return a Database object that is not open yet. This function imports the driver, so that SQLite needs no
    additional package.

    ``limits`` may be a function, which the database calls when it opens. ``direct_url`` is a PostgreSQL address for
    LISTEN that bypasses the pooler. ``beside`` is an existing Database object for the same server; the new object
    reuses what ``beside`` has detected about a pooler.
    """
    scheme, _, rest = url.partition("://")
    limits = limits or ConnectionLimits()
    if scheme == "sqlite":
        if direct_url is not None:
            why = Reason(
                "direct_alone", "it applies only with PostgreSQL in DATABASE_URL; unset it or correct DATABASE_URL"
            )
            raise InvalidSetting(name="DATABASE_DIRECT_URL", why=why)
        from batuta.stores.sqlite.driver import SqliteDatabase

        return SqliteDatabase(_file(rest), clock, limits() if callable(limits) else limits)
    if scheme in ("postgresql", "postgres"):
        _check_postgres(url)
        try:
            from batuta.stores.postgres.driver import PostgresDatabase
            from batuta.stores.postgres.server import PostgresServer
        except ModuleNotFoundError as missing:
            why = Reason("no_driver", "PostgreSQL needs {name}: pip install 'batuta[postgres]'", name=missing.name)
            raise InvalidSetting(name="DATABASE_URL", why=why) from None
        if isinstance(beside, PostgresDatabase):
            return PostgresDatabase(beside.server, limits)
        return PostgresDatabase(PostgresServer(url, _check_direct(direct_url)), limits)
    # The message must not contain the value: without ``://`` the whole value may be a password.
    if "://" not in url:
        raise _invalid_url("no_scheme", "it has no ://; the forms are {forms}")
    raise _invalid_url("strange_scheme", "'{scheme}' is not a supported database; the forms are {forms}", scheme=scheme)


def _file(rest: str) -> Path:
    # sqlite:///file is relative to the working folder; sqlite:////file is absolute.
    name = rest.removeprefix("/")
    if not rest.startswith("/"):
        raise _invalid_url("three_slashes", "it needs three slashes; the forms are {forms}")
    if not name or name == ":memory:":
        raise _invalid_url("in_memory", "processes cannot share a database in memory; name a file: {forms}")
    return Path(name)


def _check_postgres(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = bool(parts.path.strip("/")) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise _invalid_url(
            "half_address", "a host, a port number or the database's name is missing; the forms are {forms}"
        )


def _check_direct(url: str | None) -> str | None:
    """Check the PostgreSQL address that bypasses the pooler, and return it. Raise InvalidSetting if the address is
    invalid, so that the error appears at start-up and not when LISTEN first uses the address.
    """
    if url is None:
        return None
    scheme, name = url.partition("://")[0], "DATABASE_DIRECT_URL"
    if scheme not in ("postgresql", "postgres"):
        why = Reason("direct_scheme", "it must begin with postgresql://, like DATABASE_URL")
        raise InvalidSetting(name=name, why=why)
    if "pooler=" in urlsplit(url).query:
        raise InvalidSetting(name=name, why=Reason("direct_pooler", "it must bypass the pooler; remove pooler="))
    return url


def _invalid_url(key: str, english: str, **facts: object) -> InvalidSetting:
    return InvalidSetting(name="DATABASE_URL", why=Reason(key, english, forms=FORMS, **facts))
