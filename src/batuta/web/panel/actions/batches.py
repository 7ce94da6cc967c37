"""Actions on batches: cancel a batch, or close a batch whose program died. The queues page lists the newest batches."""

from collections.abc import Iterator

from batuta.engine.batuta import Batuta
from batuta.engine.screens import Action, ActionCall, ActionResult, Field, FieldKind, Preview, Tone
from batuta.kernel.errors import ActionRefused
from batuta.kernel.reasons import define
from batuta.tasks.batch import BatchProgress

SHOWN = 10
BATCH_OVER = define(
    "batch_over",
    "this batch has changed its state, so the action is no longer possible: open the Queues page again",
)
TONES = {
    "open": Tone.HELD,
    "running": Tone.RUNNING,
    "cancelling": Tone.DEGRADED,
    "ended": Tone.OK,
    "cancelled": Tone.DEGRADED,
}
_BATCH = Field(name="lote", kind=FieldKind.HIDDEN, required=True)


class BatchActions:
    def __init__(self, work: Batuta) -> None:
        self._work = work

    def actions(self) -> Iterator[Action]:
        yield Action(
            name="batch.cancel",
            label="panel.act.batch_cancel",
            preview=self._preview_cancel,
            perform=self._cancel,
            fields=[_BATCH, Field(name="motivo", label="panel.field.reason", required=True, longest=200)],
            command=lambda values: ["batches", "cancel", values["lote"], "--reason", values["motivo"]],
            tone=Tone.FAILING,
            audits=True,
        )
        yield Action(
            name="batch.close",
            label="panel.act.batch_close",
            preview=self._preview_close,
            perform=self._close,
            fields=[_BATCH],
            command=lambda values: ["batches", "close", values["lote"]],
            audits=True,
        )

    async def _preview_cancel(self, call: ActionCall) -> Preview:
        batch = await self._find(call)
        left = batch.waiting + batch.running
        return Preview(says="panel.will.batch_cancel", facts={"name": batch.name, "count": left}, items=left)

    async def _preview_close(self, call: ActionCall) -> Preview:
        return Preview(says="panel.will.batch_close", facts={"name": (await self._find(call)).name})

    async def _cancel(self, call: ActionCall) -> ActionResult:
        batch = await self._find(call)
        if not await self._work.batches.handle(batch.id).cancel(call.values["motivo"], by=call.caller):
            raise ActionRefused(why=BATCH_OVER())
        return ActionResult(says="panel.done.batch_cancel", facts={"name": batch.name}, tone=Tone.DEGRADED)

    async def _close(self, call: ActionCall) -> ActionResult:
        batch = await self._find(call)
        if not await self._work.batches.handle(batch.id).close(by=call.caller):
            raise ActionRefused(why=BATCH_OVER())
        return ActionResult(says="panel.done.batch_close", facts={"name": batch.name})

    async def _find(self, call: ActionCall) -> BatchProgress:
        batch = await self._work.batches.get(call.values["lote"])
        return await batch.progress()
