"""``batuta circuits [reset NAME]`` and ``batuta limits``."""

from datetime import timedelta
from typing import Any

import typer

from batuta.cli.context import CliContext, JsonFlag, cli_context, current_user
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
    found = [_describe(ctx, circuit) for circuit in ctx.ask(lambda work: work.circuits.look())]
    ctx.show({"circuits": found}, as_json, lambda: _tell_circuits(ctx, found))


def reset(context: typer.Context, name: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    ctx.work().circuits.rule_of(name)
    circuit = ctx.ask(lambda work: work.circuits.reset(name, by=current_user()))
    document = _describe(ctx, circuit)
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.circuits.done", circuit=name)))


def limits(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    found = _describe_limits(ctx)
    ctx.show({"limits": found}, as_json, lambda: _tell_limits(ctx, found))


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


def _describe(ctx: CliContext, circuit: Circuit) -> dict[str, Any]:
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


def _tell_circuits(ctx: CliContext, found: list[dict[str, Any]]) -> None:
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


def _tell_limits(ctx: CliContext, found: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not found:
        ctx.say(texts("cli.limits.none"))
        return
    columns = ("limit", "used", "most", "window")
    table = ctx.table("cli.limits.column_", columns)
    for each in found:
        used = texts("cli.limits.each") if each["each"] else str(each["used"])
        table.add_row(each["limit"], used, str(each["most"]), exact(timedelta(seconds=each["seconds"])))
    ctx.out.print(table)
