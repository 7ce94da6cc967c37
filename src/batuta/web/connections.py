"""Connections of the HTTP server: a deadline for the headers of a request, and a limit on open connections.

A client that sends its headers slowly, or not at all, keeps a connection open without a request that could time out.
"""

import asyncio
import resource
from collections.abc import Callable
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from batuta.config import MOST_CONNECTIONS

HEADERS_WITHIN = 10.0  # seconds
# Files of the process that are not connections of clients: databases, logs, listening sockets.
RESERVED_FILES = 100


def limited_protocol(most: int, refused: Callable[[str], None]) -> type[H11Protocol]:
    """Return the protocol of a server with at most ``most`` connections, or fewer if the process may open fewer files.

    ``refused(address)`` is called for each connection closed because of late headers or too many connections.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    limits = {"most": max(10, min(most, files - RESERVED_FILES)), "refused": staticmethod(refused)}
    return type("LimitedProtocol", (_LimitedProtocol,), limits)


def _count_nothing(address: str) -> None:
    """Ignore a closed connection: a server that another program runs has no counter for it."""


class _LimitedProtocol(H11Protocol):
    most: ClassVar[int]
    refused: ClassVar[Callable[[str], None]]
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()
        if len(self.connections) > self.most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.is_waiting:
            self._expect_headers()
        else:
            self._stop_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether the server waits for the headers of the next request."""
        return self.conn.their_state is h11.IDLE

    @property
    def expires(self) -> float:
        return float("inf") if self._deadline is None else self._deadline.when()

    def _expect_headers(self) -> None:
        # The deadline counts from the first byte, so a byte now and then does not extend it.
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEADERS_WITHIN, self._give_up)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _make_room(self) -> None:
        """Close the connection that waits longest for headers: the new one if no other waits."""
        waiting = [each for each in self.connections if isinstance(each, _LimitedProtocol) and each.is_waiting]
        min(waiting, key=lambda each: each.expires, default=self)._give_up()

    def _give_up(self) -> None:
        client: Any = self.client
        type(self).refused(str(client[0]) if client else "")
        self._stop_deadline()
        self.transport.abort()


# For a server that an operator starts: uvicorn app.main:app --http batuta.web.connections:Http
Http = limited_protocol(MOST_CONNECTIONS, _count_nothing)
