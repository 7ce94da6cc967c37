"""A memory-mapped file that the measuring process and the contenders share.

Slot n contains the start time of job n and the process that ran it: its mark. The header contains counters and the
gate, at which worker processes wait so that all of them start at the same time. A job of the benchmark only writes its
mark, which takes a few hundred nanoseconds. The module uses only the standard library, because it runs in every
contender's environment.
"""

import mmap
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

_WORD = struct.Struct("<q")
_MARK = struct.Struct("<qq")
_GATE, _READY, _STATEMENTS, _LOOKS = 0, 1, 6, 7
_HEAD = 16 * _WORD.size


class Marks:
    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b")
        self._memory = mmap.mmap(self._file.fileno(), 0)
        self.capacity = (len(self._memory) - _HEAD) // _MARK.size
        self._pid = os.getpid()

    @classmethod
    def make(cls, path: Path, capacity: int) -> "Marks":
        with path.open("wb") as file:
            file.truncate(_HEAD + capacity * _MARK.size)
        return cls(path)

    def set(self, number: int) -> None:
        """Record that job ``number`` is starting now in this process."""
        _MARK.pack_into(self._memory, _HEAD + number * _MARK.size, time.monotonic_ns(), self._pid)

    def get(self, number: int) -> tuple[int, int]:
        """Return the start of a job in nanoseconds, and its process. Zeros mean that the job has not started."""
        at, pid = _MARK.unpack_from(self._memory, _HEAD + number * _MARK.size)
        return at, pid

    def between(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the start time and the process of each started job in this range of job numbers."""
        return (mark for mark in map(self.get, range(first, end)) if mark[0])

    def reach(self, cursor: int, end: int) -> int:
        """Return the number of the first job at or after ``cursor`` that has not started, or ``end`` if all jobs have
        started.
        """
        while cursor < end and self.get(cursor)[0]:
            cursor += 1
        return cursor

    def stand_at_gate(self, worker: int) -> None:
        """Report that this worker is ready, and wait until the measuring process lets all workers start. Call this
        method after all imports, so that their duration is not measured.
        """
        self._write(_READY + worker, 1)
        while not self._read(_GATE):
            time.sleep(0.001)

    def are_ready(self, workers: int) -> bool:
        return all(self._read(_READY + worker) for worker in range(workers))

    def open_gate(self) -> None:
        self._write(_GATE, 1)

    def close_gate(self) -> None:
        for place in range(_STATEMENTS):
            self._write(place, 0)

    def count_statement(self, text: str) -> None:
        """Count a statement that SQLite executed. The check by which SQLite detects changes to its file reads no table,
        so it is counted separately.
        """
        place = _LOOKS if "data_version" in text else _STATEMENTS
        self._write(place, self._read(place) + 1)

    @property
    def statements(self) -> int:
        return self._read(_STATEMENTS)

    @property
    def looks(self) -> int:
        return self._read(_LOOKS)

    def _read(self, place: int) -> int:
        number: int = _WORD.unpack_from(self._memory, place * _WORD.size)[0]
        return number

    def _write(self, place: int, number: int) -> None:
        _WORD.pack_into(self._memory, place * _WORD.size, number)

    def close(self) -> None:
        self._memory.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
