"""The commands for pauses, switches, circuit breakers and limits: ``batuta pause``, ``resume``, ``switch``, ``circuits
[reset | open | probe NAME]`` and ``limits``.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.table import Table

from batuta.cli.context import CliContext, JsonFlag, cli_context, current_user, wait_for
from batuta.dispatch.job import Job
from batuta.dispatch.plan import PAUSE_ALL, pause_of_category, pause_of_job, rules_of
from batuta.engine.batuta import Batuta
from batuta.guard.base import Hold
from batuta.guard.breaker import Circuit
from batuta.guard.switches import Switch, SwitchRule, judge_switch
from batuta.kernel.spans import read_span
from batuta.kernel.suggestions import unknown
from batuta.kernel.values import dataclass
from batuta.queue.item import pause_of_queue

Because = Annotated[str, typer.Option("--reason", help="the reason, kept in the record")]
Span = Annotated[
    str | None,
    typer.Option(
        "--for", help="duration such as 30m, 2h or 1d, after which the switch returns to its default position"
    ),
]


@dataclass(frozen=True, slots=True)
class SwitchChange:
    switch: Switch
    before: Switch | None  # the earlier setting, if the switch was already in the requested position
    switches: Mapping[str, Switch]  # all switches after the change


@dataclass(frozen=True, slots=True)
class RemainingHolds:
    """The switches that still hold jobs back after an operator has released another switch."""

    rules: Collection[SwitchRule]
    every_job: bool  # whether every job of the released switch is still held


def pause(
    context: typer.Context, word: str, reason: Because = "-", span: Span = None, as_json: JsonFlag = False
) -> None:
    ctx = cli_context(context)
    rule = ctx.work().find_pause(word, ctx.texts().category)
    _change_switch(ctx, rule.key, rule.hold_when, reason, span, as_json, "cli.pause.done", word)


def resume(context: typer.Context, word: str, reason: Because = "-", as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    rule = ctx.work().find_pause(word, ctx.texts().category)
    change = wait_for(_set_switch(ctx, rule.key, not rule.hold_when, reason, None))
    left = find_remaining_holds(list(ctx.work().registry), rule.key, change.switches, ctx.work().clock.now())
    document = {**_describe_change(ctx, change), "still_held_by": [each.key for each in left.rules]}
    ctx.show(document, as_json, lambda: _print_remaining(ctx, word, change, left))


def show(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    stored = ctx.ask(lambda work: work.switches.all())
    rules = {rule.key: rule for rule in ctx.work().extension.switches.values()}
    keys = sorted({*rules, *stored})
    listed = [_describe(key, stored.get(key), rules.get(key), ctx) for key in keys]
    ctx.show({"switches": listed}, as_json, lambda: ctx.out.print(_table(ctx, listed)))


def on(context: typer.Context, key: str, reason: Because = "-", span: Span = None, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    _change_switch(ctx, switch_key(ctx.work(), key), True, reason, span, as_json, "cli.switch.set_on", key)


def off(context: typer.Context, key: str, reason: Because = "-", span: Span = None, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    _change_switch(ctx, switch_key(ctx.work(), key), False, reason, span, as_json, "cli.switch.set_off", key)


def switch_key(work: Batuta, word: str) -> str:
    """Return the key of a switch. The operator may type either the key or the application's own name for the switch."""
    known = work.extension.switches
    keys = {rule.key for rule in known.values()} | {PAUSE_ALL}
    keys |= {pause_of_category(name) for name in work.registry.categories} | {
        pause_of_job(job.name) for job in work.registry
    }
    keys |= {pause_of_queue(name) for name in work.queues}
    if word in known:
        return known[word].key
    if word not in keys:
        near = [*known, *sorted(keys - {PAUSE_ALL})] or [PAUSE_ALL]
        raise unknown("switch", word, near)
    return word


def find_remaining_holds(
    jobs: Collection[Job], key: str, switches: Mapping[str, Switch], now: datetime
) -> RemainingHolds:
    """Return the switches that still hold jobs back after an operator changed the switch ``key``. Only jobs that depend
    on ``key`` are considered.
    """

    def holds(rule: SwitchRule) -> bool:
        return isinstance(judge_switch(rule, switches.get(rule.key), now), Hold)

    concerned = [rules for rules in map(rules_of, jobs) if any(rule.key == key for rule in rules)]
    found = {rule.key: rule for rules in concerned for rule in rules if holds(rule)}
    every_job = all(any(map(holds, rules)) for rules in concerned)
    return RemainingHolds(list(found.values()), every_job)


