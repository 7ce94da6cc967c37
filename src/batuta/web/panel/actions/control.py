"""The engine's own dashboard actions: run a job, pause and resume work, set switches, and open or close circuit
breakers.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from batuta.dispatch.job import Job
from batuta.dispatch.plan import PAUSE_ALL, hold, pause_of_category, pause_of_job, rules_of
from batuta.engine.batuta import Batuta
from batuta.engine.edits import NO_PARAMETER
from batuta.engine.screens import Action, ActionCall, ActionResult, Field, FieldKind, Preview, Tone
from batuta.guard.base import Hold
from batuta.guard.breaker import CircuitState
from batuta.guard.switches import Switch, SwitchRule, judge_switch
from batuta.kernel.errors import ActionRefused, JobRefused
from batuta.kernel.reasons import Reason, define
from batuta.kernel.spans import read_span
from batuta.kernel.suggestions import unknown
from batuta.queue.item import pause_of_queue
from batuta.runlog.reasons import LIFT_OR_INSIST
from batuta.web.panel.actions.batches import BatchActions
from batuta.web.panel.actions.items import ItemActions
from batuta.web.panel.actions.processes import ProcessActions
from batuta.web.panel.actions.schedules import ScheduleActions
from batuta.web.panel.actions.tokens import TokenActions

INSIST_IN_FORM = define(
    "held_next_form", "release the pause or switch that holds it back, or choose “{field}” if you are sure"
)
NOT_OPEN = define("circuit_not_open", "circuit {circuit} is not open: it needs no probe")
RAN = ("success", "error", "timeout")  # statuses of a run that took place
INSIST = "sim"  # value of the field with which an operator runs a held job
COMPARED = 20  # newest rows of a job that are searched for its last run
RUN_WAITS = timedelta(seconds=3)  # how long the page waits for the run; a shorter run is reported immediately
REASON = Field(name="motivo", label="panel.field.reason", required=True, longest=200)
SPAN = Field(name="prazo", label="panel.field.span", kind=FieldKind.SPAN, hint="panel.field.span_hint")


def actions_of(work: Batuta) -> list[Action]:
    parts = (Jobs(work), Pauses(work), Breakers(work), ItemActions(work), BatchActions(work))
    others = (ProcessActions(work), ScheduleActions(work), TokenActions(work))
    return [action for part in (*parts, *others) for action in part.actions()]


def _make_hidden_field(name: str) -> Field:
    return Field(name=name, kind=FieldKind.HIDDEN, required=True)


class HeldJob(NamedTuple):
    why: str
    until: datetime | None  # end of the pause, None if it has no end


class Jobs:
    """The action that runs a job now. A run that takes longer than RUN_WAITS continues in the background and is listed
    among the executions.
    """

    def __init__(self, work: Batuta) -> None:
        self._work = work
        self._running: set[asyncio.Task[object]] = set()

    def actions(self) -> Iterator[Action]:
        yield Action(
            name="job.run",
            label="panel.act.run",
            preview=self._preview,
            perform=self._run,
            fields=[
                _make_hidden_field("tarefa"),
                Field(
                    name="parametros", label="panel.field.params", kind=FieldKind.LINES, hint="panel.field.params_hint"
                ),
                Field(
                    name="suspensa",
                    label="panel.field.even_if_held",
                    kind=FieldKind.CHOICE,
                    choices={"": "panel.no", INSIST: "panel.yes"},
                ),
            ],
            command=_run_command,
        )

    async def _preview(self, call: ActionCall) -> Preview:
        job = await self._find(call)
        last = await self._work.reports.recent(job=job.name, before=call.now + timedelta(days=1), limit=COMPARED)
        took = next((row.duration_ms for row in last if row.status in RAN and row.duration_ms is not None), None)
        if (held := await self._hold(job, call.now)) is not None:
            until = "" if held.until is None else call.texts("panel.will.held_until", until=held.until)
            facts = {"job": job.name, "why": held.why, "until": until}
            return Preview(says="panel.will.run_held", facts=facts, values={"suspensa": INSIST})
        if took is None:
            return Preview(says="panel.will.run_first", facts={"job": job.name})
        return Preview(says="panel.will.run", facts={"job": job.name, "took": call.texts.took(took)})

    async def _run(self, call: ActionCall) -> ActionResult:
        job, params = await self._find(call), _params(call.values["parametros"])
        running = asyncio.create_task(
            self._work.scheduler().run_by_hand(job, params, even_if_held=call.values["suspensa"] == INSIST)
        )
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        await asyncio.wait([running], timeout=RUN_WAITS.total_seconds())
        if not running.done():
            return ActionResult(says="panel.done.run_going", facts={"job": job.name}, tone=Tone.RUNNING)
        try:
            execution = running.result()
        except JobRefused as refused:
            step = refused.facts["next_step"]
            if not isinstance(step, Reason) or step.code != LIFT_OR_INSIST:
                raise
            field = call.texts("panel.field.even_if_held")
            raise JobRefused(job=job.name, why=refused.facts["why"], next_step=INSIST_IN_FORM(field=field)) from None
        recorded = await self._work.reports.execution(execution.id)
        has_failed = recorded is not None and recorded.status not in ("success", "running")
        says, held = "panel.done.run_failed" if has_failed else "panel.done.run", await self._hold(job, call.now)
        return ActionResult(
            says=says if held is None else f"{says}_held",
            facts={"job": job.name} if held is None else {"job": job.name, "why": held.why},
            tone=Tone.FAILING if has_failed else Tone.OK if held is None else Tone.HELD,
            # The page of a held job offers to resume it.
            to=f"/execucoes/{execution.id}" if held is None else f"/tarefas/{job.name}",
        )

    async def _hold(self, job: Job, now: datetime) -> HeldJob | None:
        """Return why the job is currently held back and until when. Return None if the job may run."""
        switches, controls = await self._work.switches.all(), await self._work.controls.read()
        why = hold(job, switches, self._work.registry.windows_now(controls), now)
        if why is None:
            return None
        # The reason names the first switch that holds the job.
        found = (switches.get(rule.key) for rule in rules_of(job) if _holds(rule, switches, now))
        switch = next(found, None)
        until = None if switch is None or switch.until is None or switch.until <= now else switch.until
        return HeldJob(why, None if until is None else until.astimezone(self._work.zone))

    async def _find(self, call: ActionCall) -> Job:
        return self._work.registry.find(call.values["tarefa"], await self._work.controls.read())


def _holds(rule: SwitchRule, switches: Mapping[str, Switch], now: datetime) -> bool:
    return isinstance(judge_switch(rule, switches.get(rule.key), now), Hold)


def _params(text: str) -> dict[str, str]:
    pairs = [line.partition("=") for line in text.splitlines() if line.strip()]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise ActionRefused(why=NO_PARAMETER())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _run_command(values: Mapping[str, str]) -> list[str]:
    params = [part for line in values["parametros"].splitlines() if line.strip() for part in ("--param", line.strip())]
    return ["run", values["tarefa"], *params, *(["--even-if-held"] if values["suspensa"] else [])]


class Pauses:
    """Actions that pause and resume a job, a category, a queue or everything, and that set the application's
    switches.
    """

    def __init__(self, work: Batuta) -> None:
        self._work = work

    def actions(self) -> Iterator[Action]:
        yield Action(
            name="pause",
            label="panel.act.pause",
            preview=self._preview_pause,
            perform=self._pause,
            fields=[_make_hidden_field("alvo"), SPAN, REASON],
            command=lambda values: ["pause", _word(values), *_span_option(values), "--reason", values["motivo"]],
            tone=Tone.HELD,
            audits=True,
        )
        yield Action(
            name="resume",
            label="panel.act.resume",
            preview=self._preview_resume,
            perform=self._resume,
            fields=[_make_hidden_field("alvo"), REASON],
            command=lambda values: ["resume", _word(values), "--reason", values["motivo"]],
            tone=Tone.OK,
            audits=True,
        )
        for word, is_on in (("on", True), ("off", False)):
            yield Action(
                name=f"switch.{word}",
                label=f"panel.act.switch_{word}",
                preview=self._preview_switch(is_on),
                perform=self._switch_to(is_on),
                fields=[_make_hidden_field("chave"), replace(SPAN, hint="panel.field.switch_hint"), REASON],
                command=lambda values, word=word: [  # type: ignore[misc]
                    *("switch", word, values["chave"]),
                    *_span_option(values),
                    *("--reason", values["motivo"]),
                ],
                tone=Tone.HELD,
                audits=True,
            )

    async def _preview_pause(self, call: ActionCall) -> Preview:
        self._key(call.values["alvo"])
        jobs, waiting = await self._count_affected(call.values["alvo"])
        facts = {"target": _target(call), "jobs": jobs, "waiting": call.texts.number(waiting)}
        return Preview(says="panel.will.pause", facts=facts, title=_title("pause", call))

    async def _pause(self, call: ActionCall) -> ActionResult:
        key, until = self._key(call.values["alvo"]), end_of(call)
        await self._set(key, True, call, until)
        says = "panel.done.paused" if until is None else "panel.done.paused_until"
        facts = {"target": _target(call), **({} if until is None else {"until": until.astimezone(self._work.zone)})}
        return ActionResult(says=says, facts=facts, tone=Tone.HELD)

    async def _preview_resume(self, call: ActionCall) -> Preview:
        self._key(call.values["alvo"])
        jobs, waiting = await self._count_affected(call.values["alvo"])
        facts = {"target": _target(call), "jobs": jobs, "waiting": call.texts.number(waiting)}
        return Preview(says="panel.will.resume", facts=facts, title=_title("resume", call))

    async def _resume(self, call: ActionCall) -> ActionResult:
        await self._set(self._key(call.values["alvo"]), False, call, None)
        return ActionResult(says="panel.done.resumed", facts={"target": _target(call)})

    def _preview_switch(self, is_on: bool):  # type: ignore[no-untyped-def]
        async def preview(call: ActionCall) -> Preview:
            key, name = self._switch(call), call.values["chave"]
            active = self._work.registry.timetable(await self._work.controls.read()).values()
            jobs = sorted(job.name for job in active if any(rule.key == key for rule in job.holds))
            holds = self._work.extension.switches[name].hold_when is is_on
            about = call.texts.get(f"switch.{name}", "")
            facts = {"switch": name, "jobs": ", ".join(jobs) or "–", "about": about and f"{about} "}
            return Preview(says=f"panel.will.switch_{'holds' if holds else 'releases'}", facts=facts)

        return preview

    def _switch_to(self, is_on: bool):  # type: ignore[no-untyped-def]
        async def perform(call: ActionCall) -> ActionResult:
            await self._set(self._switch(call), is_on, call, end_of(call))
            return ActionResult(says="panel.done.switched", facts={"switch": call.values["chave"]})

        return perform

    async def _set(self, key: str, on: bool, call: ActionCall, until: datetime | None) -> None:
        await self._work.switches.set(key, on, by=call.caller, reason=call.values["motivo"], now=call.now, until=until)

    def _switch(self, call: ActionCall) -> str:
        known, word = self._work.extension.switches, call.values["chave"]
        if word not in known:
            raise unknown("switch", word, known)
        return known[word].key

    def _key(self, target: str) -> str:
        kind, _, name = target.partition(":")
        known: dict[str, tuple[list[str], str]] = {
            "all": ([""], PAUSE_ALL),
            "job": ([job.name for job in self._work.registry], pause_of_job(name)),
            "category": (list(self._work.registry.categories), pause_of_category(name)),
            "queue": (list(self._work.queues), pause_of_queue(name)),
        }
        if kind not in known or name not in known[kind][0]:
            raise unknown("job, queue or category", target, [*known["job"][0], *known["queue"][0]])
        return known[kind][1]

    async def _count_affected(self, target: str) -> tuple[int, int]:
        """Return the number of jobs and the number of waiting items that a pause affects."""
        kind, _, name = target.partition(":")
        active = self._work.registry.timetable(await self._work.controls.read()).values()
        jobs = [
            job
            for job in active
            if kind == "all" or (kind == "job" and job.name == name) or (kind == "category" and job.category == name)
        ]
        queues = [
            queue for each, queue in self._work.queues.items() if kind == "all" or (kind, name) == ("queue", each)
        ]
        depths = [await queue.depth() for queue in queues]
        return len({job.name for job in jobs}), sum(depth.due + depth.later for depth in depths)


class Breakers:
    """Actions that close, open or probe a circuit breaker by hand."""

    def __init__(self, work: Batuta) -> None:
        self._work = work

    def actions(self) -> Iterator[Action]:
        yield Action(
            name="circuit.close",
            label="panel.act.close_circuit",
            preview=self._preview,
            perform=self._close,
            fields=[_make_hidden_field("circuito"), REASON],
            command=lambda values: ["circuits", "reset", values["circuito"], "--reason", values["motivo"]],
            tone=Tone.OK,
            audits=True,
        )
        yield Action(
            name="circuit.open",
            label="panel.act.open_circuit",
            preview=self._preview_open,
            perform=self._open,
            fields=[_make_hidden_field("circuito"), replace(SPAN, hint="panel.field.open_hint"), REASON],
            command=lambda values: [
                *("circuits", "open", values["circuito"]),
                *_span_option(values),
                *("--reason", values["motivo"]),
            ],
            tone=Tone.HELD,
        )
        yield Action(
            name="circuit.probe",
            label="panel.act.probe_circuit",
            preview=self._preview_probe,
            perform=self._probe,
            fields=[_make_hidden_field("circuito"), REASON],
            command=lambda values: ["circuits", "probe", values["circuito"], "--reason", values["motivo"]],
        )

    async def _preview(self, call: ActionCall) -> Preview:
        circuit = await self._find(call)
        state = call.texts(f"circuit.{circuit.state.value}")
        return Preview(says="panel.will.close_circuit", facts={"circuit": circuit.name, "state": state})

    async def _close(self, call: ActionCall) -> ActionResult:
        circuit = await self._work.circuits.reset(
            (await self._find(call)).name, by=call.caller, reason=call.values["motivo"]
        )
        return ActionResult(says="panel.done.circuit_closed", facts={"circuit": circuit.name})

    async def _preview_open(self, call: ActionCall) -> Preview:
        circuit = await self._find(call)
        reset = call.texts.span(read_span(call.values["prazo"]) or self._work.circuits.rule_of(circuit.name).reset)
        return Preview(says="panel.will.open_circuit", facts={"circuit": circuit.name, "reset": reset})

    async def _open(self, call: ActionCall) -> ActionResult:
        circuit = await self._find(call)
        await self._work.circuits.open(
            circuit.name, lasts=read_span(call.values["prazo"]), by=call.caller, reason=call.values["motivo"]
        )
        return ActionResult(says="panel.done.circuit_opened", facts={"circuit": circuit.name}, tone=Tone.HELD)

    async def _preview_probe(self, call: ActionCall) -> Preview:
        circuit = await self._find(call)
        if circuit.state is not CircuitState.OPEN:
            raise ActionRefused(why=NOT_OPEN(circuit=circuit.name))
        return Preview(says="panel.will.probe_circuit", facts={"circuit": circuit.name})

    async def _probe(self, call: ActionCall) -> ActionResult:
        circuit = await self._work.circuits.probe((await self._find(call)).name)
        return ActionResult(says="panel.done.circuit_probed", facts={"circuit": circuit.name}, tone=Tone.RUNNING)

    async def _find(self, call: ActionCall):  # type: ignore[no-untyped-def]
        name, known = call.values["circuito"], {each.name: each for each in await self._work.circuits.look()}
        if name not in known:
            raise unknown("circuit", name, known)
        return known[name]


def end_of(call: ActionCall) -> datetime | None:
    """Return the instant at which a temporary setting ends, or None if the operator entered no duration."""
    span = read_span(call.values["prazo"])
    return None if span is None else call.now + span


def _target(call: ActionCall) -> str:
    kind, _, name = call.values["alvo"].partition(":")
    return call.texts("panel.target_all") if kind == "all" else call.texts(f"panel.target_{kind}", name=name)


def _title(action: str, call: ActionCall) -> str:
    """Return the key of the text that is the title of an action's form. The title names the action's target."""
    return f"panel.act.{action}_{'all' if call.values['alvo'] == 'all:' else 'target'}"


def _word(values: Mapping[str, str]) -> str:
    """Return the action's target in the form that the command line accepts."""
    return values["alvo"].removesuffix(":")


def _span_option(values: Mapping[str, str]) -> list[str]:
    return ["--for", values["prazo"]] if values["prazo"] else []
