"""``batuta grupos nomes | esquecer``: whose a name is, and how one that was taught by mistake is unlearnt."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, TypeVar

import typer

from app.contexts.nomes.ensino import Ensinado, Ensino
from batuta.cli.context import Desk, JsonFlag, desk_of, wait_for, who

T = TypeVar("T")


def nomes(context: typer.Context, nome: str, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    found = wait_for(_with(desk, lambda ensino: ensino.de_quem(nome)))
    desk.show({"nomes": [asdict(each) for each in found]}, as_json, lambda: _tell(desk, found))


def esquecer(
    context: typer.Context,
    nome: str,
    id: Annotated[str | None, typer.Option("--id")] = None,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    gone = wait_for(_with(desk, lambda ensino: ensino.esquecer(nome, por=who(), id=id)))
    words = desk.texts()("cli.grupos.forgotten", tipo=gone.tipo, id=gone.id)
    desk.show(asdict(gone), as_json, lambda: desk.say(words))


COMMANDS: dict[str, Callable[..., None]] = {"nomes": nomes, "esquecer": esquecer}


async def _with(desk: Desk, act: Callable[[Ensino], Awaitable[T]]) -> T:
    from app.composition.groups import teaching

    async with desk.work() as work:
        return await act(teaching(work))


def _tell(desk: Desk, found: list[Ensinado]) -> None:
    if not found:
        desk.say(desk.texts()("cli.grupos.nobodys_name"))
    for each in found:
        place = "" if each.cidade is None else f"  {each.cidade}/{each.uf or '?'}"
        desk.say(f"{each.tipo}  {each.id}  {each.nome}{place}  {each.origem}  {each.por or ''}")
