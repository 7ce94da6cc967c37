"""Actions on items: one item, a selection, or every item that a filter matches."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from batuta.access import includes
from batuta.engine.batuta import Batuta
from batuta.engine.screens import Action, ActionCall, ActionResult, Field, FieldKind, Preview, Tone
from batuta.kernel.errors import ActionRefused
from batuta.kernel.json import Json, loads
from batuta.kernel.reasons import define
from batuta.kernel.spans import read_span
from batuta.kernel.suggestions import unknown
from batuta.queue.inspection import STATE_OF, Change, ItemFilter
from batuta.stores.sql.audit import AuditLog
from batuta.stores.sql.history import is_uuid
from batuta.stores.sql.queue.inspection import CANCELLED_BY, MOST_GROUPED, TASKS, QueueInspection
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.task import AnyTask, Call, EnqueueOptions, arguments_of
from batuta.web.problems import Problem

NO_PARAMETER = define("no_parameter", "write each parameter on its own line, as in name=value")
NOT_EDITABLE = define("not_editable", "this item runs, or its task is unknown to this program: choose another item")
NOTHING_CHOSEN = define("nothing_chosen", "no item is selected: select items on the page of the queue")
OPERATION_ENDED = define("operation_ended", "this operation has ended: open the page of the queue again")
# Maps each part of a filter to the name of its field in the address.
FIELDS_OF = {"name": "nome", "error": "erro", "key": "chave", "tag": "etiqueta"}
_QUEUE = Field(name="fila", kind=FieldKind.HIDDEN, required=True)
_ID = Field(name="id", kind=FieldKind.HIDDEN)
_TONES = {Change.RETRY: Tone.RUNNING, Change.DISCARD: Tone.FAILING, Change.CANCEL: Tone.FAILING}


class Items:
    def __init__(self, work: Batuta) -> None:
        self._work = work

    def actions(self) -> Iterator[Action]:
        for change in Change:
            yield self._of_some(change)
            yield self._of_all(change)
        yield Action(
            name="bulk.stop",
            label="panel.act.bulk_stop",
            preview=self._preview_stop,
            perform=self._stop,
            fields=[Field(name="operacao", kind=FieldKind.HIDDEN, required=True)],
            tone=Tone.FAILING,
            audits=True,
        )

        yield Action(
            name="item.edit",
            label="panel.act.item_edit",
            preview=self._preview_edit,
            perform=self._edit,
            fields=[
                _QUEUE,
                Field(name="id", kind=FieldKind.HIDDEN, required=True),
                Field(
                    name="mudancas",
                    label="panel.field.changes",
                    kind=FieldKind.LINES,
                    hint="panel.field.changes_hint",
                    required=True,
                    is_private=True,
                    longest=20_000,
                ),
            ],
            audits=True,
        )

    async def _preview_edit(self, call: ActionCall) -> Preview:
        task, _ = await self._task_of(call)
        facts = {"task": task.name, "parameters": ", ".join(task.signature.parameters) or "–"}
        return Preview(says="panel.will.item_edit", facts=facts)

    async def _edit(self, call: ActionCall) -> ActionResult:
        task, row = await self._task_of(call)
        changes = read_changes(call.values["mudancas"])
        work = self._work
        options = EnqueueOptions(key=row["unique_key"], priority=row["priority"], tags=tuple(row["tags"] or ()))
        async with work.database.transaction() as transaction:
            try:
                merged = merge(task, arguments_of(row["args"], work.encryption), changes)
                (id,) = await work.tasks.put(task, [merged], options, within=transaction)
            except (TypeError, ValueError) as unfit:
                raise ActionRefused(why=str(unfit)) from None
            # Only the names of the arguments, because their values may be personal data.
            facts: dict[str, Json] = {"queue": call.values["fila"], "new": id, "changed": sorted(changes)}
            audit = AuditLog(work.database.dialect, work.ids)
            subject = call.values["id"]
            await audit.note(
                transaction, actor=call.caller, action="item.edit", subject=subject, after=facts, now=call.now
            )
        return ActionResult(
            says="panel.done.item_edit", facts={"id": id}, tone=Tone.RUNNING, to=f"/filas/{task.queue}/{id}"
        )

    async def _task_of(self, call: ActionCall) -> tuple[AnyTask, dict[str, Any]]:
        """Return the task and the row of an item that is not running."""
        queue, (id,) = self._queue(call, Change.RETRY), self._ids(call)
        row = await queue.item(id) if queue.table.name == TASKS else None
        task = None if row is None else self._work.task_registry.find(row["name"])
        if row is None or task is None or not row["args"] or row["lease_until"] is not None:
            raise ActionRefused(why=NOT_EDITABLE())
        return task, dict(row)

    def _of_some(self, change: Change) -> Action:
        async def preview(call: ActionCall) -> Preview:
            ids = self._ids(call)
            facts = {"queue": self._queue(call, change).name, "count": len(ids)}
            return Preview(says=f"panel.will.{change}", facts=facts, items=len(ids))

        async def perform(call: ActionCall) -> ActionResult:
            queue, ids = self._queue(call, change), self._ids(call)
            changed = sum([await self._apply(change, queue, id, call.caller) for id in ids])
            tone = Tone.OK if changed == len(ids) else Tone.DEGRADED
            facts = {"count": changed, "all": len(ids)}
            # The page of a discarded item no longer exists, so continue at the queue's page.
            to = f"/filas/{queue.name}" if change is Change.DISCARD and call.values["id"] else None
            return ActionResult(says=f"panel.done.{change}", facts=facts, tone=tone, to=to)

        return Action(
            name=f"item.{change}",
            label=f"panel.act.{change}",
            preview=preview,
            perform=perform,
            fields=[_QUEUE, _ID],
            command=None if change is Change.CANCEL else _command(change),
            tone=_TONES[change],
            audits=change is not Change.CANCEL,
        )

    def _of_all(self, change: Change) -> Action:
        async def preview(call: ActionCall) -> Preview:
            queue, asked = self._queue(call, change), _filter(change, call)
            count = await self._count(queue, asked)
            facts = {"queue": queue.name, "count": count}
            return Preview(says=f"panel.will.{change}", facts=facts, items=count, title=f"panel.act.{change}_count")

        async def perform(call: ActionCall) -> ActionResult:
            queue, asked = self._queue(call, change), _filter(change, call)
            count = await self._count(queue, asked)
            await self._work.bulk.add(queue.name, change, asked, count, by=call.caller)
            return ActionResult(
                says="panel.done.bulk", facts={"count": count}, tone=Tone.RUNNING, to=f"/filas/{queue.name}"
            )

        filters = [Field(name=name, kind=FieldKind.HIDDEN) for name in ("nome", "erro", "chave", "etiqueta", "idade")]
        return Action(
            name=f"bulk.{change}",
            label=f"panel.act.bulk_{change}",
            preview=preview,
            perform=perform,
            fields=[_QUEUE, *filters],
            tone=_TONES[change],
            audits=True,
        )

    async def _count(self, queue: SqlQueue, asked: ItemFilter) -> int:
        """Return the number of items that a filter matches. For an error group, only the newest dead items are counted."""
        inspection = QueueInspection(queue, self._work.database, self._work.database.dialect)
        if asked.is_narrow:
            return await inspection.count(asked)
        depth = await queue.depth()
        if asked.state is not STATE_OF[Change.RETRY]:
            return depth.due + depth.later
        if asked.error is None and asked.name is None:
            return depth.dead
        groups = await inspection.groups()
        wanted = (each for each in groups if asked.error in (None, each.signature) and asked.name in (None, each.name))
        return min(sum(each.items for each in wanted), MOST_GROUPED)

    async def _apply(self, change: Change, queue: SqlQueue, id: str, by: str) -> bool:
        match change:
            case Change.RETRY:
                return await queue.revive(id, by=by)
            case Change.DISCARD:
                return await queue.discard(id, by=by)
            case Change.CANCEL:
                return await queue.cancel(id, CANCELLED_BY(by=by))

    async def _preview_stop(self, call: ActionCall) -> Preview:
        id = call.values["operacao"]
        operation = await self._work.bulk.find(id) if is_uuid(id) else None
        if operation is None or not operation.is_running:
            raise ActionRefused(why=OPERATION_ENDED())
        facts = {"changed": operation.changed, "count": operation.expected}
        return Preview(says="panel.will.bulk_stop", facts=facts)

    async def _stop(self, call: ActionCall) -> ActionResult:
        if not await self._work.bulk.stop(call.values["operacao"], by=call.caller):
            raise ActionRefused(why=OPERATION_ENDED())
        return ActionResult(says="panel.done.bulk_stopped", tone=Tone.HELD)

    def _queue(self, call: ActionCall, change: Change) -> SqlQueue:
        """Return the queue that a call of an action names. Raises a 403 problem if the caller may not repeat items of
        this queue.
        """
        name = call.values["fila"]
        if name not in self._work.queues:
            raise unknown("queue", name, self._work.queues)
        scope = self._work.scope_of_queue(name)
        if change is Change.RETRY and not includes(call.scopes, scope):
            raise Problem(403, "forbidden", scope=scope.value)
        return self._work.queues[name]

    def _ids(self, call: ActionCall) -> Sequence[str]:
        ids = call.chosen or [call.values["id"]]
        if not all(map(is_uuid, ids)):
            raise ActionRefused(why=NOTHING_CHOSEN())
        return ids


def read_changes(text: str) -> dict[str, Json]:
    """Parse the changed arguments from lines of the form name=value. A value that is valid JSON is parsed as JSON; any
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
    """Return the stored call of a task with the changed arguments. Raises TypeError if they do not fit the function."""
    bound = task.signature.bind(*stored.arguments, **stored.named)
    for name, value in changes.items():
        if name not in task.signature.parameters:
            raise unknown("parameter", name, task.signature.parameters)
        bound.arguments[name] = value
    return Call(*task.codec.decode(bound.args, bound.kwargs))


def _filter(change: Change, call: ActionCall) -> ItemFilter:
    given = {name: call.values[field] or None for name, field in FIELDS_OF.items()}
    age = read_span(call.values["idade"])
    return ItemFilter(state=STATE_OF[change], before=None if age is None else call.now - age, **given)


def _command(change: Change):  # type: ignore[no-untyped-def]
    def command(values: Mapping[str, str]) -> list[str]:
        return ["queue", change.value, values["fila"], values["id"]] if values["id"] else []

    return command
