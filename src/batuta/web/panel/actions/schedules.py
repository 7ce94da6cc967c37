"""The page for the schedules in the database, and the actions that create, change, pause, backfill and delete them."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from batuta.dispatch.job import Overlap
from batuta.dispatch.task_schedules import TaskSchedule
from batuta.engine.batuta import Batuta
from batuta.engine.declarations.schedules import state_of as state_of_schedule
from batuta.engine.edits import read_changes
from batuta.engine.screens import Action, ActionCall, ActionResult, Field, FieldKind, Preview, Tone
from batuta.kernel.errors import ActionRefused
from batuta.kernel.reasons import define
from batuta.kernel.spans import read_span
from batuta.kernel.storage.json import Json
from batuta.schedule.cron import first_instant
from batuta.web.context import state_of
from batuta.web.panel.frame import show, words_of

TONES = {"active": "ok", "paused": "held", "over": "unfinished"}
ONCE = "@at "
NO_TIME = define(
    "schedule_no_time", "write the schedule as cron, as in 0 6 * * *, or as an interval, as in 30s, 5m or 2h"
)
NO_INSTANT = define("no_instant", "write '{given}' as day and time, as in 18/11/2026 13:00")
WRONG_RANGE = define("wrong_range", "the range ends before it begins: exchange the two instants")
_NAME = Field(name="programacao", kind=FieldKind.HIDDEN, required=True)
_WHEN = Field(name="quando", label="panel.field.when", hint="panel.field.when_hint", required=True)
_ZONE = Field(name="fuso", label="panel.zone")
_JITTER = Field(name="atraso", label="panel.field.jitter", kind=FieldKind.SPAN, hint="panel.field.jitter_hint")
_OVERLAP = Field(
    name="sobreposicao",
    label="panel.overlap",
    kind=FieldKind.CHOICE,
    choices={each.value: f"panel.overlap_word.{each.value}" for each in Overlap},
)
_RANGE = tuple(
    Field(name=name, label=f"panel.field.{word}", hint="panel.field.instant_hint", required=True)
    for name, word in (("desde", "since"), ("ate", "until"))
)
_ARGUMENTS = Field(
    name="argumentos",
    label="panel.field.arguments",
    kind=FieldKind.LINES,
    hint="panel.field.changes_hint",
    is_private=True,
    longest=20_000,
)


async def schedules(request: Request) -> HTMLResponse:
    work = state_of(request).work
    rows = [(each, state_of_schedule(each)) for each in await work.schedules.all()]
    values = {"rows": rows, "tones": TONES, "tasks": sorted(each.name for each in work.task_registry)}
    return show(request, "panel/schedules.html.j2", words_of(request), values, live=True)


class ScheduleActions:
    def __init__(self, work: Batuta) -> None:
        self._work = work

    def actions(self) -> Iterator[Action]:
        yield Action(
            name="schedule.create",
            label="panel.act.schedule_create",
            preview=self._preview_create,
            perform=self._create,
            fields=[
                Field(name="nome", label="panel.field.schedule_name", required=True, longest=100),
                Field(name="tarefa", label="panel.field.task", required=True, longest=200),
                _WHEN,
                _ZONE,
                _JITTER,
                _OVERLAP,
                _ARGUMENTS,
            ],
            command=lambda values: _command("create", values["nome"], values, "--task", values["tarefa"]),
            audits=True,
        )
        yield Action(
            name="schedule.edit",
            label="panel.act.schedule_edit",
            preview=self._preview_edit,
            perform=self._edit,
            fields=[_NAME, _WHEN, _ZONE, _JITTER, _OVERLAP, _ARGUMENTS],
            command=lambda values: _command("edit", values["programacao"], values),
            audits=True,
        )
        yield Action(
            name="schedule.backfill",
            label="panel.act.schedule_backfill",
            preview=self._preview_backfill,
            perform=self._backfill,
            fields=[_NAME, *_RANGE],
            command=lambda values: [
                "schedules", "backfill", values["programacao"], "--since", values["desde"], "--until", values["ate"],
            ],
            audits=True,
        )  # fmt: skip
        for word, tone in (("pause", Tone.HELD), ("resume", Tone.OK), ("delete", Tone.FAILING)):
            yield self._changing(word, tone)

    def _changing(self, word: str, tone: Tone) -> Action:
        async def preview(call: ActionCall) -> Preview:
            found = await self._work.schedules.get(call.values["programacao"])
            return Preview(says=f"panel.will.schedule_{word}", facts={"name": found.name, "task": found.task})

        async def perform(call: ActionCall) -> ActionResult:
            name = call.values["programacao"]
            await getattr(self._work.schedules, word)(name, by=call.caller)
            return ActionResult(says=f"panel.done.schedule_{word}", facts={"name": name}, tone=tone)

        return Action(
            name=f"schedule.{word}",
            label=f"panel.act.schedule_{word}",
            preview=preview,
            perform=perform,
            fields=[_NAME],
            command=lambda values: ["schedules", word, values["programacao"]],
            tone=tone,
            audits=True,
        )

    async def _preview_create(self, call: ActionCall) -> Preview:
        tasks = ", ".join(sorted(each.name for each in self._work.task_registry)) or "–"
        return Preview(
            says="panel.will.schedule_create",
            facts={"tasks": tasks},
            values={"fuso": str(self._work.zone), "sobreposicao": Overlap.SKIP},
        )

    async def _create(self, call: ActionCall) -> ActionResult:
        values = call.values
        try:
            made = await self._work.schedules.create(
                values["nome"], task=values["tarefa"], args=_arguments(call), by=call.caller, **_timing(values)
            )
        except TypeError as unfit:  # the arguments do not fit the task
            raise ActionRefused(why=str(unfit)) from None
        return self._result("panel.done.schedule_created", made)

    async def _preview_edit(self, call: ActionCall) -> Preview:
        found = await self._work.schedules.get(call.values["programacao"])
        facts = {"name": found.name, "task": found.task, "arguments": ", ".join(sorted(found.args)) or "–"}
        given = {
            "quando": found.schedule.removeprefix("@every "),
            "fuso": found.timezone,
            "sobreposicao": found.overlap,
        }
        given |= {"atraso": f"{found.jitter.total_seconds():g}s"} if found.jitter else {}
        return Preview(says="panel.will.schedule_edit", facts=facts, values=given)

    async def _edit(self, call: ActionCall) -> ActionResult:
        name = call.values["programacao"]
        given = _arguments(call)
        args = {**(await self._work.schedules.get(name)).args, **given} if given else None
        try:
            made = await self._work.schedules.edit(name, args=args, by=call.caller, **_timing(call.values))
        except TypeError as unfit:
            raise ActionRefused(why=str(unfit)) from None
        return self._result("panel.done.schedule_edited", made)

    async def _preview_backfill(self, call: ActionCall) -> Preview:
        found = await self._work.schedules.get(call.values["programacao"])
        return Preview(says="panel.will.schedule_backfill", facts={"name": found.name, "task": found.task})

    async def _backfill(self, call: ActionCall) -> ActionResult:
        name, zone = call.values["programacao"], self._work.zone
        since, until = (first_instant(_instant(call.values[each.name]), zone) for each in _RANGE)
        if until < since:
            raise ActionRefused(why=WRONG_RANGE())
        count = await self._work.schedules.backfill(name, since, until, by=call.caller)
        return ActionResult(says="panel.done.schedule_backfill", facts={"name": name, "count": count})

    def _result(self, says: str, made: TaskSchedule) -> ActionResult:
        following = "–" if made.next_at is None else f"{made.next_at.astimezone(self._work.zone):%d/%m %H:%M}"
        return ActionResult(says=says, facts={"name": made.name, "next": following}, to="/programacoes")


def _timing(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the timing as arguments for ``work.schedules``: an interval, a single instant, or a cron expression."""
    when = values["quando"]
    zone: dict[str, Any] = {"timezone": values["fuso"]} if values["fuso"] else {}
    zone |= {"overlap": values["sobreposicao"]} if values["sobreposicao"] else {}
    zone |= {"jitter": read_span(values["atraso"])} if values["atraso"] else {}
    if (span := read_span(when)) is not None:
        return {"every": span, **zone}
    if when.startswith(ONCE):
        try:
            return {"at": datetime.fromisoformat(when.removeprefix(ONCE)), **zone}
        except ValueError:
            raise ActionRefused(why=NO_TIME()) from None
    if len(when.split()) not in (5, 6) and not when.startswith("@"):
        raise ActionRefused(why=NO_TIME())
    return {"cron": when, **zone}


def _instant(text: str) -> datetime:
    """Parse an instant written without a time zone: ``25/12/2026 14:30`` or ``2026-12-25 14:30``."""
    for form in ("%d/%m/%Y %H:%M", "%Y-%m-%d %H:%M"):
        with suppress(ValueError):
            return datetime.strptime(text, form)  # noqa: DTZ007 - ``first_instant`` adds the time zone
    raise ActionRefused(why=NO_INSTANT(given=text))


def _arguments(call: ActionCall) -> dict[str, Json]:
    return read_changes(call.values["argumentos"])


def _command(word: str, name: str, values: Mapping[str, str], *options: str) -> list[str]:
    span = read_span(values["quando"])
    when = ["--cron", values["quando"]] if span is None else ["--every", f"{span.total_seconds():g}"]
    given = {"--timezone": values["fuso"], "--jitter": values["atraso"], "--overlap": values["sobreposicao"]}
    if (jitter := read_span(values["atraso"])) is not None:
        given["--jitter"] = f"{jitter.total_seconds():g}"
    more = [part for option, value in given.items() if value for part in (option, value)]
    return ["schedules", word, name, *options, *(when if values["quando"] else []), *more]
