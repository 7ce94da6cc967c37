"""``batuta circuits [reset NAME]`` and ``batuta limits``."""

from datetime import datetime, timedelta
from typing import Any

import typer
from rich.table import Table

from batuta.cli.context import CliContext, JsonFlag, cli_context, current_user, wait_for
from batuta.guard.breaker import Circuit
from batuta.kernel.clock import exact
from batuta.texts import Texts


def add_to(cli: typer.Typer, texts: Texts) -> None:
    group = typer.Typer(help=texts("cli.circuits.help"), invoke_without_command=True)
    group.callback()(circuits)
    group.command("reset", help=texts("cli.circuits.reset_help"))(reset)
    cli.add_typer(group, name="circuits")
    cli.command("limits", help=texts("cli.limits.help"))(limits)


def circuits(context: typer.Context, as_json: JsonFlag = False) -> None:
    if context.invoked_subcommand is not None:
        return
    ctx = cli_context(context)
    found = wait_for(_read_circuits(ctx))
    ctx.show({"circuits": found}, as_json, lambda: _tell_circuits(ctx, found))


def reset(context: typer.Context, name: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    ctx.work().circuits.rule_of(name)
    circuit = wait_for(_reset(ctx, name))
    document = _describe(ctx, circuit)
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.circuits.done", circuit=name)))


def limits(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found = wait_for(_used(ctx))
    ctx.show({"limits": found}, as_json, lambda: _tell_limits(ctx, found))


async def _read_circuits(ctx: CliContext) -> list[dict[str, Any]]:
    async with ctx.work() as work:
        return [_describe(ctx, circuit) for circuit in await work.circuits.look()]


async def _reset(ctx: CliContext, name: str) -> Circuit:
    async with ctx.work() as work:
        return await work.circuits.reset(name, by=current_user())


async def _used(ctx: CliContext) -> list[dict[str, Any]]:
    async with ctx.work() as work:
        declared = list(work.limits.values())
        used = await work.rates.used([limit for limit in declared if not limit.each])
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


def _describe(ctx: CliContext, circuit: Circuit) -> dict[str, Any]:
    return {
        "circuit": circuit.name,
        "state": circuit.state.value,
        "failures": circuit.failures,
        "reset_seconds": circuit.reset.total_seconds(),
        "next_try": _format_instant(ctx, circuit.tries_at or circuit.wait_until),
        "last_failure": _format_instant(ctx, circuit.last_failure),
        "last_success": _format_instant(ctx, circuit.last_success),
        "last_error": circuit.last_error,
    }


def _format_instant(ctx: CliContext, instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(ctx.work().zone).isoformat(timespec="seconds")


def _tell_circuits(ctx: CliContext, found: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not found:
        ctx.say(texts("cli.circuits.none"))
        return
    columns = ("circuit", "state", "failures", "last_error", "last_failure", "last_success", "next_try")
    table = Table(*(texts(f"cli.circuits.column_{column}") for column in columns), box=None, pad_edge=False)
    for each in found:
        table.add_row(
            each["circuit"],
            texts(f"circuit.{each['state']}"),
            str(each["failures"]),
            each["last_error"] or "",
            *(ctx.moment(each[column]) for column in columns[4:]),
        )
    ctx.out.print(table)


def _tell_limits(ctx: CliContext, found: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not found:
        ctx.say(texts("cli.limits.none"))
        return
    columns = ("limit", "used", "most", "window")
    table = Table(*(texts(f"cli.limits.column_{column}") for column in columns), box=None, pad_edge=False)
    for each in found:
        used = texts("cli.limits.each") if each["each"] else str(each["used"])
        table.add_row(each["limit"], used, str(each["most"]), exact(timedelta(seconds=each["seconds"])))
    ctx.out.print(table)
