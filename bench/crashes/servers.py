"""The servers that the libraries use. Each server can be killed and started again with its data."""

import asyncio
import subprocess
from pathlib import Path
from typing import Protocol

from bench.queue.entries import PEERS
from bench.queue.homes import Redis, SqliteFile, redis_program, version_of, wait_until_it_answers
from tests.servers import Postgres, free_port


class Server(Protocol):
    @property
    def url(self) -> str: ...
    def crash(self) -> None: ...
    def start(self) -> None: ...
    def count(self, question: str) -> int:
        """Run a query or a Redis command that returns a number, and return this number."""
        ...


class SqliteServer:
    """Takes the place of a server for libraries that store jobs in an SQLite file. SQLite has no server process, so
    ``crash`` and ``start`` do nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._file = SqliteFile(f"sqlite:///{folder}/jobs.db")
        self.url = self._file.url

    def count(self, question: str) -> int:
        return self._file.unsettled(question)

    def crash(self) -> None: ...
    def start(self) -> None: ...


class PostgresServer:
    def __init__(self, server: Postgres) -> None:
        self._server = server
        self.url = server.url(server.create())

    def crash(self) -> None:
        self._server.stop()  # SIGQUIT: the server ends at once, without a checkpoint

    def start(self) -> None:
        self._server.start()

    def count(self, question: str) -> int:
        return asyncio.run(self._ask(question))

    async def _ask(self, question: str) -> int:
        import asyncpg

        connection = await asyncpg.connect(self.url)
        try:
            return int(await connection.fetchval(question))
        finally:
            await connection.close()


class RedisServer:
    """A Redis server with its default settings or, if ``synced`` is true, with a log of all writes that Redis syncs to
    disk before each response.
    """

    def __init__(self, folder: Path, *, synced: bool) -> None:
        program = redis_program(PEERS)
        if program is None:
            raise RuntimeError("no Redis on this machine: install redis-server")
        self._program, self._folder, self._port = program, folder, free_port()
        self._settings = ["--appendonly", "yes", "--appendfsync", "always"] if synced else []
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}"

    def start(self) -> None:
        options = ["--port", str(self._port), "--bind", "127.0.0.1", "--dir", str(self._folder), *self._settings]
        self._process = subprocess.Popen(
            [self._program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._redis = Redis(self._port, self._process.pid, version_of(self._program))
        wait_until_it_answers(self._redis)

    def count(self, question: str) -> int:
        return self._redis.unsettled(question)

    def crash(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.crash()
