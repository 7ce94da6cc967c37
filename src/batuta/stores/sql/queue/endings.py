"""Let callers wait until a task ends. One listener serves all waiting callers of a process.

    wait(id) ──▶ listen once per process ──▶ request a notification ──▶ check ──▶ the waiter sleeps
    a task ends ──▶ NOTIFY ended:<id> (PostgreSQL), or a new commit count (SQLite) ──▶ one query ──▶ its waiters wake

On PostgreSQL a trigger notifies only about awaited tasks, so other tasks cost nothing. On SQLite the process polls the
file's commit counter while there is a waiter. A worker in the same process wakes the waiters directly.
"""

import asyncio
from contextvars import Context
from datetime import timedelta

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreNotOpen, StoreUnavailable
from batuta.kernel.waiting import cancel_and_wait
from batuta.stores.sql.database import AsJson, ChangeListener, Database, Query

ENDED = "ended:"
# Seconds to wait before a lost listener is opened again.
REOPEN_AFTER = 1.0


class Endings:
    def __init__(self, database: Database, clock: Clock, *, await_end: Query, unfinished: Query) -> None:
        self._database = database
        self._clock = clock
        self._await_end = await_end
        self._unfinished = unfinished
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}
        self._changed = asyncio.Event()
        # True if any task may have ended, so that the database must be asked about all awaited tasks
        self._is_unsure = False
        self._watching: asyncio.Task[None] | None = None
        self._listening: asyncio.Future[None] | None = None

    async def wait(self, id: str) -> None:
        """Wait until the task has ended. If the task does not exist, return immediately."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(id, set()).add(waiter)
        try:
            await asyncio.shield(self._listen())
            if await self._is_unfinished(id):
                self._changed.set()
                await waiter
                if self._watching is None:
                    raise StoreNotOpen(where=self._database.where)
        finally:
            self._waiters[id].discard(waiter)
            if not self._waiters[id]:
                del self._waiters[id]

    def note_change(self) -> None:
        """Check the awaited tasks now, because one of this process's tasks may have ended."""
        if self._waiters:
            self._change()

    async def close(self) -> None:
        if self._watching is not None:
            await cancel_and_wait(self._watching)
        if self._listening is not None and not self._listening.done():
            self._listening.set_result(None)
        self._watching = self._listening = None
        for id in self._waiters:  # the waiters then find that the database is closed
            self._release(id)

    def _listen(self) -> "asyncio.Future[None]":
        """Open the listener when the first waiter arrives. Return a future that completes when the listener is open."""
        if self._watching is None or self._watching.done() or self._listening is None:
            self._listening = asyncio.get_running_loop().create_future()
            self._changed = asyncio.Event()
            self._watching = asyncio.create_task(self._watch(self._listening), context=Context())
        return self._listening

    def _change(self) -> None:
        self._is_unsure = True
        self._changed.set()

    def _receive(self, name: str | None) -> None:
        if name is None:
            self._change()
        elif name.startswith(ENDED):
            self._release(name.removeprefix(ENDED))

    def _release(self, id: str) -> None:
        for waiter in self._waiters.get(id, ()):
            if not waiter.done():
                waiter.set_result(None)

    async def _watch(self, listening: "asyncio.Future[None]") -> None:
        while True:
            try:
                await self._watch_until_lost(listening)
            except StoreUnavailable as away:
                # the error reaches the first waiter, which reports that the database is unavailable
                if not listening.done():
                    listening.set_exception(away)
                    return
                await self._clock.sleep(REOPEN_AFTER)

    async def _watch_until_lost(self, listening: "asyncio.Future[None]") -> None:
        listener: ChangeListener = await self._database.watch(self._receive)
        try:
            self._change()  # notifications sent before the LISTEN are lost, so check once
            if not listening.done():
                listening.set_result(None)
            while True:
                await self._sleep(listener.period)
                self._changed.clear()
                await listener.probe()
                await self._check()
        finally:
            await listener.close()

    async def _sleep(self, period: timedelta) -> None:
        """Sleep until a change is reported or the listener must be probed. Without waiters, the listener is not
        probed.
        """
        if self._waiters:
            await self._clock.wait(self._changed, period.total_seconds())
        else:
            await self._changed.wait()

    async def _check(self) -> None:
        if not (self._is_unsure and self._waiters):
            return
        self._is_unsure = False
        ids = list(self._waiters)
        rows = await self._database.all(self._unfinished, ids=AsJson(ids))
        for id in {*ids} - {str(row["id"]) for row in rows}:
            self._release(id)

    async def _is_unfinished(self, id: str) -> bool:
        if self._database.dialect == "postgres" and await self._database.run(self._await_end, id=id):
            return True
        return bool(await self._database.all(self._unfinished, ids=AsJson([id])))