def _change_switch(
    ctx: CliContext, key: str, on: bool, reason: str, span: str | None, as_json: bool, text_key: str, word: str
) -> None:
    change = wait_for(_set_switch(ctx, key, on, reason, span))
    ctx.show(_describe_change(ctx, change), as_json, lambda: _print_change(ctx, change, text_key, word))


async def _set_switch(ctx: CliContext, key: str, on: bool, reason: str, span: str | None) -> SwitchChange:
    work = ctx.work()
    length = None if span is None else parse_span(span)
    async with work:
        now = work.clock.now()
        until = None if length is None else now + length
        before = await work.switches.all()
        switch = await work.switches.set(key, on, by=current_user(), reason=reason, now=now, until=until)
    old = before.get(key)
    was_set = old is not None and _is_in_force(old, now) and old.on is on
    return SwitchChange(switch, old if was_set else None, {**before, key: switch})


def _describe_change(ctx: CliContext, change: SwitchChange) -> dict[str, Any]:
    switch, before = change.switch, change.before
    return {
        "key": switch.key,
        "on": switch.on,
        "reason": switch.reason,
        "until": ctx.iso(switch.until),
        "by": switch.set_by,
        "before": None
        if before is None
        else {"reason": before.reason, "until": ctx.iso(before.until), "by": before.set_by},
    }


def _print_change(ctx: CliContext, change: SwitchChange, text_key: str, word: str) -> None:
    texts, switch = ctx.texts(), change.switch
    if switch.until is None:
        ctx.say(texts(text_key, word=word, switch=switch.key))
    else:
        ctx.say(texts(f"{text_key}_until", word=word, switch=switch.key, until=ctx.local(switch.until)))
    if change.before is not None:
        ctx.say(texts("cli.switch.before", standing=_describe_switch(ctx, change.before)))


def _print_remaining(ctx: CliContext, word: str, change: SwitchChange, left: RemainingHolds) -> None:
    texts, key = ctx.texts(), change.switch.key
    if not left.rules:
        ctx.say(texts("cli.resume.done", word=word, switch=key))
        return
    now = ctx.work().clock.now()
    holds = "; ".join(_holding(ctx, rule, change.switches.get(rule.key), now) for rule in left.rules)
    ctx.say(texts("cli.resume.held" if left.every_job else "cli.resume.partly", word=word, switch=key, holds=holds))


def _holding(ctx: CliContext, rule: SwitchRule, switch: Switch | None, now: datetime) -> str:
    if switch is not None and _is_in_force(switch, now):
        return _describe_switch(ctx, switch)
    texts = ctx.texts()
    position, rest = texts("cli.switch.on" if rule.default else "cli.switch.off"), texts("cli.switch.default")
    return texts("cli.switch.unset", switch=rule.key, position=position, default=rest)


def _describe_switch(ctx: CliContext, switch: Switch) -> str:
    texts = ctx.texts()
    position = {True: "cli.switch.on", False: "cli.switch.off", None: "cli.switch.unreadable"}[switch.on]
    end = None if switch.until is None else ctx.local(switch.until)
    return texts(
        "cli.switch.standing",
        switch=switch.key,
        position=texts(position),
        by=switch.set_by,
        at=ctx.local(switch.set_at),
        until=texts("cli.switch.endless") if end is None else texts("cli.switch.until", time=end),
        reason=switch.reason,
    )


def _is_in_force(switch: Switch, now: datetime) -> bool:
    return switch.until is None or now < switch.until


def parse_span(span: str) -> timedelta:
    length = read_span(span)
    if length is None:
        raise typer.BadParameter("cli.form_span", param_hint="--for")
    return length


def _describe(key: str, switch: Switch | None, rule: SwitchRule | None, ctx: CliContext) -> dict[str, Any]:
    if switch is None or not _is_in_force(switch, ctx.work().clock.now()):
        rest = {"on": rule.default if rule else False, "is_set": False}
        return {"key": key, **rest, "reason": None, "by": None, "at": None, "until": None}
    return {
        "key": key,
        "on": switch.on,
        "is_set": True,
        "reason": switch.reason,
        "by": switch.set_by,
        "at": ctx.iso(switch.set_at),
        "until": ctx.iso(switch.until),
    }


def _table(ctx: CliContext, listed: list[dict[str, Any]]) -> Table:
    texts = ctx.texts()
    columns = ("key", "position", "by", "at", "until", "reason")
    table = ctx.table("cli.switch.column_", columns)
    for each in listed:
        position = texts("cli.switch.on" if each["on"] else "cli.switch.off")
        rest = "" if each["is_set"] else texts("cli.switch.default")
        table.add_row(
            each["key"],
            f"{position}{rest}",
            each["by"] or "",
            ctx.moment(each["at"]),
            ctx.moment(each["until"]),
            each["reason"] or "",
        )
    return table


