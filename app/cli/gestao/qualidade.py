"""``batuta qualidade``: show and correct evaluations of conversations, and show the guidance for the model."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from app.cli.grupos.listas import Limite, Pular
from app.cli.shared import ask, id_of, print_rows, read_personal, word
from app.composition.julia import Julia
from app.contexts.qualidade.avaliacoes import BEST, LONGEST_CORRECTION, AvaliacaoDesconhecida
from app.contexts.qualidade.notas import LISTAS, LLM, NOTAS, REGRAS
from app.contexts.qualidade.relato import avaliacao_em_palavras, orientacao_em_palavras
from batuta.cli import CliContext, JsonFlag, cli_context, current_user
from batuta.sql import Row

COLUMNS = ("id", "conversa", "avaliador", "score_geral", "nota_corrigida", "mensagens", "em")


class Avaliador(StrEnum):
    REGRAS = REGRAS
    LLM = LLM


def listar(
    context: typer.Context,
    avaliador: Annotated[Avaliador | None, typer.Option("--avaliador")] = None,
    ate: Annotated[int, typer.Option("--ate", min=1, max=BEST)] = BEST,
    limite: Limite = 20,
    pular: Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    wanted = None if avaliador is None else avaliador.value

    async def find(julia: Julia) -> Sequence[Row]:
        reading = julia.quality.avaliacoes.listar(avaliador=wanted, ate=ate, limite=limite, pular=pular)
        return await read_personal(julia, "qualidade listar", reading)

    rows = ask(ctx, find)
    shown = [avaliacao_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"avaliacoes": shown}, as_json, lambda: print_rows(ctx, "qualidade", COLUMNS, shown, _cell))


def ver(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)

    async def see(julia: Julia) -> dict[str, Any]:
        reading = julia.quality.avaliacoes.ver(await _id(julia, id))
        return avaliacao_em_palavras(await read_personal(julia, "qualidade ver", reading), julia.work.zone)

    document = ask(ctx, see)
    ctx.show(document, as_json, lambda: _print(ctx, document))


def corrigir(
    context: typer.Context,
    id: str,
    nota: Annotated[int, typer.Argument(min=1, max=BEST)],
    motivo: Annotated[str, typer.Option("--motivo")],
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)

    async def act(julia: Julia) -> dict[str, Any]:
        reason = motivo[:LONGEST_CORRECTION]
        row = await julia.quality.avaliacoes.corrigir(await _id(julia, id), nota, por=current_user(), motivo=reason)
        return avaliacao_em_palavras(row, julia.work.zone)

    document = ask(ctx, act)
    ctx.show(document, as_json, lambda: ctx.say(ctx.texts()("cli.qualidade.corrected", **document)))


def orientacao(context: typer.Context, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    rows = ask(ctx, lambda julia: julia.quality.orientacoes.versoes())
    shown = [orientacao_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"versoes": shown}, as_json, lambda: _print_guidance(ctx, shown))


COMMANDS: dict[str, Callable[..., None]] = {
    "listar": listar,
    "ver": ver,
    "corrigir": corrigir,
    "orientacao": orientacao,
}


async def _id(julia: Julia, written: str) -> str:
    return await id_of(julia, ["avaliacoes_qualidade"], written, AvaliacaoDesconhecida(id=written))


def _print(ctx: CliContext, document: dict[str, Any]) -> None:
    texts = ctx.texts()
    for column in (*COLUMNS[:4], *NOTAS, *COLUMNS[4:]):
        ctx.say(f"{texts(f'cli.qualidade.column_{column}')}: {_cell(ctx, column, document[column])}")
    for name in LISTAS:
        for line in document[name]:
            ctx.say(f"{texts(f'cli.qualidade.{name}')}: {line}")
    if document["corrigida_em"] is not None:
        ctx.say(texts("cli.qualidade.correction", **{**document, "corrigida_em": ctx.moment(document["corrigida_em"])}))


def _print_guidance(ctx: CliContext, shown: list[dict[str, Any]]) -> None:
    texts = ctx.texts()
    if not shown:
        ctx.say(texts("cli.qualidade.no_guidance"))
        return
    ctx.say(texts("cli.qualidade.guidance", **{**shown[0], "desde": ctx.moment(shown[0]["desde"])}))
    ctx.say(shown[0]["conteudo"])
    for each in shown[1:]:
        until = ctx.moment(each["ate"]) if each["ate"] else "-"
        ctx.say(texts("cli.qualidade.earlier", versao=each["versao"], desde=ctx.moment(each["desde"]), ate=until))


def _cell(ctx: CliContext, column: str, value: Any) -> str:
    match column, value:
        case _, None:
            return "-"
        case "avaliador", str():
            return word(ctx, "avaliador", value)
        case "em", str():
            return ctx.moment(value)
        case _:
            return str(value)
