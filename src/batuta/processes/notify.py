"""The sd_notify protocol between a parent and its children: ready, alive, stopping.

The parent (systemd or ``batuta up``) passes a datagram socket in ``NOTIFY_SOCKET`` and the longest accepted time
between two heartbeats in ``WATCHDOG_USEC``. Without these variables this module does nothing. A failed notification is
ignored. The kernel identifies the sender of each datagram, so a process cannot send a heartbeat on behalf of another
process. The parent's abstract socket needs no file.
"""

import os
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Self

from batuta.kernel.values import dataclass

SOCKET = "NOTIFY_SOCKET"
WATCHDOG_LIMIT = "WATCHDOG_USEC"
LIMIT_PID = "WATCHDOG_PID"
NOTIFY_VARIABLES = (SOCKET, WATCHDOG_LIMIT, LIMIT_PID)  # variables that a parent must not pass to its own children

# maximum digits of the limit in microseconds; a longer number (over thirty thousand years) means no limit
LONGEST_LIMIT = 18

READY = "READY=1"
ALIVE = "WATCHDOG=1"
STOPPING = "STOPPING=1"
STATUS = "STATUS="
EXTEND = "EXTEND_TIMEOUT_USEC="


@dataclass(frozen=True, slots=True)
class Notifier:
    address: str | None = None  # a path, or @name for an abstract socket; None if no parent listens
    watchdog_limit: timedelta | None = None  # longest time between heartbeats; None if the parent expects none

    @classmethod
    def from_environment(cls, env: Mapping[str, str], pid: int | None = None) -> Self:
        """Read the parent's socket and time limit from ``env``. The limit applies only to the process ``pid``; None
        means this process.
        """
        address, limit = env.get(SOCKET, ""), env.get(WATCHDOG_LIMIT, "")
        is_ours = env.get(LIMIT_PID, "") in ("", str(os.getpid() if pid is None else pid))
        is_number = limit.isascii() and limit.isdecimal() and len(limit) <= LONGEST_LIMIT
        microseconds = int(limit) if is_number and is_ours else 0
        return cls(
            address if address[:1] in ("/", "@") else None,
            timedelta(microseconds=microseconds) if microseconds else None,
        )

    @property
    def watchdog_every(self) -> timedelta | None:
        """The interval between heartbeats: half of the parent's time limit, so that one late heartbeat is harmless.
        None if the parent sets no limit.
        """
        return None if self.watchdog_limit is None else self.watchdog_limit / 2

    def ready(self) -> bool:
        return self._send(READY)

    def alive(self) -> bool:
        """Send a heartbeat and return whether it was delivered. Call this method only while the process is healthy,
        because the parent treats a heartbeat as a sign of health.
        """
        return self._send(ALIVE)

    def stopping(self, within: timedelta | None = None) -> bool:
        """Announce a shutdown and return whether the message was delivered. ``within`` is the longest time that the
        shutdown may take; systemd then waits that long, even beyond its own limit.
        """
        extend = "" if within is None else f"\n{EXTEND}{within // timedelta(microseconds=1)}"
        return self._send(STOPPING + extend)

    def status(self, text: str) -> bool:
        """Send a status line for `systemctl status`, and return whether it was delivered."""
        return self._send(STATUS + " ".join(text.split()))

    def _send(self, words: str) -> bool:
        """Send a datagram to the parent without waiting, and return whether it was delivered. Delivery fails if the
        buffer of the parent's socket is full, or if this process has no such parent.
        """
        if self.address is None:
            return False
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as outbox:
                outbox.sendto(words.encode(errors="replace"), address)
        except (OSError, ValueError):  # a path with a null byte raises ValueError
            return False
        return True


LARGEST_DATAGRAM = 4096
_CREDENTIALS = struct.Struct("3i")  # sender's process id, user id and group id


@dataclass(frozen=True, slots=True)
class NotifyMessage:
    pid: int
    words: tuple[str, ...]


class NotifySocket:
    def __init__(self, inbox: socket.socket) -> None:
        self._inbox = inbox
        self.address = "@" + inbox.getsockname()[1:].decode()

    @classmethod
    def open(cls) -> Self | None:
        """Open the socket. Return None on systems that do not report the sender of a datagram, because a heartbeat
        could not be attributed to a child there.
        """
        if sys.platform != "linux":
            return None
        inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        inbox.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        inbox.bind("")  # with an empty name, Linux assigns a free one
        return cls(inbox)

    def fileno(self) -> int:
        return self._inbox.fileno()

    def receive(self) -> Iterator[NotifyMessage]:
        """Yield all messages received so far."""
        while (message := self._next()) is not None:
            yield message

    def _next(self) -> NotifyMessage | None:
        try:
            words, extra, _, _ = self._inbox.recvmsg(LARGEST_DATAGRAM, socket.CMSG_SPACE(_CREDENTIALS.size))
        except BlockingIOError:
            return None
        pids = [
            _CREDENTIALS.unpack(credentials[: _CREDENTIALS.size])[0]
            for level, kind, credentials in extra
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)
        ]
        return NotifyMessage(pids[0] if pids else 0, tuple(words.decode(errors="replace").split("\n")))

    def close(self) -> None:
        self._inbox.close()
