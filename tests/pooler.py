"""A minimal PostgreSQL pooler in transaction mode, for tests on machines without PgBouncer.

It rejects unknown startup parameters, and gives each transaction of a client a different server connection. A program
that relies on session state therefore fails.
"""

import asyncio
import itertools
import struct
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from tests.servers import free_port

KNOWN = frozenset({"user", "database", "client_encoding"})
_CANCEL, _VERSION, _ENCRYPTION = 80877102, 196608, (80877103, 80877104)
_LOST = (OSError, asyncio.IncompleteReadError)


@dataclass(eq=False)
class _Client:
    writer: asyncio.StreamWriter
    database: str
    linked: "_Server | None" = None
    before: "_Server | None" = None
    awaited: int = 0  # number of ReadyForQuery answers still to come


@dataclass(eq=False)
class _Server:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    database: str
    key: bytes
    greeting: bytes
    client: _Client | None = None
    pump: asyncio.Task[None] | None = field(default=None, repr=False)


def through(port: int, url: str, query: str = "") -> str:
    """Return the URL with which a client reaches the database of ``url`` through the pooler at ``port``."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}", query=query))


class TransactionPooler:
    """A transaction pooler. ``ignored`` contains the startup parameters that it accepts and drops, like PgBouncer's
    setting ignore_startup_parameters.
    """

    def __init__(self, server_port: int, ignored: frozenset[str] = frozenset()) -> None:
        self.port = free_port()
        self.switched = 0  # number of transactions that got another server connection than the previous one
        self._server_port = server_port
        self._accepted = KNOWN | ignored
        self._keys = itertools.count(1)
        self._clients: dict[int, _Client] = {}
        self._idle: dict[str, deque[_Server]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pooler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        listening = asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self._listening = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close in the next iteration of the loop

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client: _Client | None = None
        try:
            if (parameters := await self._startup(reader, writer)) is None:
                return
            if unknown := sorted(parameters.keys() - self._accepted):
                writer.write(_fatal(f"unsupported startup parameter: {unknown[0]}"))
                return
            key, client = next(self._keys), _Client(writer, parameters["database"])
            self._clients[key] = client
            first = await self._taken(client)
            self._idle[first.database].append(first)
            writer.write(_frame(b"R", struct.pack("!i", 0)) + first.greeting)
            writer.write(_frame(b"K", struct.pack("!ii", key, 0)) + _frame(b"Z", b"I"))
            await self._forward(reader, client)
        except _LOST:
            pass
        finally:
            # inside a transaction, so no other client may reuse the connection
            if client is not None and client.linked is not None:
                client.linked.writer.close()
            writer.close()

    async def _startup(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[str, str] | None:
        while True:
            length, code = struct.unpack("!ii", await reader.readexactly(8))
            rest = await reader.readexactly(length - 8)
            if code in _ENCRYPTION:
                writer.write(b"N")
                continue
            if code == _CANCEL:
                await self._cancel(struct.unpack("!ii", rest)[0])
                return None
            words = rest.decode().split("\0")
            return {name: value for name, value in zip(words[::2], words[1::2], strict=False) if name}

    async def _forward(self, reader: asyncio.StreamReader, client: _Client) -> None:
        while True:
            kind, body = await _read(reader)
            if kind == b"X":
                return
            if client.linked is None:
                client.linked = await self._taken(client)
                client.linked.client = client
            client.awaited += kind in b"QSF"
            client.linked.writer.write(_frame(kind, body))

    async def _taken(self, client: _Client) -> _Server:
        """Take an idle server connection other than the one that this client used last, or open a new one."""
        idle = self._idle.setdefault(client.database, deque())
        for server in idle:
            if server is not client.before:
                idle.remove(server)
                break
        else:
            server = await self._connected(client.database)
        self.switched += client.before is not None and server is not client.before
        client.before = server
        return server

    async def _connected(self, database: str) -> _Server:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        words = f"user\0postgres\0database\0{database}\0\0".encode()
        writer.write(struct.pack("!ii", len(words) + 8, _VERSION) + words)
        greeting, key = b"", b""
        while True:
            kind, body = await _read(reader)
            if kind == b"E":
                raise ConnectionResetError
            greeting += _frame(kind, body) if kind == b"S" else b""
            key = body if kind == b"K" else key
            if kind == b"Z":
                server = _Server(reader, writer, database, key, greeting)
                server.pump = asyncio.create_task(self._answers(server))
                return server

    async def _answers(self, server: _Server) -> None:
        """Forward responses to the client that holds this server connection. The response that ends a transaction
        releases the connection.
        """
        try:
            while True:
                kind, body = await _read(server.reader)
                client = server.client
                if client is None:
                    continue
                if kind == b"Z":
                    client.awaited -= 1
                    if body == b"I" and not client.awaited:
                        server.client = client.linked = None
                        self._idle[server.database].append(server)
                client.writer.write(_frame(kind, body))
        except _LOST:
            with suppress(ValueError):
                self._idle[server.database].remove(server)
            if server.client is not None:
                server.client.writer.close()
        finally:
            server.writer.close()

    async def _cancel(self, key: int) -> None:
        client = self._clients.get(key)
        if client is not None and client.linked is not None:
            _, writer = await asyncio.open_connection("127.0.0.1", self._server_port)
            writer.write(struct.pack("!ii", 16, _CANCEL) + client.linked.key)
            await writer.drain()
            writer.close()


async def _read(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind, length = struct.unpack("!ci", await reader.readexactly(5))
    return kind, await reader.readexactly(length - 4)


def _frame(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _fatal(why: str) -> bytes:
    return _frame(b"E", f"SFATAL\0VFATAL\0C08P01\0M{why}\0\0".encode())
