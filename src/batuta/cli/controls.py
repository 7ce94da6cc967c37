"""What people turn at run time: ``batuta pause``, ``batuta resume``, ``batuta switch``."""

import asyncio
import getpass
import re
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.table import Table

from batuta.cli.desk import Desk, JsonFlag, desk_of
from batuta.dispatch.plan import PAUSE_ALL, pause_of_categoria, pause_of_job
from batuta.engine import Batuta
from batuta.guard.switches import Switch, SwitchRule
from batuta.kernel.errors import InvalidName, UnknownWord
from batuta.kernel.nearest import nearest
from batuta.texts import Texts

EVERYTHING = frozenset({"all", "tudo"})
_SPAN = re.compile(r"^(\d+)([smhd])$")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
Reason = Annotated[str, typer.Option("--reason", help="why, for whoever reads it later")]
Span = Annotated[str | None, typer.Option("--for", help="30m, 2h, 1d: then it is as if nobody had turned it")]


def add_to(cli: typer.Typer, texts: Texts) -> None:
    cli.command("pause", help=texts("cli.pause.help"))(pause)
    cli.command("resume", help=texts("cli.resume.help"))(resume)
    group = typer.Typer(help=texts("cli.switch.help"), no_args_is_help=True)
    group.command("list", help=texts("cli.switch.list_help"))(show)
    group.command("on", help=texts("cli.switch.on_help"))(on)
    group.command("off", help=texts("cli.switch.off_help"))(off)
    cli.add_typer(group, name="switch")


def pause(
    context: typer.Context, word: str, reason: Reason = "-", span: Span = None, as_json: JsonFlag = False
) -> None:
    desk = desk_of(context)
    rule = holding(desk.work(), word)
    _turn(desk, rule.key, rule.hold_when, reason, span, as_json, "cli.pause.told", word)


def resume(context: typer.Context, word: str, reason: Reason = "-", as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    rule = holding(desk.work(), word)
    _turn(desk, rule.key, not rule.hold_when, reason, None, as_json, "cli.resume.told", word)


def show(context: typer.Context, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    turned = asyncio.run(_all(desk))
    known = desk.work().extension.switches
    keys = sorted({rule.key for rule in known.values()} | set(turned))
    listed = [_described(key, turned.get(key), _rule(known.values(), key), desk) for key in keys]
    desk.show({"switches": listed}, as_json, lambda: desk.out.print(_table(desk, listed)))


def on(context: typer.Context, key: str, reason: Reason = "-", span: Span = None, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    _turn(desk, switch_key(desk.work(), key), True, reason, span, as_json, "cli.switch.told_on", key)


def off(context: typer.Context, key: str, reason: Reason = "-", span: Span = None, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    _turn(desk, switch_key(desk.work(), key), False, reason, span, as_json, "cli.switch.told_off", key)


def holding(work: Batuta, word: str) -> SwitchRule:
    """What ``word`` names: everything, a category, a job, or a word of the application's own."""
    if word in EVERYTHING:
        return SwitchRule(key=PAUSE_ALL)
    kind, colon, name = word.rpartition(":")
    jobs = {job.name for job in work.book}
    found = {
        "switch": work.extension.switches.get(name),
        "category": SwitchRule(key=pause_of_categoria(name)) if name in work.book.categorias else None,
        "job": SwitchRule(key=pause_of_job(name)) if name in jobs else None,
    }
    rules = {of: rule for of, rule in found.items() if rule is not None and (not colon or of == kind)}
    if len(rules) > 1:
        words = " or ".join(f"{of}:{name}" for of in rules)
        raise InvalidName(name=name, kind="pause", why=f"it names more than one thing: say {words}")
    if not rules:
        known = [*work.book.categorias, *sorted(jobs), *work.extension.switches, "all"]
        raise UnknownWord(kind="job or category", word=word, nearest=nearest(word, known))
    return next(iter(rules.values()))


def switch_key(work: Batuta, word: str) -> str:
    """A switch by its key, or by the application's word for it."""
    known = work.extension.switches
    keys = {rule.key for rule in known.values()} | {PAUSE_ALL}
    keys |= {pause_of_categoria(name) for name in work.book.categorias} | {pause_of_job(job.name) for job in work.book}
    if word in known:
        return known[word].key
    if word not in keys:
        raise UnknownWord(kind="switch", word=word, nearest=nearest(word, [*known, *sorted(keys)]))
    return word


def _turn(desk: Desk, key: str, on: bool, reason: str, span: str | None, as_json: bool, told: str, word: str) -> None:
    switch = asyncio.run(_turned(desk, key, on, reason, span))
    until = switch.until.astimezone(desk.work().zone).isoformat(timespec="seconds") if switch.until else None
    document = {"key": key, "on": on, "reason": reason, "until": until, "by": switch.turned_by}
    desk.show(document, as_json, lambda: desk.say(desk.texts()(told, word=word, switch=key)))


async def _turned(desk: Desk, key: str, on: bool, reason: str, span: str | None) -> Switch:
    work = desk.work()
    until = None if span is None else work.clock.now() + _length(span)
    async with work:
        return await work.switches.turn(key, on, by=getpass.getuser(), reason=reason, now=work.clock.now(), until=until)


async def _all(desk: Desk) -> dict[str, Switch]:
    async with desk.work() as work:
        return await work.switches.all()


def _length(span: str) -> timedelta:
    matched = _SPAN.match(span)
    if matched is None or int(matched[1]) == 0:
        raise typer.BadParameter("30m, 2h, 1d", param_hint="--for")
    return timedelta(**{_UNITS[matched[2]]: int(matched[1])})


def _rule(rules: Any, key: str) -> SwitchRule | None:
    return next((rule for rule in rules if rule.key == key), None)


def _described(key: str, switch: Switch | None, rule: SwitchRule | None, desk: Desk) -> dict[str, Any]:
    now = desk.work().clock.now()
    counts = switch is not None and (switch.until is None or now < switch.until)
    return {
        "key": key,
        "on": switch.on if switch and counts else (rule.at_rest if rule else False),
        "turned": bool(counts),
        "reason": switch.reason if switch and counts else None,
        "by": switch.turned_by if switch and counts else None,
        "at": switch.turned_at.astimezone(desk.work().zone).isoformat(timespec="seconds")
        if switch and counts
        else None,
        "until": switch.until.astimezone(desk.work().zone).isoformat(timespec="seconds")
        if switch and switch.until and counts
        else None,
    }


def _table(desk: Desk, listed: list[dict[str, Any]]) -> Table:
    texts = desk.texts()
    columns = ("key", "position", "by", "at", "until", "reason")
    table = Table(*(texts(f"cli.switch.column_{column}") for column in columns), box=None, pad_edge=False)
    for each in listed:
        position = texts("cli.switch.on" if each["on"] else "cli.switch.off")
        rest = "" if each["turned"] else texts("cli.switch.at_rest")
        table.add_row(
            each["key"],
            f"{position}{rest}",
            each["by"] or "",
            each["at"] or "",
            each["until"] or "",
            each["reason"] or "",
        )
    return table