def circuits(context: typer.Context, as_json: JsonFlag = False) -> None:
    if context.invoked_subcommand is not None:
        return
    ctx = cli_context(context)
    found = [_describe_circuit(ctx, circuit) for circuit in ctx.ask(lambda work: work.circuits.look())]
    ctx.show({"circuits": found}, as_json, lambda: _print_circuits(ctx, found))


def reset(
    context: typer.Context,
    name: str,
    reason: Annotated[str, typer.Option("--reason")] = "",
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    ctx.work().circuits.rule_of(name)
    circuit = ctx.ask(lambda work: work.circuits.reset(name, by=current_user(), reason=reason))
    document = _describe_circuit(ctx, circuit)
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.circuits.done", circuit=name)))


def open_circuit(
    context: typer.Context,
    name: str,
    span: Annotated[str | None, typer.Option("--for")] = None,
    reason: Annotated[str, typer.Option("--reason")] = "",
    as_json: JsonFlag = False,
) -> None:
    lasts = None if span is None else parse_span(span)
    _set_circuit(
        cli_context(context),
        name,
        "open",
        lambda work: work.circuits.open(name, lasts=lasts, by=current_user(), reason=reason),
        {"reason": reason, "for": span},
        as_json,
    )


def probe_circuit(
    context: typer.Context,
    name: str,
    reason: Annotated[str, typer.Option("--reason")] = "",
    as_json: JsonFlag = False,
) -> None:
    _set_circuit(
        cli_context(context), name, "probe", lambda work: work.circuits.probe(name), {"reason": reason}, as_json
    )


def _set_circuit(
    ctx: CliContext,
    name: str,
    change: str,
    act: Callable[[Batuta], Awaitable[Circuit]],
    facts: dict[str, str | None],
    as_json: bool,
) -> None:
    """Record a change to a circuit breaker in the audit log, make the change, and print the result."""
    ctx.work().circuits.rule_of(name)

    async def note_and_act(work: Batuta) -> Circuit:
        await work.access.note(
            actor=current_user(),
            action=f"circuit.{change}",
            subject=name,
            **{fact: value for fact, value in facts.items() if value},
        )
        return await act(work)

    document = _describe_circuit(ctx, ctx.ask(note_and_act))
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()(f"cli.circuits.{change}_done", circuit=name)))


def limits(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found = _describe_limits(ctx)
    ctx.show({"limits": found}, as_json, lambda: _print_limits(ctx, found))


def _describe_limits(ctx: CliContext) -> list[dict[str, Any]]:
    declared = list(ctx.work().limits.values())
    used = ctx.ask(lambda work: work.rates.count_used([limit for limit in declared if not limit.each]))
    return [
        {
            "limit": limit.name,
            "most": limit.most,
            "seconds": limit.per.total_seconds(),
            "each": limit.each,
            "used": used.get(limit.name),
        }
        for limit in declared
    ]


def _describe_circuit(ctx: CliContext, circuit: Circuit) -> dict[str, Any]:
    return {
        "circuit": circuit.name,
        "state": circuit.state.value,
        "failures": circuit.failures,
        "reset_seconds": circuit.reset.total_seconds(),
        "next_try": ctx.iso(circuit.tries_at or circuit.wait_until),
        "last_failure": ctx.iso(circuit.last_failure),
        "last_success": ctx.iso(circuit.last_success),
        "last_error": circuit.last_error,
    }


def _print_circuits(ctx: CliContext, found: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not found:
        ctx.say(texts("cli.circuits.none"))
        return
    columns = ("circuit", "state", "failures", "last_error", "last_failure", "last_success", "next_try")
    table = ctx.table("cli.circuits.column_", columns)
    for each in found:
        table.add_row(
            each["circuit"],
            texts(f"circuit.{each['state']}"),
            str(each["failures"]),
            each["last_error"] or "",
            *(ctx.moment(each[column]) for column in columns[4:]),
        )
    ctx.out.print(table)


def _print_limits(ctx: CliContext, found: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not found:
        ctx.say(texts("cli.limits.none"))
        return
    columns = ("limit", "used", "most", "window")
    table = ctx.table("cli.limits.column_", columns)
    for each in found:
        used = texts("cli.limits.each") if each["each"] else str(each["used"])
        table.add_row(each["limit"], used, str(each["most"]), texts.span(timedelta(seconds=each["seconds"])))
    ctx.out.print(table)
