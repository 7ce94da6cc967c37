"""``batuta vagas``: create, list, announce, reserve, release, confirm and cancel vacancies."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import date, datetime
from typing import Annotated, Any

import typer

from app.cli.grupos.listas import Limite, Pular
from app.cli.shared import DAY, ask, cell, id_of, print_rows, read_personal, word
from app.composition.julia import Julia
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.plantoes.anuncios import Anuncio
from app.contexts.plantoes.model import (
    MAIOR_VALOR,
    MENOR_VALOR,
    MOST_OFFERS,
    MedicoDesconhecido,
    MotivoDaCancelada,
    NovaVaga,
    Resposta,
    VagaDesconhecida,
    exigir,
)
from app.contexts.plantoes.relato import (
    anuncio_em_palavras,
    candidato_em_palavras,
    resposta_em_palavras,
    vaga_em_palavras,
    vista_em_palavras,
)
from app.contexts.plantoes.service import Filtro, Vista
from app.contexts.vagas.api import StatusDaVaga
from batuta.cli import REFUSED, CliContext, JsonFlag, cli_context, current_user

COLUMNS = ("id", "status", "data", "hora_inicio", "hora_fim", "hospital", "especialidade", "valor", "medico")
SHOWN = (
    "hospital",
    "cidade",
    "uf",
    "especialidade",
    "data",
    "periodo",
    "hora_inicio",
    "hora_fim",
    "valor",
    "medico",
    "cancelada_motivo",
)
Medico = Annotated[str, typer.Option("--medico")]


def criar(
    context: typer.Context,
    hospital: Annotated[str, typer.Option("--hospital")],
    area: Annotated[str, typer.Option("--especialidade")],
    data: Annotated[datetime, typer.Option("--data", formats=DAY)],
    periodo: Annotated[Periodo | None, typer.Option("--periodo")] = None,
    hora_inicio: Annotated[datetime | None, typer.Option("--hora-inicio", formats=["%H:%M"])] = None,
    hora_fim: Annotated[datetime | None, typer.Option("--hora-fim", formats=["%H:%M"])] = None,
    valor: Annotated[int | None, typer.Option("--valor", min=MENOR_VALOR, max=MAIOR_VALOR)] = None,
    cidade: Annotated[str | None, typer.Option("--cidade")] = None,
    uf: Annotated[str | None, typer.Option("--uf")] = None,
    novo_hospital: Annotated[bool, typer.Option("--novo-hospital")] = False,
    outra: Annotated[bool, typer.Option("--outra")] = False,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    nova = NovaVaga(
        hospital=hospital,
        especialidade=area,
        data=data.date(),
        cidade=cidade,
        uf=None if uf is None else uf.strip().upper(),
        periodo=periodo,
        hora_inicio=None if hora_inicio is None else f"{hora_inicio:%H:%M}",
        hora_fim=None if hora_fim is None else f"{hora_fim:%H:%M}",
        valor=valor,
        novo_hospital=novo_hospital,
        outra=outra,
    )
    document = vista_em_palavras(ask(ctx, lambda julia: _create(julia, nova)), ctx.work().zone)
    ctx.show(document, as_json, lambda: _print(ctx, document))


def listar(
    context: typer.Context,
    status: Annotated[StatusDaVaga | None, typer.Option("--status")] = None,
    dia: Annotated[datetime | None, typer.Option("--dia", formats=DAY)] = None,
    medico: Annotated[str | None, typer.Option("--medico")] = None,
    limite: Limite = 20,
    pular: Pular = 0,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    rows = ask(ctx, lambda julia: _list(julia, status, None if dia is None else dia.date(), medico, limite, pular))
    shown = [vaga_em_palavras(row, ctx.work().zone) for row in rows]
    ctx.show({"vagas": shown}, as_json, lambda: print_rows(ctx, "vagas", COLUMNS, shown, cell))


def ver(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)
    document = vista_em_palavras(ask(ctx, lambda julia: _see(julia, id)), ctx.work().zone)
    ctx.show(document, as_json, lambda: _print(ctx, document))


def candidatos(context: typer.Context, id: str, limite: Limite = 20, as_json: JsonFlag = False) -> None:
    ctx = cli_context(context)

    async def find(julia: Julia) -> list[dict[str, Any]]:
        found = await julia.shifts.candidatos.candidatos(await _vaga(julia, id), limite)
        return [candidato_em_palavras(each) for each in found]

    shown = ask(ctx, find)
    ctx.show({"candidatos": shown}, as_json, lambda: _print_candidates(ctx, shown))


def anunciar(
    context: typer.Context,
    id: str,
    medicos: Annotated[list[str] | None, typer.Option("--medico")] = None,
    melhores: Annotated[int | None, typer.Option("--melhores", min=1, max=MOST_OFFERS)] = None,
    as_json: JsonFlag = False,
) -> None:
    ctx = cli_context(context)
    if bool(medicos) == (melhores is not None):
        ctx.say_wrong(ctx.texts()("cli.vagas.whom"))
        raise typer.Exit(REFUSED)
    answer = ask(ctx, lambda julia: _announce(julia, id, medicos or [], melhores))
    document = anuncio_em_palavras(answer)
    ctx.show(document, as_json, lambda: _print_offers(ctx, document))


def interesse(context: typer.Context, id: str, medico: Medico, as_json: JsonFlag = False) -> None:
    async def act(julia: Julia) -> Resposta:
        ids = await _vaga(julia, id), await _medico(julia, medico)
        return await julia.shifts.plantoes.registrar_interesse(*ids, por=current_user())

    _change(cli_context(context), "interesse", act, as_json)


def reservar(context: typer.Context, id: str, medico: Medico, as_json: JsonFlag = False) -> None:
    async def act(julia: Julia) -> Resposta:
        ids = await _vaga(julia, id), await _medico(julia, medico)
        return await julia.shifts.plantoes.reservar(*ids, por=current_user())

    _change(cli_context(context), "reservar", act, as_json)


def liberar(
    context: typer.Context, id: str, motivo: Annotated[str, typer.Option("--motivo")], as_json: JsonFlag = False
) -> None:
    async def act(julia: Julia) -> Resposta:
        return await julia.shifts.plantoes.liberar(await _vaga(julia, id), por=current_user(), motivo=motivo)

    _change(cli_context(context), "liberar", act, as_json)


def realizada(context: typer.Context, id: str, as_json: JsonFlag = False) -> None:
    async def act(julia: Julia) -> Resposta:
        return await julia.shifts.plantoes.realizar(await _vaga(julia, id), por=current_user())

    _change(cli_context(context), "realizada", act, as_json)


def cancelar(
    context: typer.Context,
    id: str,
    motivo: Annotated[MotivoDaCancelada, typer.Option("--motivo")],
    as_json: JsonFlag = False,
) -> None:
    async def act(julia: Julia) -> Resposta:
        return await julia.shifts.plantoes.cancelar(await _vaga(julia, id), motivo, por=current_user())

    _change(cli_context(context), "cancelar", act, as_json)


COMMANDS: dict[str, Callable[..., None]] = {
    "criar": criar,
    "listar": listar,
    "ver": ver,
    "candidatos": candidatos,
    "anunciar": anunciar,
    "interesse": interesse,
    "reservar": reservar,
    "liberar": liberar,
    "realizada": realizada,
    "cancelar": cancelar,
}


async def _create(julia: Julia, nova: NovaVaga) -> Vista:
    return await julia.shifts.plantoes.ver(await julia.shifts.plantoes.criar(nova, por=current_user()))


async def _list(
    julia: Julia, status: StatusDaVaga | None, day: date | None, medico: str | None, limite: int, pular: int
) -> Sequence[Any]:
    doctor = None if medico is None else await _medico(julia, medico)
    filtro = Filtro(status=status, cliente_id=doctor, de=day or date.min, ate=day or date.max)
    return await julia.shifts.plantoes.listar(filtro, limite=limite, pular=pular)


async def _see(julia: Julia, id: str) -> Vista:
    return await read_personal(julia, "vagas ver", julia.shifts.plantoes.ver(await _vaga(julia, id)))


async def _announce(julia: Julia, id: str, medicos: Sequence[str], melhores: int | None) -> Anuncio:
    vaga, anuncios = await _vaga(julia, id), julia.shifts.anuncios
    if melhores is not None:
        answer = await anuncios.anunciar_aos_melhores(vaga, melhores, por=current_user())
    else:
        doctors = [await _medico(julia, each) for each in medicos]
        answer = await anuncios.anunciar(vaga, doctors, por=current_user())
    if isinstance(answer, Anuncio):
        return answer
    return Anuncio(id=vaga, status=exigir(answer).status)


async def _vaga(julia: Julia, written: str) -> str:
    return await id_of(julia, ["vagas"], written, VagaDesconhecida(id=written))


async def _medico(julia: Julia, written: str) -> str:
    return await id_of(julia, ["clientes"], written, MedicoDesconhecido(id=written))


def _change(ctx: CliContext, what: str, act: Callable[[Julia], Awaitable[Resposta]], as_json: bool) -> None:
    document = resposta_em_palavras(exigir(ask(ctx, act)))
    said = "repetida" if document["repetida"] else what
    status = word(ctx, "vaga", document["status"])
    ctx.show(
        document, as_json, lambda: ctx.say(ctx.texts()(f"cli.vagas.done_{said}", id=document["id"], status=status))
    )


def _print(ctx: CliContext, document: dict[str, Any]) -> None:
    texts = ctx.texts()
    ctx.say(texts("cli.vagas.head", id=document["id"], status=word(ctx, "vaga", document["status"])))
    for name in SHOWN:
        if document[name] is not None:
            value = (
                word(ctx, "motivo_da_vaga", document[name])
                if name == "cancelada_motivo"
                else cell(ctx, name, document[name])
            )
            ctx.say(f"  {texts(f'cli.vagas.column_{name}')}: {value}")
    for line in document["historico"]:
        became = " → ".join(word(ctx, "vaga", each) for each in (line["de"], line["para"]) if each is not None)
        ctx.say(f"  {ctx.moment(line['em'])}  {became}  ({line['por']}: {word(ctx, 'motivo_da_vaga', line['motivo'])})")
    for offer in document["ofertas"]:
        ctx.say(texts("cli.vagas.offer", medico=offer["medico"], mensagem=word(ctx, "mensagem", offer["mensagem"])))
    for interest in document["interesses"]:
        ctx.say(texts("cli.vagas.interest", medico=interest["medico"]))


def _print_candidates(ctx: CliContext, shown: list[dict[str, Any]]) -> None:
    if not shown:
        ctx.say(ctx.texts()("cli.vagas.no_candidate"))
    for each in shown:
        ctx.say(f"{each['medico']}  {each['pontos']:g}")


def _print_offers(ctx: CliContext, document: dict[str, Any]) -> None:
    status = word(ctx, "vaga", document["status"])
    ctx.say(ctx.texts()("cli.vagas.offered", id=document["id"], count=len(document["oferecidas"]), status=status))
    for medico, why in document["recusadas"].items():
        ctx.say(f"  {medico}: {word(ctx, 'impedimento', why)}")
