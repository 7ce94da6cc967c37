"""Actions on processes: drain, restart, and dump stacks. Each action stores a request that the process itself carries
out.
"""

from collections.abc import Iterator

from batuta.engine.batuta import Batuta
from batuta.engine.screens import Action, ActionCall, ActionResult, Field, FieldKind, Preview, Tone
from batuta.health.workers import FORGOTTEN_AFTER, Beat
from batuta.kernel.suggestions import unknown
from batuta.processes.requests import RequestKind

_TONES = {RequestKind.DRAIN: Tone.FAILING, RequestKind.RESTART: Tone.HELD, RequestKind.STACK: Tone.RUNNING}


class ProcessActions:
    def __init__(self, work: Batuta) -> None:
        self._work = work

    def actions(self) -> Iterator[Action]:
        for kind in RequestKind:
            yield self._asking(kind)

    def _asking(self, kind: RequestKind) -> Action:
        async def preview(call: ActionCall) -> Preview:
            beat = await self._find(call)
            return Preview(says=f"panel.will.process_{kind}", facts=_facts(beat))

        async def perform(call: ActionCall) -> ActionResult:
            beat = await self._find(call)
            await self._work.process_requests.ask(beat, kind, by=call.caller, now=call.now)
            return ActionResult(says=f"panel.done.process_{kind}", facts=_facts(beat), tone=Tone.RUNNING)

        return Action(
            name=f"process.{kind}",
            label=f"panel.act.process_{kind}",
            preview=preview,
            perform=perform,
            fields=[Field(name="processo", kind=FieldKind.HIDDEN, required=True)],
            command=lambda values: ["workers", kind.value, values["processo"]],
            tone=_TONES[kind],
            audits=True,
        )

    async def _find(self, call: ActionCall) -> Beat:
        signs = await self._work.beats.read_signs(within=FORGOTTEN_AFTER, now=self._work.now())
        living = {each.place: each for each in signs.beats if each.lives(signs.now)}
        if call.values["processo"] not in living:
            raise unknown("process", call.values["processo"], living)
        return living[call.values["processo"]]


def _facts(beat: Beat) -> dict[str, object]:
    return {"role": beat.role, "place": beat.place}
