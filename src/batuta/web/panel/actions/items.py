"""Actions on items: on one item, on a selection, or on every item that a filter matches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from batuta.access import includes
from batuta.engine.batuta import Batuta
from batuta.engine.edits import enqueue_edited, find_editable, read_changes
from batuta.engine.screens import Action, ActionCall, ActionResult, Field, FieldKind, Preview, Tone
from batuta.kernel.errors import ActionRefused
from batuta.kernel.reasons import define
from batuta.kernel.spans import read_span
from batuta.kernel.suggestions import unknown
from batuta.queue.inspection import STATE_OF, BulkChange, ItemFilter
from batuta.queue.outcome import CANCELLED_BY
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.history import is_uuid
from batuta.tasks.task import AnyTask
from batuta.web.panel.frame import CHOSEN
from batuta.web.problems import Problem

NOTHING_CHOSEN = define("nothing_chosen", "no item is selected: select items on the queue's page")
OPERATION_ENDED = define("operation_ended", "this operation has ended: open the queue's page again")
# Maps each criterion of a filter to the name of its field in the address.
FIELDS_OF = {"name": "nome", "error": "erro", "key": "chave", "tag": "etiqueta"}
# Maps each filter field of a bulk action to the option of its command.
_OPTIONS = {"nome": "--name", "erro": "--error", "chave": "--key", "etiqueta": "--tag", "idade": "--older-than"}
_QUEUE = Field(name="fila", kind=FieldKind.HIDDEN, required=True)
_ID = Field(name="id", kind=FieldKind.HIDDEN)
_TONES = {BulkChange.RETRY: Tone.RUNNING, BulkChange.DISCARD: Tone.FAILING, BulkChange.CANCEL: Tone.FAILING}


class ItemActions:
    def __init__(self, work: Batuta) -> None:
        self._work = work

    def actions(self) -> Iterator[Action]:
        for change in BulkChange:
            yield self._of_some(change)
            yield self._of_all(change)
        yield Action(
            name="bulk.stop",
            label="panel.act.bulk_stop",
            preview=self._preview_stop,
            perform=self._stop,
            fields=[Field(name="operacao", kind=FieldKind.HIDDEN, required=True)],
            command=lambda values: ["bulk", "stop", values["operacao"]],
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
            command=lambda values: ["queue", "edit", values["fila"], values["id"], "--arg", values["mudancas"]],
            audits=True,
        )

    async def _preview_edit(self, call: ActionCall) -> Preview:
        task, _ = await self._editable(call)
        facts = {"task": task.name, "parameters": ", ".join(task.signature.parameters) or "–"}
        return Preview(says="panel.will.item_edit", facts=facts)

    async def _edit(self, call: ActionCall) -> ActionResult:
        task, _ = await self._editable(call)
        changes = read_changes(call.values["mudancas"])
        id = await enqueue_edited(self._work, call.values["fila"], call.values["id"], changes, by=call.caller)
        return ActionResult(
            says="panel.done.item_edit", facts={"id": id}, tone=Tone.RUNNING, to=f"/filas/{task.queue}/{id}"
        )

    async def _editable(self, call: ActionCall) -> tuple[AnyTask, dict[str, Any]]:
        queue, (id,) = self._queue(call, BulkChange.RETRY), self._ids(call)
        return await find_editable(self._work, queue.name, id)

    def _of_some(self, change: BulkChange) -> Action:
        async def preview(call: ActionCall) -> Preview:
            ids = self._ids(call)
            facts = {"queue": self._queue(call, change).name, "count": len(ids)}
            return Preview(says=f"panel.will.{change}", facts=facts, items=len(ids))

        async def perform(call: ActionCall) -> ActionResult:
            queue, ids = self._queue(call, change), self._ids(call)
            changed = sum([await self._apply(change, queue, id, call.caller) for id in ids])
            tone = Tone.OK if changed == len(ids) else Tone.DEGRADED
            facts = {"count": changed, "all": len(ids)}
            # The page of a discarded item no longer exists, so redirect to the queue's page.
            to = f"/filas/{queue.name}" if change is BulkChange.DISCARD and call.values["id"] else None
            return ActionResult(says=f"panel.done.{change}", facts=facts, tone=tone, to=to)

        return Action(
            name=f"item.{change}",
            label=f"panel.act.{change}",
            preview=preview,
            perform=perform,
            fields=[_QUEUE, _ID],
            command=_command(change),
            tone=_TONES[change],
            audits=change is not BulkChange.CANCEL,
        )

    def _of_all(self, change: BulkChange) -> Action:
        async def preview(call: ActionCall) -> Preview:
            queue, asked = self._queue(call, change), _filter(change, call)
            count = await self._work.bulk.count(queue.name, asked)
            facts = {"queue": queue.name, "count": count}
            return Preview(says=f"panel.will.{change}", facts=facts, items=count, title=f"panel.act.{change}_count")

        async def perform(call: ActionCall) -> ActionResult:
            queue, asked = self._queue(call, change), _filter(change, call)
            count = await self._work.bulk.count(queue.name, asked)
            await self._work.bulk.add(queue.name, change, asked, count, by=call.caller)
            return ActionResult(
                says="panel.done.bulk", facts={"count": count}, tone=Tone.RUNNING, to=f"/filas/{queue.name}"
            )

        filters = [Field(name=name, kind=FieldKind.HIDDEN) for name in _OPTIONS]
        return Action(
            name=f"bulk.{change}",
            label=f"panel.act.bulk_{change}",
            preview=preview,
            perform=perform,
            fields=[_QUEUE, *filters],
            command=_bulk_command(change),
            tone=_TONES[change],
            audits=True,
        )

    async def _apply(self, change: BulkChange, queue: SqlQueue, id: str, by: str) -> bool:
        match change:
            case BulkChange.RETRY:
                return await queue.revive(id, by=by)
            case BulkChange.DISCARD:
                return await queue.discard(id, by=by)
            case BulkChange.CANCEL:
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

    def _queue(self, call: ActionCall, change: BulkChange) -> SqlQueue:
        """Return the queue that an action's form names. For a retry, raise a 403 problem if the caller may not repeat
        items in this queue.
        """
        name = call.values["fila"]
        if name not in self._work.queues:
            raise unknown("queue", name, self._work.queues)
        scope = self._work.scope_of_queue(name)
        if change is BulkChange.RETRY and not includes(call.scopes, scope):
            raise Problem(403, "forbidden", scope=scope.value)
        return self._work.queues[name]

    def _ids(self, call: ActionCall) -> Sequence[str]:
        ids = call.chosen or [call.values["id"]]
        if not all(map(is_uuid, ids)):
            raise ActionRefused(why=NOTHING_CHOSEN())
        return ids


def _filter(change: BulkChange, call: ActionCall) -> ItemFilter:
    given = {name: call.values[field] or None for name, field in FIELDS_OF.items()}
    age = read_span(call.values["idade"])
    return ItemFilter(state=STATE_OF[change], before=None if age is None else call.now - age, **given)


def _command(change: BulkChange) -> Callable[[Mapping[str, str]], Sequence[str]]:
    def command(values: Mapping[str, str]) -> list[str]:
        ids = values[CHOSEN].split() or [values["id"]]
        return ["queue", change.value, values["fila"], *ids]

    return command


def _bulk_command(change: BulkChange) -> Callable[[Mapping[str, str]], Sequence[str]]:
    def command(values: Mapping[str, str]) -> list[str]:
        options = [part for field, option in _OPTIONS.items() if values[field] for part in (option, values[field])]
        return ["bulk", change.value, values["fila"], *options]

    return command
