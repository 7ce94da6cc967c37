"""Notifications between the processes that share one SQLite file, because SQLite has no NOTIFY.

Each listening process owns one FIFO in the folder ``<database>-wake``. After a commit that makes items due, the
committing process writes the name of the queue into every FIFO in the folder:

    commit ──▶ a line with the queue's name into each FIFO ──▶ the event loop of each listener wakes its workers

- An idle listener costs nothing: the kernel wakes its event loop.
- A dead process's FIFO has no reader. The next process that sends a notification detects this and deletes the FIFO. A
  new FIFO therefore gets its final name only after its owner has opened it.
- A full FIFO is skipped, because its reader still has unread notifications that will wake it.
- Like the write-ahead log, the folder and the FIFOs have the database file's owner and permissions. So every process
  that may write to the database may also send notifications.
- A notification is only a hint: it may be lost, and workers also poll. If the folder or a FIFO cannot be created, the
  listener polls the file (``driver.PollingListener``).
"""

import asyncio
import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# A line with this text, in place of a queue's name, means that any queue may have changed.
ANY_QUEUE = "*"
_CAPACITY = 65_536  # capacity of a FIFO in bytes, so that one read empties it
_ATTEMPTS = 3  # maximum attempts to create a FIFO while another process removes the empty folder
_NO_READER = (errno.ENXIO, errno.EPIPE)
_SENDING = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
# The reader also opens its FIFO for writing, so that it does not read end-of-file when the last sender closes the FIFO.
_RECEIVING = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW


class NotificationFolder:
    """The folder with the FIFOs of all processes that listen to one database file."""

    def __init__(self, file: Path) -> None:
        self._file = file.resolve()
        self._folder = self._file.with_name(f"{self._file.name}-wake")
        self._own: set[str] = set()
        self._open: dict[str, int] = {}  # descriptors of the FIFOs that this process has written to, by FIFO name

    def send(self, queue: str | None) -> None:
        """Write a queue's name into the FIFOs of all other listeners. None means any queue. This method never blocks
        and raises no errors.
        """
        try:
            listeners = os.listdir(self._folder)  # noqa: PTH208 - once per enqueue: Path.iterdir is slower
        except OSError:
            listeners = []
        for gone in self._open.keys() - listeners if self._open else ():
            os.close(self._open.pop(gone))
        line = f"{ANY_QUEUE if queue is None else queue}\n".encode()
        for name in listeners:
            if name not in self._own and not name.startswith("."):
                self._send(name, line)

    def _send(self, name: str, line: bytes) -> None:
        try:
            descriptor = self._open.get(name) or self._connect(name)
            # a full FIFO is skipped, because its reader still has unread notifications
            with suppress(BlockingIOError):
                os.write(descriptor, line)
        except OSError as error:
            if (descriptor := self._open.pop(name, 0)) != 0:
                os.close(descriptor)
            if error.errno in _NO_READER:
                with suppress(OSError):
                    (self._folder / name).unlink(missing_ok=True)

    def _connect(self, name: str) -> int:
        descriptor = os.open(self._folder / name, _SENDING)
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileNotFoundError
        self._open[name] = descriptor
        return descriptor

    def listen(self, on_change: Callable[[str | None], None]) -> "Receiver":
        """Create this process's FIFO and call ``on_change`` for every notification. Raises OSError if the FIFO cannot
        be created.
        """
        name = secrets.token_hex(8)
        receiver = Receiver(self, name, self._make(name), on_change)
        self._own.add(name)
        return receiver

    def _make(self, name: str) -> int:
        for _ in range(_ATTEMPTS):
            with suppress(FileExistsError):
                self._folder.mkdir(mode=0o700)
                self._permit(self._folder, is_folder=True)
            with suppress(FileNotFoundError):
                return self._make_fifo(self._folder / f".{name}", self._folder / name)
        raise FileNotFoundError(self._folder)

    def _make_fifo(self, new: Path, path: Path) -> int:
        os.mkfifo(new, 0o600)
        try:
            self._permit(new)
            descriptor = os.open(new, _RECEIVING)
            new.rename(path)
        except OSError:
            new.unlink(missing_ok=True)
            raise
        return descriptor

    def _permit(self, path: Path, *, is_folder: bool = False) -> None:
        """Copy the database file's owner and permissions to ``path``. If ``path`` is a folder, users who may read the
        database file may also enter the folder.
        """
        found = self._file.stat()
        mode = stat.S_IMODE(found.st_mode) & 0o666
        path.chmod(mode | (mode & 0o444) >> 2 if is_folder else mode)
        if os.geteuid() == 0:
            os.chown(path, found.st_uid, found.st_gid)

    def remove(self, name: str) -> None:
        """Remove an ended listener's FIFO. If it was the last FIFO, remove the folder too."""
        self._own.discard(name)
        with suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)
            self._folder.rmdir()

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()


class Receiver:
    """The FIFO from which this process reads notifications."""

    def __init__(
        self, folder: NotificationFolder, name: str, descriptor: int, on_change: Callable[[str | None], None]
    ) -> None:
        self._folder = folder
        self._name = name
        self._descriptor = descriptor
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._receive)

    def _receive(self) -> None:
        with suppress(BlockingIOError):
            lines = os.read(self._descriptor, _CAPACITY).decode(errors="replace").split("\n")
            for queue in dict.fromkeys(lines[:-1]):
                self._on_change(None if queue == ANY_QUEUE else queue)

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._folder.remove(self._name)
