"""Signs of life in ``worker_heartbeats``. That something lives is one record; that it is paused is another (``feature_flags``)."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from batuta.kernel.json import Json
from batuta.stores.sql.database import AsJson, Database, Query
from batuta.stores.sql.engine_schema import BOOKS
from batuta.stores.sql.queries import load


@dataclass(frozen=True, slots=True)
class BeatBook:
    beat: Query


class SqlBeats:
    def __init__(self, database: Database, version: str) -> None:
        self._database = database
        self._version = version
        self._book = load(BeatBook, BOOKS / "beats.sql", database.dialect)

    async def beat(self, worker_id: str, worker_name: str, loops: Mapping[str, Json], *, now: datetime) -> None:
        await self._database.run(
            self._book.beat,
            worker_id=worker_id,
            worker_name=worker_name,
            status="online",
            now=now,
            loops=AsJson(loops),
            host=socket.gethostname(),
            pid=os.getpid(),
            version=self._version,
        )
