"""``batuta medicos``: register doctors, and show or correct the state of each doctor."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.grupos.listas import Limite, Pular
from app.cli.shared import MOMENT, ask, format_cell, id_of, print_rows
from app.composition.julia import Julia
from app.contexts.estado_medico.model import CicloDeVida, CorrecaoDoMedico, EstadoDesconhecido, Permissao
from app.contexts.estado_medico.relato import INSTANTS, estado_em_palavras
from app.contexts.estado_medico.service import Filtro
from app.contexts.medicos.cadastro import ler_csv
from batuta.cli import FAILED, REFUSED, CliContext, JsonFlag, cli_context, current_user
from batuta.reasons import decode
from batuta.sql import Row

COLUMNS = ("medico", "permissao", "ciclo", "temperatura", "tendencia", "contatos_7d", "ultima_entrada")
# Columns whose values are shown in the operator's language.
WORDS = {"permissao": "permissao", "ciclo": "ciclo", "tendencia": "tendencia", "faixa": "faixa", "objecao": "gravidade"}


def importar(
    context: typer.Context,
    arquivo: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, metavar="ARQUIVO")],
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    medicos, recusadas = ler_csv(arquivo.read_bytes())
    incluidos = ask(ctx, lambda julia: julia.doctors.cadastro.incluir(medicos, por=current_user()))
    texts = ctx.texts()
    lines = [{"linha": each.linha, "motivo": texts.reason(decode(each.motivo) or each.motivo)} for each in recusadas]
    document = {"novos": len(incluidos.novos), "repetidos": incluidos.repetidos, "recusadas": lines}

    def show() -> None:
        counts = {"novos": len(incluidos.novos), "repetidos": incluidos.repetidos, "recusadas": len(recusadas)}
        ctx.say(", ".join(texts(f"cli.medicos.{name}", count=count) for name, count in counts.items() if count))
        for each in lines:
            ctx.say(texts("cli.medicos.linha_recusada", **each))

    ctx.show(document, as_json, show)
    if recusadas:
        raise typer.Exit(FAILED)


def listar(
    context: typer.Context,
    permissao: Annotated[Permissao | None, typer.Option("--permissao")] = None,
    ciclo: Annotated[CicloDeVida | None, typer.Option("--ciclo")] = None,
    limite: Limite = 20,
    pular: Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    ctx, filtro = cli_context(context), Filtro(permissao=permissao, ciclo=ciclo)
    rows = ask(ctx, lambda julia: julia.doctors.estados.listar(filtro, limite=limite, pular=pular))
    shown = [estado_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"medicos": shown}, as_json, lambda: print_rows(ctx, "medicos", COLUMNS, shown, _cell))


def ver(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)

    async def act(julia: Julia) -> Row:
        return await julia.doctors.estados.ver(await _medico(julia, id))

    document = estado_em_palavras(ask(ctx, act), ctx.work().zone)
    ctx.show(document, as_json, lambda: _print(ctx, document))


def corrigir(
    context: typer.Context,
    id: str,
    motivo: Annotated[str, typer.Option("--motivo")],
    temperatura: Annotated[float | None, typer.Option("--temperatura", min=0, max=1)] = None,
    ciclo: Annotated[CicloDeVida | None, typer.Option("--ciclo")] = None,
    descanso_ate: Annotated[datetime | None, typer.Option("--descanso-ate", formats=MOMENT)] = None,
    sem_descanso: Annotated[bool, typer.Option("--sem-descanso")] = False,
    proximo_contato: Annotated[datetime | None, typer.Option("--proximo-contato", formats=MOMENT)] = None,
    sem_proximo_contato: Annotated[bool, typer.Option("--sem-proximo-contato")] = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    if (descanso_ate is not None and sem_descanso) or (proximo_contato is not None and sem_proximo_contato):
        ctx.say_wrong(ctx.texts()("cli.medicos.one_of_two"))
        raise typer.Exit(REFUSED)
    zone, correcao = ctx.work().zone, CorrecaoDoMedico()
    if temperatura is not None:
        correcao["temperatura"] = temperatura
    if ciclo is not None:
        correcao["ciclo"] = ciclo
    if descanso_ate is not None or sem_descanso:
        correcao["descanso_ate"] = None if descanso_ate is None else descanso_ate.replace(tzinfo=zone)
    if proximo_contato is not None or sem_proximo_contato:
        correcao["proximo_contato"] = None if proximo_contato is None else proximo_contato.replace(tzinfo=zone)

    async def act(julia: Julia) -> Row:
        doctor = await _medico(julia, id)
        return await julia.doctors.estados.corrigir(doctor, correcao, por=current_user(), motivo=motivo)

    document = estado_em_palavras(ask(ctx, act), zone)
    ctx.show(document, as_json, lambda: _print(ctx, document))


async def _medico(julia: Julia, written: str) -> str:
    return await id_of(julia, ["clientes"], written, EstadoDesconhecido(id=written))


def _cell(ctx: CliContext, name: str, value: Any) -> str:
    return format_cell(ctx, value, name, INSTANTS, WORDS)


def _print(ctx: CliContext, document: dict[str, Any]) -> None:
    for name, value in document.items():
        ctx.say(f"{ctx.texts()(f'cli.medicos.column_{name}')}: {_cell(ctx, name, value)}")


COMMANDS: dict[str, Callable[..., None]] = {"importar": importar, "listar": listar, "ver": ver, "corrigir": corrigir}
