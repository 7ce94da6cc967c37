"""The HTTP endpoint that the schedulers call for each run of a job. It is a separate process. It does the work of each
idempotency key once, and syncs its log to disk after each line.

``POST /<job>?takes=3`` takes three seconds. A repeated key receives the first answer again, or 409 while its run is in
progress. ``POST /hostile/<kind>/<job>`` misbehaves in the way that ``kind`` specifies.
"""

import asyncio
import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from batuta.processes.tree import die_with_parent
from batuta.testing import FastClock

OK = b'{"status": "ok", "items_processed": 1}'
STILL_RUNNING = b'{"type": "/problemas/still_running"}'
GIGABYTE = 1 << 30


class Sink:
    def __init__(self, clock: FastClock, file: Path) -> None:
        self._clock = clock
        self._file = file.open("ab")
        self._runs: dict[str, asyncio.Task[None]] = {}

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while await self._request(reader, writer):
                pass
        writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        await reader.readexactly(int(headers.get("content-length", 0)))
        address = urlsplit(head[0].split(" ")[1])
        if address.path.startswith("/hostile/"):
            await HOSTILE[address.path.split("/")[2]](writer, self._clock)
            return False
        takes = float(parse_qs(address.query).get("takes", ["0"])[0])
        status, body = await self._answer(address.path.strip("/"), headers["idempotency-key"], takes)
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        return True

    async def _answer(self, job: str, key: str, takes: float) -> tuple[str, bytes]:
        if (run := self._runs.get(key)) is not None:
            self._write(key=key, job=job, repeated=self._clock.now().isoformat())
            return ("200 OK", OK) if run.done() else ("409 Conflict", STILL_RUNNING)
        # The run is a separate task, so that it continues if the caller is killed.
        self._runs[key] = asyncio.create_task(self._run(job, key, takes))
        await asyncio.shield(self._runs[key])
        return "200 OK", OK

    async def _run(self, job: str, key: str, takes: float) -> None:
        self._write(key=key, job=job, start=self._clock.now().isoformat())
        if takes:
            await self._clock.sleep(takes)
        self._write(key=key, end=self._clock.now().isoformat())

    def _write(self, **line: Any) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


async def silent(writer: asyncio.StreamWriter, clock: FastClock) -> None:
    """Accept the request and never answer."""
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter, clock: FastClock) -> None:
    """As the answer, send one byte every five seconds."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await clock.sleep(5)


async def headers(writer: asyncio.StreamWriter, clock: FastClock) -> None:
    """As the answer, send an endless series of headers."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x-more: " + b"x" * 1000 + b"\r\n")
        await writer.drain()
        await asyncio.sleep(0.001)


async def flood(writer: asyncio.StreamWriter, clock: FastClock) -> None:
    """As the answer, send a gigabyte."""
    writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {GIGABYTE}\r\n\r\n".encode())
    for _ in range(GIGABYTE >> 16):
        writer.write(b"x" * (1 << 16))
        await writer.drain()


async def reset(writer: asyncio.StreamWriter, clock: FastClock) -> None:
    """Reset the connection in the middle of the answer's body."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + b"x" * 10)
    await writer.drain()
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def redirect(writer: asyncio.StreamWriter, clock: FastClock) -> None:
    """Answer with a redirect to the address that the client requested."""
    writer.write(b"HTTP/1.1 302 Found\r\nlocation: /hostile/redirect/again\r\ncontent-length: 0\r\n\r\n")
    await writer.drain()


Behaviour = Callable[[asyncio.StreamWriter, FastClock], Awaitable[None]]
HOSTILE: dict[str, Behaviour] = {each.__name__: each for each in (silent, drip, headers, flood, reset, redirect)}


def run(clock: str, file: str, port: "Connection[int, int]") -> None:
    """Serve as a separate process, and send the port number through the connection."""
    die_with_parent(os.getppid())
    asyncio.run(_serve(clock, file, port))


async def _serve(clock: str, file: str, port: "Connection[int, int]") -> None:
    sink = Sink(FastClock.from_text(clock), Path(file))
    server = await asyncio.start_server(sink.connection, "127.0.0.1", 0, backlog=1000)
    port.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()
