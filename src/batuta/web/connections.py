"""The HTTP server's connections: deadlines for clients, and a limit on open connections.

A time limit on requests is not enough. A client can occupy a connection while no request is running: it can send its
headers slowly, keep sending the body of a refused request, or fail to read the response.
"""

import asyncio
import logging
import resource
from collections.abc import Callable
from typing import Any, ClassVar

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from batuta.config import MOST_CONNECTIONS
from batuta.kernel.clock import SystemClock
from batuta.web.headers import SECURITY_HEADERS
from batuta.web.limit import END_OF_HEAD, LARGEST_HEAD, RefusalLimit

HEADERS_WITHIN = 10.0  # seconds to receive the headers, and also the rest of a body after the response
READS_WITHIN = 30.0  # seconds in which the client must read at least one byte of its response
LIMITED_FOR = (
    1.0  # shortest delay in seconds of a response to a client above its limit of refusals; the longest is twice this
)
# Seconds that a new connection has to send its headers before it may be closed to make room; older connections are
# closed first.
NEW_FOR = 1.0
# File descriptors for purposes other than client connections: databases, logs, listening sockets.
RESERVED_FILES = 100
_ERRORS_ONLY = logging.getLogger("uvicorn.error.requests")
# A filter, because a configuration of the logs after this import resets the level.
_ERRORS_ONLY.addFilter(lambda record: record.levelno >= logging.ERROR)


def make_limited_protocol(
    most: int, refused: Callable[[str, int], None], limit: RefusalLimit | None = None
) -> type[H11Protocol]:
    """Return a server protocol that allows at most ``most`` connections, or fewer if the process cannot open that many
    files.

    ``refused(address, status)`` is called for each request that is not HTTP (400), and for each connection that is
    closed because its client was too slow or too many connections were open (408). ``limit`` rejects requests from
    clients that have exceeded their limit of refused requests, before the requests are parsed.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    limits = {"most": max(10, min(most, files - RESERVED_FILES)), "refused": staticmethod(refused), "limit": limit}
    return type("LimitedProtocol", (_LimitedProtocol,), limits)


def _count_nothing(address: str, status: int) -> None:
    """Ignore a refused request. This function stands in for the function that counts refused requests if an operator
    serves the application with the ``uvicorn`` command instead of the engine's own server.
    """


class _LimitedProtocol(H11Protocol):
    most: ClassVar[int]
    refused: ClassVar[Callable[[str, int], None]]
    limit: ClassVar[RefusalLimit | None]
    _deadline: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    _refusing: asyncio.TimerHandle | None = None
    _is_limited = False
    _since = 0.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Any client can send a malformed request or an upgrade, and uvicorn would log a warning for each. ``refused``
        # counts them instead.
        self.logger = _ERRORS_ONLY
        self._application: ASGIApp = self.app
        self.app = self._answer
        self._head = bytearray()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # With a larger buffer, the transport would report too late that the client is not reading its response.
        transport.set_write_buffer_limits(0)
        self._since = self.loop.time()
        self._expect_client()
        if len(self.connections) > self.most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        if self._refusing is not None:
            self.transport.pause_reading()  # the rest of a refused request
        elif whole := self._read_head(data):
            super().data_received(whole)
            self._expect_client()

    def _read_head(self, data: bytes) -> bytes:
        """Return the data that the server may parse now. While a client is above its limit of refused requests, first
        collect the complete head of each request; a request that the limit refuses is not parsed.
        """
        if not self._head and (self.limit is None or not self.limit.is_active or not self._is_between_requests):
            return data
        self._unset_keepalive_if_required()
        searched = max(0, len(self._head) - 3)  # the end of the head may begin in the bytes that came before
        self._head += data
        end = END_OF_HEAD.search(self._head, searched)
        if end is None and len(self._head) <= LARGEST_HEAD:
            return b""
        whole = bytes(self._head)
        self._head.clear()
        answer = self.limit.refuse(whole[: end.start()], self.client) if self.limit and end else None
        if answer is None:
            return whole
        self._stop_deadline()
        self._is_limited = True
        self._refusing = self.loop.call_later(self._lateness, self._refuse, answer)
        return b""

    def _refuse(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.transport.close()

    @property
    def _is_between_requests(self) -> bool:
        return self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]

    @property
    def _lateness(self) -> float:
        """The number of seconds by which a response to a client above its limit of refused requests is delayed. The
        delay depends on the client's port, so that responses to requests sent together are spread over time.
        """
        port = self.client[1] if self.client else 0
        return LIMITED_FOR * (1 + port % 100 / 100)

    def send_400_response(self, msg: str) -> None:
        self._count(400)
        fields = {**SECURITY_HEADERS, "Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
        headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=msg.encode()), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application handle a request. The response to a client above its limit of refused requests is
        delayed, so that the client can try only a few tokens per connection.
        """

        async def sending(message: Message) -> None:
            if message.get("status") == 429:
                self._is_limited = True
                await SystemClock().sleep(self._lateness)
                self._is_limited = False
            await send(message)

        await self._application(scope, receive, sending)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_client()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._refusing is not None:
            self._refusing.cancel()
        self._stop_deadline()
        super().connection_lost(exc)
        self._stop_reading()
        # Break the protocol's reference to itself, so that it is freed now and not only by the garbage collector.
        self.app = self._application

    @property
    def is_waiting(self) -> bool:
        """Whether the server is only waiting for the client: for the headers of the next request, or for the remaining
        body of a request to which the server has already responded.
        """
        return self.conn.their_state is h11.IDLE or (
            self.conn.their_state is h11.SEND_BODY and self.conn.our_state not in (h11.SEND_RESPONSE, h11.SEND_BODY)
        )

    @property
    def needs_client(self) -> bool:
        """Whether the server can continue only after the client sends or reads something."""
        late = self._reading is not None or self._is_limited
        return late or self.is_waiting or self.conn.their_state is h11.SEND_BODY

    @property
    def _can_make_room(self) -> bool:
        # A closed connection stays in the set until the next iteration of the event loop.
        return self.needs_client and not self.transport.is_closing()

    def _expect_client(self) -> None:
        if not self.is_waiting:
            self._stop_deadline()
        elif self._deadline is None:  # an occasional byte must not extend the deadline
            self._since = self.loop.time()
            self._deadline = self.loop.call_later(HEADERS_WITHIN, self._give_up)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expect_reading(self, unread: int) -> None:
        self._stop_reading()
        self._reading = self.loop.call_later(READS_WITHIN, self._check_reading, unread)

    def _check_reading(self, before: int) -> None:
        if (unread := self.transport.get_write_buffer_size()) < before:
            self._expect_reading(unread)
        else:
            self._give_up()

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _make_room(self) -> None:
        """Close one connection on which the server is waiting for the client. Connections of clients above their limit
        of refused requests are closed first, then connections older than NEW_FOR, then idle connections, and the oldest
        first within each group. If no connection qualifies, close the connection on which this method was called.
        """
        new = self.loop.time() - NEW_FOR
        found = [each for each in self.connections if isinstance(each, _LimitedProtocol) and each._can_make_room]
        min(
            found,
            key=lambda each: (not each._is_limited, each._since > new, not each.is_waiting, each._since),
            default=self,
        )._give_up()

    def _give_up(self) -> None:
        self._count(408)
        self._stop_deadline()
        self._stop_reading()
        self.transport.abort()

    def _count(self, status: int) -> None:
        type(self).refused(self.client[0] if self.client else "", status)


# Protocol for a server that an operator starts: uvicorn app.main:app --http batuta.web.connections:Http
Http = make_limited_protocol(MOST_CONNECTIONS, _count_nothing)
