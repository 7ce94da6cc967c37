"""The ``batuta workers`` command, which lists the running processes with the state of their loops, and restarts
processes.
"""

from collections.abc import Container, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from batuta.cli.context import CliContext, JsonFlag, cli_context, current_user, wait_for
from batuta.health.jobs import LOOKED_AT, TimetableState, state_of
from batuta.health.workers import FORGOTTEN_AFTER, Beat, LoopSeen, Signs
from batuta.kernel.clock import brief
from batuta.kernel.identity import has_ended, short
from batuta.kernel.suggestions import unknown
from batuta.processes.heartbeat import ProcessStatus
from batuta.processes.requests import RequestKind
from batuta.processes.restarts import Restart
from batuta.runlog.log import Timetable
from batuta.texts import Texts

MOST_RESTARTS = 50
MEGABYTE = 1024 * 1024
STACK_WAIT, STACK_LOOKS = 0.5, 20  # seconds between two checks for a stack, and number of checks

AllFlag = Annotated[
    bool, typer.Option("--all", help="Include processes that ended normally, and dead processes that were replaced.")
]
StacksFlag = Annotated[bool, typer.Option("--stacks", help="Show the stack of each restarted loop or process.")]


def workers(
    context: typer.Context, everyone: AllFlag = False, stacks: StacksFlag = False, as_json: JsonFlag = False
) -> None:
    if context.invoked_subcommand is not None:
        return
    ctx = cli_context(context)
    signs, restarts, timetables = wait_for(_read_workers(ctx))
    # Processes whose exit was recorded, or whose end the kernel of this host confirms. They are not shown as alive, even
    # if their last heartbeat is recent.
    ended = {each.worker_id for each in restarts if each.loop is None}
    ended |= {beat.worker_id for beat in signs.beats if not beat.is_offline and has_ended(beat.worker_id)}
    shown = [beat for beat in signs.beats if everyone or _lives(beat, signs, ended) or _is_missing(beat, signs)]
    processes = [
        _process(ctx, beat, signs, is_dead=not beat.is_offline and not _lives(beat, signs, ended))
        for beat in sorted(shown, key=lambda beat: (beat.role, beat.started_at))
    ]
    versions = [_timetable(ctx, each, signs.now) for each in timetables]
    document = {
        "workers": processes,
        "timetables": [each for each in versions if everyone or each["state"] != TimetableState.GONE],
        "restarts": [_restart(ctx, each) for each in restarts],
    }
    ctx.show(document, as_json, lambda: _print(ctx, document, stacks))


async def _read_workers(ctx: CliContext) -> tuple[Signs, Sequence[Restart], Sequence[Timetable]]:
    async with ctx.work() as work:
        signs = await work.beats.read_signs(within=FORGOTTEN_AFTER, now=work.now())
        restarts = await work.observability.restarts.since(signs.now - FORGOTTEN_AFTER, limit=MOST_RESTARTS)
        return signs, restarts, await work.observability.timetables.newest(LOOKED_AT)


def drain(context: typer.Context, process: str) -> None:
    _ask(cli_context(context), process, RequestKind.DRAIN)


def restart(context: typer.Context, process: str) -> None:
    _ask(cli_context(context), process, RequestKind.RESTART)


def stack(context: typer.Context, process: str) -> None:
    _ask(cli_context(context), process, RequestKind.STACK)


def _ask(ctx: CliContext, process: str, kind: RequestKind) -> None:
    answered = wait_for(_ask_process(ctx, process, kind))
    if answered is not None:
        ctx.say(answered)
        return
    ctx.say(ctx.texts()(f"cli.workers.asked_{kind}", process=process))


async def _ask_process(ctx: CliContext, process: str, kind: RequestKind) -> str | None:
    """Send a request to a process. For a stack dump, wait briefly and return the stacks, or None if they do not arrive
    in time. Return None for every other request.
    """
    async with ctx.work() as work:
        signs = await work.beats.read_signs(within=FORGOTTEN_AFTER, now=work.now())
        living = {beat.place: beat for beat in signs.beats if beat.lives(signs.now)}
        if process not in living:
            raise unknown("process", process, living)
        asked_at = work.clock.now()
        id = await work.process_requests.ask(living[process], kind, by=current_user(), now=asked_at)
        for _ in range(STACK_LOOKS if kind is RequestKind.STACK else 0):
            await work.clock.sleep(STACK_WAIT)
            found = {each.id: each.stack for each in await work.process_requests.since(asked_at)}
            if found.get(id) is not None:
                return found[id]
        return None


def _lives(beat: Beat, signs: Signs, ended: Container[str]) -> bool:
    return beat.lives(signs.now) and beat.worker_id not in ended


