"""What asyncpg's exceptions mean to us. Values never pass: a server's DETAIL line may hold a phone number."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from batuta.kernel.errors import (
    BatutaError,
    ConcurrentStatements,
    PoolerNotDeclared,
    RowLocked,
    StatementRefused,
    StoreConflict,
    StoreReadOnly,
    StoreTimeout,
    StoreUnavailable,
    TransactionMisuse,
)

# Whatever the driver raises.
DRIVERS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
_TIMEOUT = (
    TimeoutError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
_UNAVAILABLE = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,  # a deadlock or a serialisation failure: the same again will do
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InternalClientError,
)


@contextmanager
def translate_errors(where: str, *, connecting: bool = False) -> Iterator[None]:
    """``connecting``: whatever the driver says, there is no connection."""
    try:
        yield
    except DRIVERS as error:
        named = our_name_for(error, where)
        if connecting and not isinstance(named, StoreUnavailable):
            named = StoreUnavailable(where=where, why=_first_line(error))
        raise named from error


def our_name_for(error: Exception, where: str) -> BatutaError:
    why = getattr(error, "message", None) or _first_line(error)
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return StoreConflict(why=f"{error.constraint_name or error.column_name} of {error.table_name}")
    if isinstance(error, asyncpg.InFailedSQLTransactionError):
        return TransactionMisuse(why="a statement of this transaction failed before")
    if isinstance(error, asyncpg.LockNotAvailableError):
        return RowLocked(where=where, why=why or "no answer")
    if isinstance(error, _TIMEOUT):
        return StoreTimeout(where=where, why=why or "no answer")
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return StoreReadOnly(where=where, why=why)
    if isinstance(error, asyncpg.DataError):
        return StatementRefused(why=type(error).__name__)
    if isinstance(error, asyncpg.InterfaceError):
        return _misuse(why) or StoreUnavailable(where=where, why=why)
    if isinstance(error, asyncpg.InvalidSQLStatementNameError | asyncpg.DuplicatePreparedStatementError):
        return PoolerNotDeclared(where=where, why=why)
    if isinstance(error, _UNAVAILABLE):
        return StoreUnavailable(where=where, why=why)
    return StatementRefused(why=why)


def _misuse(why: str) -> BatutaError | None:
    """What the driver says of its own use, by its text: it has no other word. None: the connection is lost."""
    if "another operation is in progress" in why:
        return ConcurrentStatements()
    # A connection that is lost goes back to its pool by itself, also from within a transaction.
    if any(word in why for word in ("closed", "closing", "released back to the pool")):
        return None
    return StatementRefused(why=why)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
