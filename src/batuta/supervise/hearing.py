"""A parent's ear: the datagram socket on which its children say that they are ready and live (``supervise.notify``).

The kernel says who spoke, so nobody can speak for somebody else; the name of the socket is one that leaves no file behind.
"""

import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

LONGEST = 4096
_CREDENTIALS = struct.Struct("3i")  # process, user, group


@dataclass(frozen=True, slots=True)
class Sign:
    pid: int
    words: tuple[str, ...]


class Ear:
    def __init__(self, inbox: socket.socket) -> None:
        self._inbox = inbox
        self.address = "@" + inbox.getsockname()[1:].decode()

    @classmethod
    def open(cls) -> Self | None:
        """None where the system cannot say who spoke: then silence proves nothing either."""
        if sys.platform != "linux":
            return None
        inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        inbox.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        inbox.bind("")  # Linux finds a free name
        return cls(inbox)

    def fileno(self) -> int:
        return self._inbox.fileno()

    def heard(self) -> Iterator[Sign]:
        """Everything that was said up to now."""
        while (sign := self._next()) is not None:
            yield sign

    def _next(self) -> Sign | None:
        try:
            words, extra, _, _ = self._inbox.recvmsg(LONGEST, socket.CMSG_SPACE(_CREDENTIALS.size))
        except BlockingIOError:
            return None
        pids = [
            _CREDENTIALS.unpack(told[: _CREDENTIALS.size])[0]
            for level, kind, told in extra
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)
        ]
        return Sign(pids[0] if pids else 0, tuple(words.decode(errors="replace").split("\n")))

    def close(self) -> None:
        self._inbox.close()
