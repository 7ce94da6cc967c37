"""``batuta grupos bloquear | liberar | bloqueados``: who only makes noise is not read any more, until somebody lifts it."""

from collections.abc import Callable
from typing import Any, Final

import typer

from app.cli.shared import ask, uuid_or
from app.contexts.grupos.autores import Autor, AutorInexistente
from app.contexts.grupos.relato import autor_bloqueado, autor_em_palavras
from app.contexts.vagas.revisao import VagaInexistente
from batuta.cli.context import Desk, JsonFlag, desk_of, who

MOST: Final = 1_000


def bloquear(context: typer.Context, vaga: str, as_json: JsonFlag = False) -> None:
    desk, id = desk_of(context), uuid_or(vaga, VagaInexistente(id=vaga))
    _tell(desk, ask(desk, lambda julia: julia.groups.autores.bloquear(id, por=who())), "blocked", as_json)


def liberar(context: typer.Context, autor: str, as_json: JsonFlag = False) -> None:
    desk, id = desk_of(context), uuid_or(autor, AutorInexistente(id=autor))
    _tell(desk, ask(desk, lambda julia: julia.groups.autores.liberar(id, por=who())), "lifted", as_json)


def bloqueados(context: typer.Context, as_json: JsonFlag = False) -> None:
    desk = desk_of(context)
    rows = ask(desk, lambda julia: julia.groups.autores.bloqueados(limite=MOST))
    told = [autor_bloqueado(row, desk.work().zone) for row in rows]
    desk.show({"autores": told}, as_json, lambda: _tell_blocked(desk, told))


COMMANDS: dict[str, Callable[..., None]] = {"bloquear": bloquear, "liberar": liberar, "bloqueados": bloqueados}


def _tell_blocked(desk: Desk, told: list[dict[str, Any]]) -> None:
    if not told:
        desk.say(desk.texts()("cli.grupos.none_blocked"))
    for each in told:
        desk.say(f"{each['id']}  {each['bloqueado_em'][:16]}  {each['bloqueado_por']}")


def _tell(desk: Desk, autor: Autor, key: str, as_json: bool) -> None:
    document = autor_em_palavras(autor)
    words = desk.texts()(f"cli.grupos.{key}", id=autor.id, count=autor.rejeitadas)
    desk.show(document, as_json, lambda: desk.say(words))
