"""Merges the output of several processes into one stream, each line prefixed with its process's name, and announces
when all processes are ready.

A separate thread writes the lines, so a blocked terminal (Ctrl-S, a pager, a full log collector) does not block the
processes. Lines that do not fit into the queue are dropped and counted.
"""

import asyncio
import io
import queue
import socket
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TextIO
from urllib.parse import urlsplit

from batuta.kernel.clock import Clock
from batuta.supervise.loop import Idle, Pace, Wakeup

MOST_LINES = 20_000
MOST_CHARACTERS = 16 * 1024 * 1024
FLUSH_TIMEOUT = 2.0  # maximum seconds to write the last lines
COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
FAINT = 2
ASK_AGAIN = timedelta(milliseconds=100)  # wait before an API that did not respond is asked again


class OutputMux:
    def __init__(
        self,
        out: TextIO,
        names: Sequence[str],
        *,
        prefixed: bool,
        coloured: bool,
        most: int = MOST_LINES,
        most_characters: int = MOST_CHARACTERS,
    ) -> None:
        self._out = out
        self._names = names
        self._prefixed = prefixed
        self._coloured = coloured
        self._lines: queue.Queue[str | None] = queue.Queue(most)
        self._most_characters = most_characters
        self._queued = 0  # number of characters queued since the start; ``_written`` counts the written ones
        self._written = 0
        self._dropped = 0
        self._writing = threading.Thread(target=self._write_lines, name="batuta-output", daemon=True)
        self._writing.start()

    def say(self, name: str, line: str) -> None:
        """Queue a line of output from the process ``name``. Never blocks."""
        if self._dropped and not self._put(f"… {self._dropped} lines dropped: the terminal was too slow"):
            self._dropped += 1
            return
        self._dropped = 0 if self._put(self._prefix(name) + line) else self._dropped + 1

    def write(self, line: str) -> None:
        """Queue a line for the operator at the terminal, without a process name as prefix."""
        self._put(line)

    def stream(self, name: str) -> TextIO:
        """Return a file-like object. Each line written to it is queued as output from the process ``name``."""
        return _OutputStream(self, name, self._out.isatty())

    def close(self) -> None:
        """Write the queued lines, but give up after FLUSH_TIMEOUT seconds."""
        if self._put(None):
            self._writing.join(FLUSH_TIMEOUT)

    def _prefix(self, name: str) -> str:
        if not self._prefixed:
            return ""
        label = f"{name:<{max(map(len, self._names))}} |"
        if not self._coloured:
            return f"{label} "
        colour = COLOURS[self._names.index(name) % len(COLOURS)] if name in self._names[1:] else FAINT
        return f"\x1b[{colour}m{label}\x1b[0m "

    def _put(self, line: str | None) -> bool:
        length = len(line or "")
        if length and self._queued - self._written + length > self._most_characters:
            return False
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            return False
        self._queued += length
        return True

    def _write_lines(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._out.write(f"{_writable(line, self._out.encoding)}\n")
                if self._lines.empty():
                    self._out.flush()
            except (OSError, ValueError):
                continue  # the reader of the output has disconnected, but the processes must keep running
            finally:
                self._written += len(line)


def _writable(line: str, encoding: str | None) -> str:
    """Replace each character that the terminal's encoding cannot represent with an escape sequence."""
    return line.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")


class _OutputStream(io.StringIO):
    def __init__(self, output: OutputMux, name: str, is_terminal: bool) -> None:
        super().__init__()
        self._output = output
        self._name = name
        self._is_terminal = is_terminal
        self._begun = ""

    def write(self, text: str, /) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._output.say(self._name, line)
        return len(text)

    def isatty(self) -> bool:
        return self._is_terminal


class ReadyBanner:
    """Loop in `batuta up` that calls ``announce`` a single time, as soon as all children have been started and the API
    responds. ``is_complete`` returns whether every child has become ready or ended at least once. The parent sets
    ``wakeup`` when a child becomes ready.
    """

    name = "announcer"

    def __init__(
        self, address: str, is_complete: Callable[[], bool], announce: Callable[[], None], clock: Clock
    ) -> None:
        self.wakeup = Wakeup()
        self._clock = clock
        self._address = address
        self._is_complete = is_complete
        self._announce = announce
        self._is_announced = False

    async def tick(self) -> Pace:
        if self._is_announced or not self._is_complete():
            return Idle()
        if await asyncio.to_thread(answers, self._address):
            self._is_announced = True
            self._announce()
            return Idle()
        return Idle(self._clock.now() + ASK_AGAIN)


def answers(address: str) -> bool:
    """Return whether a Batuta API responds at ``address``."""
    # Uses a plain socket, because the HTTP library would take 2 MB of memory in the parent of `batuta up` for a single
    # request.
    place = urlsplit(address)
    question = f"GET /health HTTP/1.0\r\nHost: {place.netloc}\r\n\r\n"
    try:
        with socket.create_connection((place.hostname, place.port or 80), timeout=1) as asked:
            asked.sendall(question.encode())
            answer = b"".join(iter(lambda: asked.recv(65_536), b""))
    except OSError:
        return False
    status, _, rest = answer.partition(b"\r\n")
    return b" 200 " in status and b'"healthy"' in rest
