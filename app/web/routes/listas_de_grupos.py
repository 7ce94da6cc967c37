"""``/grupos/mensagens`` and ``/grupos/vagas``: group messages with their results, and open vacancies."""

import re
from datetime import date
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from pydantic import BeforeValidator

from app.contexts.grupos.recebidas import MotivoDoDescarte, Recebidas, mensagem_em_palavras, motivo_em_palavras
from app.contexts.vagas.abertas import Abertas, aberta_em_palavras
from batuta.extension import Scope
from batuta.web import AuthoriseFirst, disclose, require, texts_for

Limit = Annotated[int, Query(ge=1, le=200)]
Skip = Annotated[int, Query(ge=0, le=1_000_000)]


def _require_text(value: object) -> object:
    """Raise ValueError for a number, because it would be read as a time since 1970."""
    if isinstance(value, str) and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        raise ValueError("write the day as in 2026-03-11")
    return value


Day = Annotated[date, BeforeValidator(_require_text)]


def router(recebidas: Recebidas, abertas: Abertas, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix="/grupos", tags=["grupos"], route_class=AuthoriseFirst)

    @routes.get("/mensagens", operation_id="list_mensagens_grupo")
    async def messages(
        request: Request,
        descartadas: Annotated[bool, Query(description="only discarded messages")] = False,
        motivo: Annotated[MotivoDoDescarte | None, Query(description="only messages discarded for this reason")] = None,
        texto: Annotated[bool, Query(description="also show the text; needs the scope pii")] = False,
        limite: Limit = 50,
        pular: Skip = 0,
    ) -> dict[str, Any]:
        """List group messages, newest first, each with its score and the last stage that processed it. The entry of a
        discarded message has the reason.
        """
        require_pii(request, texto)
        texts = texts_for(request)
        rows = await recebidas.lista(limite=limite, pular=pular, descartadas=descartadas, motivo=motivo)
        if texto:
            await disclose(request, len(rows), unmasked=True)
        shown = [mensagem_em_palavras(row, zone, com_texto=texto) for row in rows]
        said = [{**each, "motivo_em_palavras": motivo_em_palavras(texts, each["motivo"])} for each in shown]
        return {"descartadas_por_motivo": await recebidas.motivos(), "mensagens": said}

    @routes.get("/vagas", operation_id="list_vagas_abertas")
    async def vacancies(
        request: Request,
        dia: Annotated[Day | None, Query(description="only vacancies of this day")] = None,
        fechadas: Annotated[bool, Query(description="list closed vacancies instead of open ones")] = False,
        contato: Annotated[bool, Query(description="also show the contact; needs the scope pii")] = False,
        limite: Limit = 50,
        pular: Skip = 0,
    ) -> dict[str, Any]:
        """List open vacancies from today on, earliest day first.

        ``vaga_id`` is the id of the vacancy itself. ``revisao_id`` is the id of the extracted vacancy in
        /grupos/revisao.
        """
        require_pii(request, contato)
        rows = await abertas.lista(limite=limite, pular=pular, dia=dia, fechadas=fechadas)
        if contato:
            await disclose(request, len(rows), unmasked=True)
        shown = [aberta_em_palavras(row, zone, com_contato=contato) for row in rows]
        return {"abertas": await abertas.quantas(), "vagas": shown}

    return routes


def require_pii(request: Request, asked: bool) -> None:
    if asked:
        require(request.state.caller, Scope.PII)
