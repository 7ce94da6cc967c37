"""``batuta grupos bloquear | liberar | bloqueados``: who only makes noise is not read any more, until somebody lifts it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final
from uuid import UUID

import typer

from app.contexts.grupos.autores import Autor, Autores, AutorInexistente
from app.contexts.grupos.relato import autor_bloqueado, autor_em_palavras
from app.contexts.vagas.revisao import VagaInexistente
from batuta.cli.context import Desk, JsonFlag, desk_of, wait_for, who
from batuta.kernel.errors import BatutaError
from batuta.stores.sql.database import Row

MOST: Final = 1_000


def bloquear(context: typer.Context, vaga: str, as_json: JsonFlag = False) -> None:
    desk, id = desk_of(context), _id(vaga, VagaInexistente(id=vaga))
    _tell(desk, wait_for(_with(desk, lambda autores: autores.bloquear(id, por=who()))), "blocked", as_json)


def liberar(context: typer.Context, autor: str, as_json: JsonFlag = False) -> None:
    desk, id = desk_of(context), _id(autor, AutorInexistente(id=autor))
    _tell(desk, wait_for(_with(desk, lambda autores: autores.liberar(id, por=who()))), "lifted", as_json)


def bloqueados(context: typer.Context, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    told = [autor_bloqueado(row, desk.work().zone) for row in wait_for(_blocked(desk))]
    desk.show({"autores": told}, as_json, lambda: _tell_blocked(desk, told))


COMMANDS: dict[str, Callable[..., None]] = {"bloquear": bloquear, "liberar": liberar, "bloqueados": bloqueados}


async def _with(desk: Desk, act: Callable[[Autores], Awaitable[Autor]]) -> Autor:
    from app.composition.groups import authors

    async with desk.work() as work:
        return await act(authors(work))


async def _blocked(desk: Desk) -> Sequence[Row]:
    from app.composition.groups import authors

    async with desk.work() as work:
        return await authors(work).bloqueados(limite=MOST)


def _tell_blocked(desk: Desk, told: list[dict[str, Any]]) -> None:
    if not told:
        desk.say(desk.texts()("cli.grupos.none_blocked"))
    for each in told:
        desk.say(f"{each['id']}  {each['bloqueado_em'][:16]}  {each['bloqueado_por']}")


def _id(said: str, wrong: BatutaError) -> str:
    try:
        return str(UUID(said))
    except ValueError:
        raise wrong from None


def _tell(desk: Desk, autor: Autor, key: str, as_json: bool) -> None:
    document = autor_em_palavras(autor)
    words = desk.texts()(f"cli.grupos.{key}", id=autor.id, count=autor.rejeitadas)
    desk.show(document, as_json, lambda: desk.say(words))
