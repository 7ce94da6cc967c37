"""The storage for a contender's jobs, empty at first: a file, a PostgreSQL database or a Redis server."""

import asyncio
import itertools
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.queue.processes import cpu_seconds, tree_cpu_seconds
from tests.servers import Postgres, free_port

_numbers = itertools.count()


class Home(Protocol):
    @property
    def url(self) -> str: ...
    def unsettled(self, question: str) -> int:
        """Return the number of jobs that are not settled."""
        ...

    def statements(self) -> int | None:
        """Return the number of statements or commands that the server has executed so far. Return None if only the
        worker can count them.
        """
        ...

    def cpu_seconds(self) -> float | None:
        """Return the processor seconds of the server so far, or None if there is no server."""
        ...


@dataclass(frozen=True, slots=True)
class SqliteFile:
    url: str

    @classmethod
    def make(cls, folder: Path) -> "SqliteFile":
        return cls(f"sqlite:///{folder}/{next(_numbers)}.db")

    def unsettled(self, question: str) -> int:
        connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=30)
        try:
            counted: int = connection.execute(question).fetchone()[0]
            return counted
        finally:
            connection.close()

    def statements(self) -> int | None:
        return None

    def cpu_seconds(self) -> float | None:
        return None


class PostgresDatabase:
    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._name = f"bench_{next(_numbers)}"
        self.url = server.url(self._name)
        self._asked = self._connected(server.url())
        self._run(self._asked.execute(f"CREATE DATABASE {self._name}"))
        # Flush the writes of earlier contenders, so that they are not counted for this one.
        self._run(self._asked.execute("CHECKPOINT"))
        self._counts = self._run(self._asked.fetchval("SHOW shared_preload_libraries")) == "pg_stat_statements"
        if self._counts:
            self._run(self._asked.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements"))
        self._inside: Any = None

    def unsettled(self, question: str) -> int:
        if self._inside is None:
            self._inside = self._connected(self.url)
        counted: int = self._run(self._inside.fetchval(question))
        return counted

    def statements(self) -> int | None:
        if not self._counts:
            return None
        of_ours = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE dbid = $1"
        oid = self._run(self._asked.fetchval("SELECT oid FROM pg_database WHERE datname = $1", self._name))
        counted: int = self._run(self._asked.fetchval(of_ours, oid))
        return counted

    def cpu_seconds(self) -> float | None:
        return tree_cpu_seconds(self._server.pid)

    def close(self) -> None:
        for connection in (self._inside, self._asked):
            if connection is not None:
                self._run(connection.close())
        self._loop.close()

    def _connected(self, url: str) -> Any:
        import asyncpg

        return self._run(asyncpg.connect(url))

    def _run(self, asked: Any) -> Any:
        asking = self._loop.create_task(asked)
        try:
            return self._loop.run_until_complete(asking)
        except KeyboardInterrupt:
            # Cancel the query in progress, because the connection could not be closed otherwise.
            asking.cancel()
            self._loop.run_until_complete(asyncio.wait([asking]))
            raise


@dataclass(frozen=True, slots=True)
class Redis:
    """Redis without persistence, so accepted jobs are lost when the server stops."""

    port: int
    pid: int
    version: str

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def unsettled(self, question: str) -> int:
        return int(self.ask(question).strip().removeprefix(":"))

    def statements(self) -> int | None:
        lines = self.ask("INFO commandstats").splitlines()
        counted = [line.partition("calls=")[2].partition(",")[0] for line in lines if line.startswith("cmdstat_")]
        return sum(map(int, counted))

    def cpu_seconds(self) -> float | None:
        return cpu_seconds(self.pid)

    def ask(self, words: str) -> str:
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(f"{words}\r\nQUIT\r\n".encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode().removesuffix("+OK\r\n")


def redis_program(peers: Path) -> Path | None:
    """Return the path of the Redis server that is installed on the machine. If there is none, return the path of the
    one that ``dev.py`` installed for the benchmark, or None.
    """
    program = shutil.which("redis-server") or shutil.which("redis-server", path=str(peers / "redis" / "bin"))
    return None if program is None else Path(program)


@contextmanager
def redis_server(program: Path) -> Iterator[Redis]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="batuta-bench-redis-") as folder:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
        process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            redis = Redis(port, process.pid, version_of(program))
            wait_until_it_answers(redis)
            yield redis
        finally:
            process.kill()
            process.wait()


def wait_until_it_answers(redis: Redis) -> None:
    for _ in range(100):
        try:
            redis.ask("PING")
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the Redis server did not answer within 5 s")


def version_of(program: Path) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return said.partition("v=")[2].partition(" ")[0]
