"""Actions on items: one item, a selection, or every item that a filter matches."""

from collections.abc import Iterator, Mapping, Sequence

from batuta.engine.batuta import Batuta
from batuta.engine.screens import Action, ActionCall, ActionResult, Field, FieldKind, Preview, Tone
from batuta.kernel.errors import ActionRefused
from batuta.kernel.reasons import define
from batuta.kernel.suggestions import unknown
from batuta.queue.inspection import STATE_OF, Change, ItemFilter
from batuta.stores.sql.history import is_uuid
from batuta.stores.sql.queue.inspection import CANCELLED_BY, MOST_GROUPED, QueueInspection
from batuta.stores.sql.queue.store import SqlQueue

NOTHING_CHOSEN = define("nothing_chosen", "no item is selected: select items on the page of the queue")
OPERATION_ENDED = define("operation_ended", "this operation has ended: open the page of the queue again")
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

    def _of_some(self, change: Change) -> Action:
        async def preview(call: ActionCall) -> Preview:
            ids = self._ids(call)
            facts = {"queue": self._queue(call).name, "count": len(ids)}
            return Preview(says=f"panel.will.{change}", facts=facts, items=len(ids))

        async def perform(call: ActionCall) -> ActionResult:
            queue, ids = self._queue(call), self._ids(call)
            changed = sum([await self._apply(change, queue, id, call.caller) for id in ids])
            tone = Tone.OK if changed == len(ids) else Tone.DEGRADED
            facts = {"count": changed, "all": len(ids)}
            return ActionResult(says=f"panel.done.{change}", facts=facts, tone=tone)

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
            queue, asked = self._queue(call), _filter(change, call)
            count = await self._count(queue, asked)
            return Preview(says=f"panel.will.{change}", facts={"queue": queue.name, "count": count}, items=count)

        async def perform(call: ActionCall) -> ActionResult:
            queue, asked = self._queue(call), _filter(change, call)
            count = await self._count(queue, asked)
            await self._work.bulk.add(queue.name, change, asked, count, by=call.caller)
            return ActionResult(
                says="panel.done.bulk", facts={"count": count}, tone=Tone.RUNNING, to=f"/filas/{queue.name}"
            )

        filters = [Field(name=name, kind=FieldKind.HIDDEN) for name in ("nome", "erro")]
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
        """Count the items that a filter matches, among the newest ones if the filter names an error group."""
        depth = await queue.depth()
        if asked.state is not STATE_OF[Change.RETRY]:
            return depth.due + depth.later
        if asked.error is None and asked.name is None:
            return depth.dead
        groups = await QueueInspection(queue, self._work.database, self._work.database.dialect).groups()
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

    def _queue(self, call: ActionCall) -> SqlQueue:
        name = call.values["fila"]
        if name not in self._work.queues:
            raise unknown("queue", name, self._work.queues)
        return self._work.queues[name]

    def _ids(self, call: ActionCall) -> Sequence[str]:
        ids = call.chosen or [call.values["id"]]
        if not all(map(is_uuid, ids)):
            raise ActionRefused(why=NOTHING_CHOSEN())
        return ids


def _filter(change: Change, call: ActionCall) -> ItemFilter:
    return ItemFilter(state=STATE_OF[change], name=call.values["nome"] or None, error=call.values["erro"] or None)


def _command(change: Change):  # type: ignore[no-untyped-def]
    def command(values: Mapping[str, str]) -> list[str]:
        return ["queue", change.value, values["fila"], values["id"]] if values["id"] else []

    return command
