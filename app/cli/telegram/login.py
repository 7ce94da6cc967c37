"""``batuta telegram login``: add an account with its code and password, or import a session.

Codes, passwords and sessions are typed without echo or read from standard input. They are never arguments, because
arguments appear in the shell history and in the process list.
"""

import asyncio
import getpass
import re
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, Final, NoReturn

import typer

from app.cli.shared import ask
from app.composition.development.simulator import as_child
from app.composition.julia import Julia
from app.composition.telegram.port import build_login, build_sessions
from app.contexts.telegram.porta import (
    Entrou,
    Falha,
    Feito,
    FloodWait,
    Login,
    LoginRecusado,
    MotivoDaRecusa,
    PedeSenha,
    SessionRevoked,
)
from batuta.cli import FAILED, REFUSED, CliContext, JsonFlag, cli_context, current_user

LIMIT: Final = timedelta(seconds=60)
ATTEMPTS: Final = 3
NAME: Final = re.compile(r"\w[\w .-]{0,39}")
TEXT: Final = "cli.telegram_login"
# If Telegram refuses one of these, the command asks for it again.
AGAIN: Final = frozenset({MotivoDaRecusa.CODIGO, MotivoDaRecusa.SENHA})


def login(
    context: typer.Context,
    nome: Annotated[str, typer.Argument(metavar="NOME")],
    importar: Annotated[bool, typer.Option("--importar")] = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    if NAME.fullmatch(nome) is None:
        _refuse(ctx, "nome")  # the message omits the name, which may be a session pasted by mistake

    async def act(julia: Julia) -> Entrou:
        settings, work = as_child(julia.settings), julia.work
        made = build_login(settings, work.clock)
        try:
            entered = await (_import(ctx, made) if importar else _log_in(ctx, made))
        finally:
            await made.close(limit=LIMIT)
        contas, eu = julia.telegram.contas, entered.eu
        conta = await contas.adicionar(nome, telefone=eu.telefone, usuario_id=eu.peer.id, by=current_user())
        await build_sessions(settings, work.database, work.clock).store(conta, entered.sessao)
        return entered

    entered = ask(ctx, act)
    ending = (entered.eu.telefone or "")[-4:]
    ctx.show(
        {"nome": nome, "usuario_id": entered.eu.peer.id},
        as_json,
        lambda: ctx.say(ctx.texts()(f"{TEXT}.done", nome=nome, final=ending or "-")),
    )


async def _log_in(ctx: CliContext, login: Login) -> Entrou:
    telefone = re.sub(r"[^\d+]", "", await _type(ctx, "telefone", hidden=False))
    asked = await login.ask_code(telefone if telefone.startswith("+") else f"+{telefone}", limit=LIMIT)
    if not isinstance(asked, Feito):
        _give_up(ctx, asked)
    found = await _repeat(ctx, "codigo", lambda code: login.sign_in(code, limit=LIMIT))
    if isinstance(found, PedeSenha):
        found = await _repeat(ctx, "senha", lambda password: login.check_password(password, limit=LIMIT))
    assert isinstance(found, Entrou)
    return found


async def _import(ctx: CliContext, login: Login) -> Entrou:
    found = await login.import_session(await _type(ctx, "sessao"), limit=LIMIT)
    return found if isinstance(found, Entrou) else _give_up(ctx, found)


async def _repeat(
    ctx: CliContext, what: str, enter: Callable[[str], Awaitable[Entrou | PedeSenha | LoginRecusado | Falha]]
) -> Entrou | PedeSenha:
    """Ask for a code or a password, and ask again if it was wrong."""
    for left in range(ATTEMPTS - 1, -1, -1):
        found = await enter(await _type(ctx, what))
        if isinstance(found, Entrou | PedeSenha):
            return found
        if not left or not isinstance(found, LoginRecusado) or found.motivo not in AGAIN:
            break
        ctx.say_wrong(ctx.texts()(f"{TEXT}.recusa_{found.motivo.value}"))
    return _give_up(ctx, found)


async def _type(ctx: CliContext, what: str, *, hidden: bool = True) -> str:
    """Read a line from the terminal, without echo if ``hidden``. If a script runs the command, read the line from
    standard input.
    """
    prompt = f"{ctx.texts()(f'{TEXT}.ask_{what}')} "
    if not sys.stdin.isatty():
        typed = await asyncio.to_thread(sys.stdin.readline)
    elif hidden:
        typed = await asyncio.to_thread(getpass.getpass, prompt)
    else:
        typed = await asyncio.to_thread(input, prompt)
    if not (line := str(typed).strip()):
        _refuse(ctx, "vazio")
    return line


def _give_up(ctx: CliContext, found: object) -> NoReturn:
    texts = ctx.texts()
    match found:
        case LoginRecusado(motivo=motivo):
            sentence = texts(f"{TEXT}.recusa_{motivo.value}")
        case FloodWait(wait=wait):
            sentence = texts(f"{TEXT}.espera", minutos=max(1, round(wait / timedelta(minutes=1))))
        case SessionRevoked(banned=True):
            sentence = texts(f"{TEXT}.recusa_banida")
        case _:
            sentence = texts(f"{TEXT}.falha", why=getattr(found, "why", type(found).__name__))
    ctx.say_wrong(sentence)
    raise typer.Exit(FAILED)


def _refuse(ctx: CliContext, what: str) -> NoReturn:
    ctx.say_wrong(ctx.texts()(f"{TEXT}.{what}"))
    raise typer.Exit(REFUSED)
