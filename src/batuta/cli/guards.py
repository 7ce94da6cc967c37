"""``batuta circuits [reset NAME]`` and ``batuta limits``."""

from datetime import datetime, timedelta
from typing import Any

import typer
from rich.table import Table

from batuta.cli.context import Desk, JsonFlag, desk_of, wait_for, who
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
    desk = desk_of(context)
    found = wait_for(_looked(desk))
    desk.show({"circuits": found}, as_json, lambda: _tell_circuits(desk, found))


def reset(context: typer.Context, name: str, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    desk.work().circuits.rule_of(name)
    circuit = wait_for(_reset(desk, name))
    document = _described(desk, circuit)
    desk.show(document, as_json, lambda: desk.say(desk.texts()("cli.circuits.told", circuit=name)))


def limits(context: typer.Context, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    found = wait_for(_used(desk))
    desk.show({"limits": found}, as_json, lambda: _tell_limits(desk, found))


async def _looked(desk: Desk) -> list[dict[str, Any]]:
    async with desk.work() as work:
        return [_described(desk, circuit) for circuit in await work.circuits.look()]


async def _reset(desk: Desk, name: str) -> Circuit:
    async with desk.work() as work:
        return await work.circuits.reset(name, by=who())


async def _used(desk: Desk) -> list[dict[str, Any]]:
    async with desk.work() as work:
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


def _described(desk: Desk, circuit: Circuit) -> dict[str, Any]:
    return {
        "circuit": circuit.name,
        "state": circuit.state.value,
        "failures": circuit.failures,
        "reset_seconds": circuit.reset.total_seconds(),
        "next_try": _written(desk, circuit.tries_at or circuit.wait_until),
        "last_failure": _written(desk, circuit.last_failure),
        "last_success": _written(desk, circuit.last_success),
        "last_error": circuit.last_error,
    }


def _written(desk: Desk, instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(desk.work().zone).isoformat(timespec="seconds")


def _tell_circuits(desk: Desk, found: list[dict[str, Any]]) -> None:
    texts = desk.texts()
    if not found:
        desk.say(texts("cli.circuits.none"))
        return
    columns = ("circuit", "state", "failures", "last_error", "last_failure", "last_success", "next_try")
    table = Table(*(texts(f"cli.circuits.column_{column}") for column in columns), box=None, pad_edge=False)
    for each in found:
        table.add_row(
            each["circuit"],
            texts(f"circuit.{each['state']}"),
            str(each["failures"]),
            each["last_error"] or "",
            *(desk.moment(each[column]) for column in columns[4:]),
        )
    desk.out.print(table)


def _tell_limits(desk: Desk, found: list[dict[str, Any]]) -> None:
    texts = desk.texts()
    if not found:
        desk.say(texts("cli.limits.none"))
        return
    columns = ("limit", "used", "most", "window")
    table = Table(*(texts(f"cli.limits.column_{column}") for column in columns), box=None, pad_edge=False)
    for each in found:
        used = texts("cli.limits.each") if each["each"] else str(each["used"])
        table.add_row(each["limit"], used, str(each["most"]), exact(timedelta(seconds=each["seconds"])))
    desk.out.print(table)
