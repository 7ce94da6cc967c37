"""The engine's own queue."""

from dataclasses import replace

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
# Where other processes run the tasks: the death of one that only waits for an outcome says nothing about the task.
RELAYED_TASKS = replace(TASKS, crash_cap=1_000_000)
