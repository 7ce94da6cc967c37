"""The status of a task, as its users see it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from batuta.kernel.json import Json

TaskState: TypeAlias = Literal["queued", "in_progress", "complete", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    job_id: str
    name: str
    status: TaskState
    enqueue_time: datetime
    start_time: datetime | None
    finish_time: datetime | None
    attempts: int
    result: Json
    error: str | None
    progress: Json
