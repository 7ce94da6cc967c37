"""``/api/v1/relatorios``: the stored reports and their deliveries."""

from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request

from app.contexts.relatorios.periodos import TipoDeRelatorio
from app.contexts.relatorios.relato import relatorio_em_palavras
from app.contexts.relatorios.service import RelatorioDesconhecido, Relatorios
from app.web.refusals import as_problems
from app.web.routes.listas_de_grupos import Limit, Skip
from batuta import BatutaError
from batuta.web import AuthoriseFirst

PREFIX = "/api/v1/relatorios"
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "no such report"}}
REFUSALS: dict[type[BatutaError], tuple[int, str]] = {RelatorioDesconhecido: (404, "report_unknown")}


def router(relatorios: Relatorios, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["relatorios"], route_class=AuthoriseFirst)

    @routes.get("", operation_id="list_relatorios")
    async def everything(tipo: TipoDeRelatorio | None = None, limite: Limit = 20, pular: Skip = 0) -> dict[str, Any]:
        """List the reports, newest period first."""
        found = await relatorios.listar(tipo, limite=limite, pular=pular)
        return {"relatorios": [relatorio_em_palavras(each, zone) for each in found]}

    @routes.get("/{id}", operation_id="show_relatorio", responses=UNKNOWN)
    async def show(request: Request, id: UUID) -> dict[str, Any]:
        """Show one report with its figures and the state of each delivery."""
        with as_problems(request, REFUSALS):
            return relatorio_em_palavras(await relatorios.ver(str(id)), zone)

    @routes.post("/{id}/reenviar", operation_id="resend_relatorio", responses=UNKNOWN)
    async def resend(request: Request, id: UUID) -> dict[str, Any]:
        """Send the report again to every destination, including those that have already received it."""
        with as_problems(request, REFUSALS):
            return relatorio_em_palavras(await relatorios.reenviar(str(id)), zone)

    return routes
