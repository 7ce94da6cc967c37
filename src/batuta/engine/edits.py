"""Lets operators enqueue a copy of a stored task with changed arguments."""

from collections.abc import Mapping
from typing import Any

from batuta.engine.batuta import Batuta
from batuta.kernel.errors import ActionRefused
from batuta.kernel.reasons import define
from batuta.kernel.storage.json import Json, loads
from batuta.kernel.suggestions import unknown
from batuta.stores.sql.tables.audit import AuditLog
from batuta.tasks.registry import TASKS
from batuta.tasks.task import AnyTask, Call, EnqueueOptions, arguments_of

NO_PARAMETER = define("no_parameter", "write each parameter on its own line, as in name=value")
NOT_EDITABLE = define("not_editable", "this item runs, or its task is unknown to this program: choose another item")


async def find_editable(work: Batuta, queue: str, id: str) -> tuple[AnyTask, dict[str, Any]]:
    """Return the task and the stored row of an item that an operator may edit: a task of this release that is not
    running.
    """
    found = work.queues[queue]
    row = await found.item(id) if found.table.name == TASKS.name else None
    task = None if row is None else work.task_registry.find(row["name"])
    if row is None or task is None or not row["args"] or row["lease_until"] is not None:
        raise ActionRefused(why=NOT_EDITABLE())
    return task, dict(row)


async def enqueue_edited(work: Batuta, queue: str, id: str, changes: Mapping[str, Json], *, by: str) -> str:
    """Enqueue a copy of a stored task with changed arguments, write an audit entry, and return the id of the copy."""
    task, row = await find_editable(work, queue, id)
    options = EnqueueOptions(key=row["unique_key"], priority=row["priority"], tags=tuple(row["tags"] or ()))
    async with work.database.transaction() as transaction:
        try:
            merged = merge(task, arguments_of(row["args"], work.encryption), changes)
            (new,) = await work.tasks.put(task, [merged], options, within=transaction)
        except (TypeError, ValueError) as unfit:
            raise ActionRefused(why=str(unfit)) from None
        # Only the names of the arguments, because their values may be personal data.
        facts: dict[str, Json] = {"queue": queue, "new": str(new), "changed": sorted(changes)}
        audit = AuditLog(work.database.dialect, work.ids)
        await audit.note(transaction, actor=by, action="item.edit", subject=id, after=facts, now=work.clock.now())
    return str(new)


def read_changes(text: str) -> dict[str, Json]:
    """Parse changed arguments from lines of the form ``name=value``. A value that is valid JSON is parsed as JSON; any
    other value is text.
    """
    changes: dict[str, Json] = {}
    for line in filter(str.strip, text.splitlines()):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not (name and equals):
            raise ActionRefused(why=NO_PARAMETER())
        try:
            changes[name] = loads(value)
        except ValueError:
            changes[name] = value
    return changes


def merge(task: AnyTask, stored: Call, changes: Mapping[str, Json]) -> Call:
    """Return a task's stored call with the changed arguments. Raise TypeError if the arguments do not fit the
    function.
    """
    bound = task.signature.bind(*stored.arguments, **stored.named)
    for name, value in changes.items():
        if name not in task.signature.parameters:
            raise unknown("parameter", name, task.signature.parameters)
        bound.arguments[name] = value
    return Call(*task.codec.decode(bound.args, bound.kwargs))
