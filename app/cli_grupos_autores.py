"""``batuta grupos bloquear | liberar``: who only makes noise is not read any more, until somebody lifts it."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import typer

from app.contexts.grupos.autores import Autor, Autores, AutorInexistente
from app.contexts.grupos.revisao import VagaInexistente
from batuta.cli.desk import Desk, JsonFlag, desk_of, wait_for, who
from batuta.kernel.errors import BatutaError


def bloquear(context: typer.Context, vaga: str, as_json: JsonFlag = False) -> None:
    desk, id = desk_of(context), _id(vaga, VagaInexistente(id=vaga))
    _tell(desk, wait_for(_with(desk, lambda autores: autores.bloquear(id, por=who()))), "blocked", as_json)


def liberar(context: typer.Context, autor: str, as_json: JsonFlag = False) -> None:
    desk, id = desk_of(context), _id(autor, AutorInexistente(id=autor))
    _tell(desk, wait_for(_with(desk, lambda autores: autores.liberar(id, por=who()))), "lifted", as_json)


COMMANDS: dict[str, Callable[..., None]] = {"bloquear": bloquear, "liberar": liberar}


async def _with(desk: Desk, act: Callable[[Autores], Awaitable[Autor]]) -> Autor:
    from app.wiring_grupos import authors

    async with desk.work() as work:
        return await act(authors(work))


def _id(said: str, wrong: BatutaError) -> str:
    try:
        return str(UUID(said))
    except ValueError:
        raise wrong from None


def _tell(desk: Desk, autor: Autor, key: str, as_json: bool) -> None:
    document = {"id": autor.id, "bloqueado": autor.bloqueado, "rejeitadas": autor.rejeitadas}
    words = desk.texts()(f"cli.grupos.{key}", id=autor.id, count=autor.rejeitadas)
    desk.show(document, as_json, lambda: desk.say(words))
