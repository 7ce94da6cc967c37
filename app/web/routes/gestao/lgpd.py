"""``/api/v1/lgpd``: export and erasure of one person's data. The person is named in the request body, because the
request log contains the path of each request.
"""

from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from app.contexts.lgpd.pessoa import NumeroDeVarias, PessoaDesconhecida
from app.contexts.lgpd.relato import pedido_em_palavras, recibo_em_palavras
from app.contexts.lgpd.service import LONGEST_MOTIVO, Lgpd, PedidoDesconhecido
from app.web.personal import personal
from app.web.refusals import as_problems, caller_of
from app.web.routes.grupos import NAME
from app.web.routes.listas_de_grupos import Limit
from batuta import BatutaError
from batuta.errors import AmbiguousId
from batuta.extension import Scope
from batuta.web import AuthoriseFirst, needs, require

PREFIX = "/api/v1/lgpd"
ANSWERS: dict[int | str, dict[str, Any]] = {
    404: {"description": "no data of this person"},
    409: {"description": "several people match: the id of one is needed"},
}
REFUSALS: dict[type[BatutaError], tuple[int, str]] = {
    PessoaDesconhecida: (404, "person_unknown"),
    NumeroDeVarias: (409, "person_ambiguous"),
    AmbiguousId: (409, "person_ambiguous"),
    PedidoDesconhecido: (404, "lgpd_request_unknown"),
}


class Pedido(BaseModel):
    model_config = ConfigDict(extra="forbid")
    pessoa: Annotated[str, Field(min_length=4, max_length=60, description="phone number with country code, or an id")]
    motivo: Annotated[str, Field(max_length=LONGEST_MOTIVO, pattern=NAME)]


def router(lgpd: Lgpd, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["lgpd"], route_class=AuthoriseFirst)

    @routes.post("/exportar", operation_id="export_person", responses=ANSWERS, openapi_extra=needs(Scope.PII))
    async def export(request: Request, pedido: Pedido) -> dict[str, Any]:
        """Return all data about one person, by table. The caller and the reason are recorded."""
        with as_problems(request, REFUSALS):
            return {**await lgpd.exportar(pedido.pessoa, por=caller_of(request), motivo=pedido.motivo)}

    @routes.post("/apagar", operation_id="erase_person", responses=ANSWERS, openapi_extra=needs(Scope.PII))
    async def erase(request: Request, pedido: Pedido) -> dict[str, Any]:
        """Erase all data about one person and return the receipt. The request needs the scopes pii and operate."""
        require(request.state.caller, Scope.OPERATE)
        with as_problems(request, REFUSALS):
            return recibo_em_palavras(await lgpd.apagar(pedido.pessoa, por=caller_of(request), motivo=pedido.motivo))

    @routes.get("/pedidos", operation_id="list_lgpd_requests")
    async def requests(request: Request, limite: Limit = 50) -> dict[str, Any]:
        """List the export and erasure requests, newest first, without personal data."""
        shown = [pedido_em_palavras(row, zone) for row in await lgpd.pedidos(limite=limite)]
        return {"pedidos": await personal(request, shown, "motivo", count=len(shown))}

    @routes.get("/pedidos/{id}", operation_id="show_lgpd_request", responses={404: {"description": "no such request"}})
    async def show(request: Request, id: UUID) -> dict[str, Any]:
        """Show one export or erasure request, with its receipt."""
        with as_problems(request, REFUSALS):
            document = pedido_em_palavras(await lgpd.pedido(str(id)), zone)
        return await personal(request, document, "motivo")

    return routes
