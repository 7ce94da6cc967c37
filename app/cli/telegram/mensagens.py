"""``batuta telegram``: send messages and files; edit, delete and forward messages, and mark messages as read."""

import mimetypes
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.shared import ask, read_personal, word
from app.composition.julia import Julia
from app.contexts.telegram.arquivos import LARGEST_FILE, arquivo_de
from app.contexts.telegram.porta import Arquivo
from app.contexts.telegram.tarefas import Acao
from batuta.cli import CliContext, JsonFlag, cli_context, current_user

LATEST = 20
Numero = Annotated[int, typer.Argument(metavar="MENSAGEM", min=1)]


def enviar(
    context: typer.Context,
    quem: str,
    texto: str,
    conta: Annotated[str | None, typer.Option("--conta")] = None,
    arquivo: Annotated[Path | None, typer.Option("--arquivo", dir_okay=False, exists=True)] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    by, file = current_user(), None if arquivo is None else _read(arquivo, texto)
    id = ask(ctx, lambda julia: julia.telegram.servico.enviar(quem, texto, by=by, conta=conta, arquivo=file))
    ctx.show({"id": id}, as_json, lambda: ctx.say(ctx.texts()("cli.telegram.queued", id=id)))


def editar(
    context: typer.Context, conta: str, chat: str, mensagem: Numero, texto: str, as_json: JsonFlag = False
) -> None:
    _act(context, conta, Acao.EDITAR, chat, mensagem, as_json, texto=texto)


def apagar(context: typer.Context, conta: str, chat: str, mensagem: Numero, as_json: JsonFlag = False) -> None:
    _act(context, conta, Acao.APAGAR, chat, mensagem, as_json)


def ler(context: typer.Context, conta: str, chat: str, mensagem: Numero, as_json: JsonFlag = False) -> None:
    _act(context, conta, Acao.LER, chat, mensagem, as_json)


def encaminhar(
    context: typer.Context, conta: str, chat: str, mensagem: Numero, quem: str, as_json: JsonFlag = False
) -> None:
    _act(context, conta, Acao.ENCAMINHAR, chat, mensagem, as_json, para=quem)


def acoes(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)

    async def find(julia: Julia) -> list[dict[str, Any]]:
        reading = julia.telegram.servico.acoes(julia.work.zone, limit=LATEST)
        return await read_personal(julia, "telegram acoes", reading)

    found = ask(ctx, find)
    ctx.show({"acoes": found}, as_json, lambda: _print_actions(ctx, found))


def _act(
    context: typer.Context, conta: str, acao: Acao, chat: str, mensagem: int, as_json: bool, **more: str | None
) -> None:
    ctx = cli_context(context)
    by = current_user()
    id = ask(ctx, lambda julia: julia.telegram.servico.agir(conta, acao, chat, mensagem, by=by, **more))
    said = "cli.telegram.action_queued" if id is not None else "cli.telegram.action_waits"
    ctx.show({"id": id}, as_json, lambda: ctx.say(ctx.texts()(said, id=id)))


def _read(path: Path, texto: str) -> Arquivo:
    """Read a file to send. Read at most one byte beyond the size limit, which is enough to detect a file that is too
    large.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    return arquivo_de(path.name, mimetypes.guess_type(path.name)[0] or "", content, texto)


def _print_actions(ctx: CliContext, found: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not found:
        ctx.say(texts("cli.telegram.no_action"))
    for row in found:
        facts = {name: row[name] for name in ("id", "conta", "chat", "mensagem")}
        acao, status = word(ctx, "telegram_acao", row["acao"]), word(ctx, "telegram_acoes", row["status"])
        line = texts("cli.telegram.action", **facts, acao=acao, status=status)
        ctx.say(line if row["erro"] is None else f"{line}: {texts.reason(row['erro'])}")
