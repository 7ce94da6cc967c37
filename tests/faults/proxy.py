"""A TCP proxy in the test's event loop that can cut or freeze the connections to a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

PIECE = 1 << 16
BEGINNING = 2048


class Proxy:
    """A TCP proxy. ``cut`` closes every connection and refuses new ones. ``freeze`` keeps connections open but forwards
    nothing. ``freeze(words)`` freezes only the existing connections whose first bytes contain these words.
    """

    def __init__(self, port: int) -> None:
        self.port = 0
        self._behind = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._taking = True
        self._connections: set[asyncio.Task[None]] = set()
        # maps the server-side writer of each connection to the first bytes on that connection
        self._first: dict[asyncio.StreamWriter, bytes] = {}
        self._frozen: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self._taking = False
        for writer in self._writers:
            writer.transport.abort()

    def freeze(self, words: bytes = b"") -> int:
        """Freeze connections, and return how many were frozen."""
        if not words:
            self._open.clear()
            return len(self._first)
        self._frozen |= {writer for writer, first in self._first.items() if words in first}
        return len(self._frozen)

    def heal(self) -> None:
        self._taking = True
        self._open.set()

    async def stop(self) -> None:
        self.heal()
        self.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        await asyncio.gather(*self._connections)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here = asyncio.create_task(self._connect(reader, writer))
        self._connections.add(here)
        await here
        self._connections.discard(here)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._taking:
            writer.transport.abort()
            return
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._behind)
            self._writers |= {writer, far_writer}
            try:
                here = self._pass_on(reader, far_writer, far_writer)
                await asyncio.gather(here, self._pass_on(far_reader, writer, far_writer))
            finally:
                self._writers -= {writer, far_writer}
                self._first.pop(far_writer, None)
                far_writer.transport.abort()
        writer.transport.abort()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: asyncio.StreamWriter
    ) -> None:
        while piece := await reader.read(PIECE):
            self._first[connection] = (self._first.get(connection, b"") + piece)[:BEGINNING]
            await self._open.wait()
            if connection in self._frozen:
                continue
            writer.write(piece)
            await writer.drain()
        await self._open.wait()  # a frozen network does not transmit the end of a connection either
        writer.transport.abort()


@asynccontextmanager
async def proxy(port: int) -> AsyncIterator[Proxy]:
    made = Proxy(port)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