def _is_missing(beat: Beat, signs: Signs) -> bool:
    """Return whether a process ended without a regular shutdown and was not replaced: no other process of its role has
    started since its last heartbeat.
    """
    return not beat.is_offline and not any(
        other.role == beat.role and other.started_at > beat.beat_at for other in signs.beats
    )


def _process(ctx: CliContext, beat: Beat, signs: Signs, *, is_dead: bool) -> dict[str, Any]:
    return {
        "worker": beat.role,
        "worker_id": beat.worker_id,
        "status": "dead" if is_dead else beat.status,
        "host": beat.host,
        "pid": beat.pid,
        "version": beat.version,
        "started": ctx.iso(beat.started_at),
        "last_heartbeat_ago": _seconds(signs.now - beat.beat_at),
        "rss_mb": None if beat.rss_bytes is None else round(beat.rss_bytes / MEGABYTE),
        "cpu_seconds": beat.cpu_seconds,
        "queues": dict(sorted(beat.served.items())),
        "loops": {name: _loop(seen, signs.now, is_dead) for name, seen in sorted(beat.loops.items())},
    }


def _loop(seen: LoopSeen, now: datetime, is_dead: bool) -> dict[str, Any]:
    return {
        "alive": seen.alive and not is_dead,
        "last_ping_ago": None if seen.pinged_at is None else _seconds(now - seen.pinged_at),
        "last_progress_ago": None if seen.worked_at is None else _seconds(now - seen.worked_at),
        "failures": seen.failures,
        "restarts": seen.restarts,
    }


def _timetable(ctx: CliContext, timetable: Timetable, now: datetime) -> dict[str, Any]:
    return {
        "timetable": timetable.fingerprint,
        "state": state_of(timetable, now).value,
        "release": timetable.release,
        "jobs": timetable.jobs,
        "first_seen": ctx.iso(timetable.first_seen_at),
        "last_renewed_ago": _seconds(now - timetable.renewed_at),
        "renewed_by": short(timetable.renewed_by),
    }


def _restart(ctx: CliContext, restart: Restart) -> dict[str, Any]:
    return {
        "at": ctx.iso(restart.at),
        "worker": restart.worker_name,
        "worker_id": restart.worker_id,
        "loop": restart.loop,
        "reason": restart.reason,
        "detail": restart.detail,
        "exit_code": restart.exit_code,
        "restarts_in_window": restart.restarts_in_window,
        "stack": restart.stack,
    }


def _print(ctx: CliContext, document: dict[str, list[dict[str, Any]]], stacks: bool) -> None:
    texts = ctx.texts()
    if not document["workers"]:
        ctx.say(texts("cli.workers.none"))
    else:
        _table(ctx, ("worker", "status", "pid", "last_heartbeat_ago", "rss_mb", "cpu_seconds"), document["workers"])
        loops = [
            {"worker": process["worker"], "pid": process["pid"], "loop": name, **loop}
            for process in document["workers"]
            if process["status"] != ProcessStatus.OFFLINE
            for name, loop in process["loops"].items()
        ]
        ctx.say("")
        _table(ctx, ("worker", "pid", "loop", "alive", "last_progress_ago", "failures", "restarts"), loops)
    if document["timetables"]:
        ctx.say("")
        _table(ctx, ("timetable", "state", "release", "jobs", "first_seen", "last_renewed_ago"), document["timetables"])
    ctx.say("")
    if not document["restarts"]:
        ctx.say(texts("cli.workers.no_restarts"))
        return
    _table(ctx, ("at", "worker", "loop", "reason", "detail", "exit_code"), document["restarts"])
    for each in document["restarts"] if stacks else ():
        ctx.say(
            f"\n{ctx.moment(each['at'])} {each['worker']} {each['loop'] or ''}\n{each['stack'] or texts('cli.workers.no_stack')}"
        )


_WORDS = {"state": "cli.workers.timetable_", "status": "cli.workers.status_", "reason": "cli.workers.reason_"}


def _table(ctx: CliContext, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    texts = ctx.texts()
    table = ctx.table("cli.workers.column_", columns)
    for each in rows:
        table.add_row(*(_cell(ctx, texts, column, each[column]) for column in columns))
    ctx.out.print(table)


def _cell(ctx: CliContext, texts: Texts, column: str, value: object) -> str:
    if isinstance(value, bool):
        return texts("cli.workers.yes" if value else "cli.workers.no")
    if value is None:
        return ""
    if column in ("at", "first_seen"):
        return ctx.moment(str(value))
    if column in _WORDS:
        return texts(f"{_WORDS[column]}{value}")
    if column == "detail":
        return texts.reason(value) if isinstance(value, str) else str(value)
    if column.endswith("_ago"):
        return brief(timedelta(seconds=float(str(value))))
    return texts.number(value, 2) if isinstance(value, float) else str(value)


def _seconds(span: timedelta) -> float:
    return round(max(0.0, span.total_seconds()), 1)
