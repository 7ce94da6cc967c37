"""Writer: the only thread that writes to the database.

The thread performs *units*. A unit is one statement, or a session: an open ``async with database.transaction()`` that
sends its statements one by one. All waiting units share one SQLite transaction and one sync to disk. A sync takes about
0.3 ms; a small change takes about a hundredth of this time.

    inbox ──▶ BEGIN IMMEDIATE ─▶ unit ─▶ unit ─▶ … ─▶ COMMIT ──▶ the callers of all units are notified
                                  │
                                  └─ fails: only its own changes are undone, and only its caller gets the error

If only one unit is waiting and the unit is a statement, it needs no BEGIN and COMMIT: SQLite commits it by itself.

A unit is acknowledged after its change has been committed, and only if the database's path still names the file that
was written (see ``identity``). If the COMMIT fails, every unit in the transaction fails, with one exception: if a
deferred constraint was violated, each statement is repeated with its own commit, and only the statement that violates
the constraint fails. A session cannot be repeated, because its caller has already read its rows. So while the schema
has a deferred constraint, a session shares its commit with no other unit.
"""

import queue
import sqlite3
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import timedelta
from typing import Any, Protocol

from batuta.kernel.clock import Clock
from batuta.kernel.errors import BatutaError, StoreTimeout, StoreUnavailable, TransactionMisuse
from batuta.kernel.values import dataclass
from batuta.stores.sqlite.connection import Act, attempt, close, settle, to_batuta_error
from batuta.stores.sqlite.identity import OpenFile

# Maximum units per group, so that no unit has to wait long for the units after it.
GROUP_UNITS = 1000
GROUP_TIME = timedelta(milliseconds=20)


class Unit(Protocol):
    """A unit of work. ``perform`` runs in the writer thread; if it raises an error, its changes are undone. Afterwards
    ``report_commit`` or ``report_failure`` runs on the event loop.
    """

    is_single: bool  # whether the unit is one statement, which SQLite undoes by itself if it fails
    repeatable: bool  # whether the unit may be performed again after a rollback

    def perform(self, connection: sqlite3.Connection) -> None: ...
    def report_commit(self) -> None: ...
    def report_failure(self, error: BatutaError) -> None: ...


@dataclass(slots=True)
class Single:
    """A unit that consists of one act (a function to run on the connection)."""

    act: Act
    future: "Future[Any]"
    result: Any = None
    is_single: bool = True
    repeatable: bool = True

    def perform(self, connection: sqlite3.Connection) -> None:
        self.result = self.act(connection)

    def report_commit(self) -> None:
        settle(self.future, self.result, None)

    def report_failure(self, error: BatutaError) -> None:
        settle(self.future, None, error)


@dataclass(slots=True)
class TransactionUnit:
    """A unit that is an open transaction. Its caller sends one act (a function to run on the connection) at a time. If
    the next act does not arrive within ``timeout``, the transaction fails.
    """

    loop: AbstractEventLoop
    ended: "Future[None]"
    timeout: timedelta
    where: str
    is_single: bool = False
    repeatable: bool = False
    _acts: "queue.SimpleQueue[tuple[Act | None, Future[Any] | None]]" = field(default_factory=queue.SimpleQueue)
    _begun: bool = False
    _broken: bool = False
    _closed: bool = False
    _closing: threading.Lock = field(default_factory=threading.Lock)

    def send(self, act: Act) -> "Future[Any]":
        future: Future[Any] = self.loop.create_future()
        self._post(act, future)
        return future

    def commit(self) -> None:
        self._post(None, None)

    def roll_back(self) -> bool:
        """Request a rollback and return whether the caller must wait for it. The caller need not wait if the writer has
        not started the transaction.
        """
        with self._closing:
            if not self._begun:
                self._closed = True
                return False
        self._post(_undo, None)
        return True

    def _post(self, act: Act | None, future: "Future[Any] | None") -> None:
        with self._closing:
            if not self._closed:
                self._acts.put((act, future))
            elif future is not None:
                raise TransactionMisuse(why="the transaction has ended")

    def perform(self, connection: sqlite3.Connection) -> None:
        with self._closing:
            if self._closed:
                raise TransactionMisuse(why="the block ended before the writer started its transaction")
            self._begun = True
        try:
            while self._serve(connection):
                pass
        finally:
            self._close(TransactionMisuse(why="the transaction has ended"))

    def _serve(self, connection: sqlite3.Connection) -> bool:
        """Run the next statement of the transaction block and return whether the transaction continues. The transaction
        ends when the block requests the commit.
        """
        try:
            act, future = self._acts.get(timeout=self.timeout.total_seconds())
        except queue.Empty:
            raise StoreTimeout(where=self.where, why="a transaction stayed open without statements") from None
        if act is None:
            return False
        # After some failures SQLite ends the transaction by itself; a later statement would then be committed on its
        # own.
        result, error = (None, _FAILED_BEFORE) if self._broken and future else attempt(act, connection, self.where)
        self._broken = self._broken or error is not None
        if future is None and error is not None:
            raise error
        if future is not None:
            self.loop.call_soon_threadsafe(settle, future, result, error)
        return True

    def _close(self, why: BatutaError) -> None:
        with self._closing:
            self._closed = True
            while not self._acts.empty():
                _, future = self._acts.get_nowait()
                if future is not None:
                    self.loop.call_soon_threadsafe(settle, future, None, why)

    def report_commit(self) -> None:
        settle(self.ended, None, None)

    def report_failure(self, error: BatutaError) -> None:
        # The caller of the first statement may still wait for a result, although the writer never started the
        # transaction.
        self._close(error)
        settle(self.ended, None, error)


