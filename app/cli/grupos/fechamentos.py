"""``batuta grupos fechamentos | fechar | manter``: messages that say a vacancy is taken, and a person has to say which."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from app.cli.shared import ask, uuid_or
from app.contexts.grupos.recebidas import motivo_em_palavras
from app.contexts.grupos.relato import aviso_em_palavras
from app.contexts.vagas.fechamentos import Fechado, FechamentoInexistente, VagaDeOutro
from batuta.cli.context import Desk, JsonFlag, desk_of, who


def fechamentos(
    context: typer.Context,
    limite: Annotated[int, typer.Option("--limite", min=1, max=1000)] = 20,
    as_json: JsonFlag = False,
) -> None:
    desk = desk_of(context)
    found = ask(desk, lambda julia: julia.groups.fechamentos.pendentes(limite=limite))
    told = [aviso_em_palavras(row, vagas, desk.work().zone) for row, vagas in found]
    desk.show({"avisos": told}, as_json, lambda: _tell(desk, told))


def fechar(
    context: typer.Context, id: str, vagas: Annotated[list[str], typer.Option("--vaga")], as_json: JsonFlag = False
) -> None:
    desk = desk_of(context)
    notice, meant = _notice(id), [uuid_or(each, VagaDeOutro(id=id, vaga=each)) for each in vagas]
    _resolved(desk, ask(desk, lambda julia: julia.groups.fechamentos.resolver(notice, meant, por=who())), as_json)


def manter(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    desk, notice = desk_of(context), _notice(id)
    _resolved(desk, ask(desk, lambda julia: julia.groups.fechamentos.resolver(notice, (), por=who())), as_json)


COMMANDS: dict[str, Callable[..., None]] = {"fechamentos": fechamentos, "fechar": fechar, "manter": manter}


def _notice(id: str) -> str:
    return uuid_or(id, FechamentoInexistente(id=id))


def _resolved(desk: Desk, done: Fechado, as_json: bool) -> None:
    document = {"id": done.id, "status": done.status, "vagas": list(done.vagas)}
    desk.show(document, as_json, lambda: desk.say(desk.texts()("cli.grupos.decided", id=done.id, status=done.status)))


def _tell(desk: Desk, told: list[dict[str, Any]]) -> None:
    if not told:
        desk.say(desk.texts()("cli.grupos.no_notice"))
    for each in told:
        desk.say(f"{each['id']}  {motivo_em_palavras(desk.texts(), each['motivo'])}".rstrip())
        desk.out.print(each["texto"], markup=False, highlight=False)
        for vaga in each["vagas"]:
            words = (vaga[name] or "" for name in ("id", "hospital", "especialidade", "data", "periodo", "status"))
            desk.out.print("  " + "  ".join(words), markup=False, highlight=False, soft_wrap=True)
