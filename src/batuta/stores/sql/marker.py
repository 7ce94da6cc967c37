"""Whose database this is. Written once, by the first migration that knows; a process with another idea refuses to start."""

from dataclasses import dataclass
from datetime import datetime

from batuta.kernel.errors import MarkerMismatch
from batuta.stores.sql.database import AsJson, Database, Query
from batuta.stores.sql.engine_schema import BOOKS
from batuta.stores.sql.queries import load

PROJECT = "supabase_project_ref"


@dataclass(frozen=True, slots=True)
class MarkerBook:
    setting: Query
    settle: Query


class Marker:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._book = load(MarkerBook, BOOKS / "marker.sql", database.dialect)

    async def set_once(self, project: str, *, now: datetime) -> None:
        await self._database.run(self._book.settle, name=PROJECT, setting=AsJson(project), now=now)

    async def require(self, project: str | None) -> None:
        """None: it must bear no mark. Forgetting the setting must not open somebody's marked database."""
        row = await self._database.one(self._book.setting, name=PROJECT)
        found = None if row is None else row["setting"]
        if found != project:
            raise MarkerMismatch(found=found or "-", wanted=project or "-")