class Writer:
    def __init__(
        self,
        connection: sqlite3.Connection,
        file: OpenFile,
        loop: AbstractEventLoop,
        clock: Clock,
        where: str,
        timeout: timedelta,
    ) -> None:
        self._connection = connection
        self._file = file
        self._loop = loop
        self._clock = clock
        self._where = where
        self._timeout = timeout.total_seconds()
        self._stopped = False
        self._stopping = threading.Lock()
        self._inbox: queue.SimpleQueue[tuple[float, Unit] | None] = queue.SimpleQueue()
        self._postponed: Unit | None = None  # a unit taken from the inbox that becomes the first unit of the next group
        self._deferring = SchemaCheck(connection)
        self._thread = threading.Thread(target=self._work, name="batuta-writer", daemon=True)
        self._thread.start()

    def submit(self, unit: Unit) -> None:
        if (lost := self._file.lost) is not None:
            raise lost
        with self._stopping:
            if self._stopped:
                raise StoreUnavailable(where=self._where, why="it was closed")
            self._inbox.put((self._clock.monotonic(), unit))

    def stop(self) -> None:
        """Write the waiting units, then stop the thread. This method blocks, so call it outside the event loop."""
        with self._stopping:
            self._stopped = True
            self._inbox.put(None)
        self._thread.join()
        close(self._connection, self._file)

    def _work(self) -> None:
        while (waiting := self._inbox.get()) is not None:
            unit = self._check_unit(waiting)
            while unit is not None:
                self._write_group(unit)
                unit, self._postponed = self._postponed, None

    def _check_unit(self, waiting: tuple[float, Unit]) -> Unit | None:
        """Return a unit (a statement or an open transaction) if it may be written. If the unit has waited too long, or
        if the database file was deleted or replaced, report an error to the unit's caller and return None.
        """
        asked_at, unit = waiting
        if (lost := self._file.lost) is not None:
            self._fail([unit], lost)
        elif self._clock.monotonic() - asked_at > self._timeout:
            self._fail([unit], StoreTimeout(where=self._where, why="the writer was busy"))
        else:
            return unit
        return None

    def _write_group(self, first: Unit) -> None:
        performed: list[Unit] = []
        try:
            if first.is_single and self._inbox.empty():
                if self._perform(first):
                    self._acknowledge([first])
                return
            self._connection.execute("BEGIN IMMEDIATE")
            self._perform_waiting(first, performed)
        except sqlite3.Error as error:
            # BEGIN or a savepoint failed: roll back, and continue with the next group.
            self._roll_back()
            self._fail(performed or [first], to_batuta_error(error, self._where))

    def _perform_waiting(self, first: Unit, performed: list[Unit]) -> None:
        ends = self._clock.monotonic() + GROUP_TIME.total_seconds()
        unit: Unit | None = first
        while unit is not None:
            if self._perform(unit, is_first=not performed):
                performed.append(unit)
            if not self._connection.in_transaction:
                # The first unit failed, or SQLite ended the whole transaction (disk full, I/O error): all changes are
                # lost.
                lost = StoreUnavailable(where=self._where, why="the transaction was lost with a failed statement")
                self._fail(performed, lost)
                return
            unit = self._next(unit, performed, ends)
        self._commit(performed)

    def _next(self, last: Unit, performed: Sequence[Unit], ends: float) -> Unit | None:
        if len(performed) >= GROUP_UNITS or self._clock.monotonic() > ends:
            return None
        try:
            waiting = self._inbox.get_nowait()
        except queue.Empty:
            return None
        if waiting is None:
            self._inbox.put(None)  # put the stop signal back, to finish this group first
            return None
        unit = self._check_unit(waiting)
        if unit is not None and not (last.repeatable and unit.repeatable) and self._deferring.is_possible():
            self._postponed = unit
            return None
        return unit

    def _perform(self, unit: Unit, *, is_first: bool = True) -> bool:
        """Perform a unit (a statement or an open transaction), and undo its changes if it fails. A failed statement has
        no changes to undo. A failed transaction is rolled back if it is the first unit of its commit; a later one needs
        a savepoint.
        """
        has_savepoint = not unit.is_single and not is_first
        if has_savepoint:
            self._connection.execute("SAVEPOINT unit")
        _, error = attempt(unit.perform, self._connection, self._where)
        if error is not None:
            self._fail([unit], error)
        if has_savepoint and self._connection.in_transaction:
            if error is not None:
                self._connection.execute("ROLLBACK TO unit")
            self._connection.execute("RELEASE unit")
        elif error is not None and not unit.is_single:
            self._roll_back()
        return error is None

    def _commit(self, performed: Sequence[Unit]) -> None:
        """Commit the units (statements and transactions) that share one SQLite transaction. Acknowledge the units only
        if the database's path still names the file that was written.
        """
        try:
            self._connection.execute("COMMIT")
        except sqlite3.IntegrityError as error:
            self._roll_back()
            self._repeat_one_by_one(performed, error)
            return
        self._acknowledge(performed)

    def _acknowledge(self, performed: Sequence[Unit]) -> None:
        if (lost := self._file.find_loss()) is not None:
            self._fail(performed, lost)
        else:
            self._call_on_loop(_report_commits, performed)

    def _repeat_one_by_one(self, performed: Sequence[Unit], error: sqlite3.Error) -> None:
        """Write each unit with its own commit, so that only the unit that violates a deferred constraint fails."""
        if len(performed) == 1:
            self._fail(performed, to_batuta_error(error, self._where))
            return
        for unit in performed:
            if unit.repeatable:
                self._write_alone(unit)
            else:
                # This happens only after PRAGMA defer_foreign_keys, which is not visible in the schema.
                why = "a transaction that shared its commit violated a constraint"
                self._fail([unit], StoreUnavailable(where=self._where, why=why))

    def _write_alone(self, unit: Unit) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            if self._perform(unit):
                self._commit([unit])
            else:
                self._roll_back()
        except sqlite3.Error as error:
            self._roll_back()
            self._fail([unit], to_batuta_error(error, self._where))

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _fail(self, units: Sequence[Unit], error: BatutaError) -> None:
        self._call_on_loop(_report_failures, units, error)

    def _call_on_loop(self, callback: Callable[..., None], *arguments: object) -> None:
        if not self._loop.is_closed():  # if the event loop is closed, no caller is waiting
            self._loop.call_soon_threadsafe(callback, *arguments)


class SchemaCheck:
    """Detects whether the schema has constraints that can fail at COMMIT. It rereads the schema only after the schema
    has changed.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._version = -1
        self._deferred = False

    def is_possible(self) -> bool:
        version: int = self._connection.execute("PRAGMA schema_version").fetchone()[0]
        if version != self._version:
            self._version = version
            self._deferred = self._connection.execute(_DEFERRED).fetchone() is not None
        return self._deferred


_DEFERRED = "SELECT 1 FROM sqlite_master WHERE sql LIKE '%INITIALLY DEFERRED%' LIMIT 1"


def _report_commits(units: Sequence[Unit]) -> None:
    for unit in units:
        unit.report_commit()


def _report_failures(units: Sequence[Unit], error: BatutaError) -> None:
    for unit in units:
        unit.report_failure(error)


_FAILED_BEFORE = TransactionMisuse(why="a statement of this transaction failed before")


def _undo(connection: sqlite3.Connection) -> None:
    raise TransactionMisuse(why="the block ended with an error")
