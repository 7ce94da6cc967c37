"""The engine's own queue."""

from batuta.queue.table import QueueTable

TASKS = QueueTable(
    name="tasks",
    ready=("queued",),
    running="in_progress",
    done="complete",
    dead="failed",
    priority="priority",
    key="unique_key",
    queue="queue",
    result="result",
    expires_at="expires_at",
    started_at="started_at",
    cancel_requested="cancel_requested",
    fixed_times=False,
    given=("name", "args", "created_at"),
)
