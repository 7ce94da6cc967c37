"""``/api/v1/chips``: list the WhatsApp numbers, and change one."""

from datetime import date, datetime, time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict

from app.composition.chips import ChipServices
from app.contexts.chips.relato import chip_em_palavras
from app.contexts.chips.service import DecisaoDoChip, Fase, InicioNoFuturo, StatusDoChip, TipoDeChip, UnknownChip
from app.web.refusals import as_problems, caller_of
from app.web.routes.grupos import Word
from batuta import Batuta
from batuta.web import AuthoriseFirst

PREFIX = "/api/v1/chips"
REFUSALS = {UnknownChip: (404, "chip_unknown"), InicioNoFuturo: (409, "chip_refused")}


class Decisao(BaseModel):
    """A decision about a chip. An absent field stays unchanged."""

    model_config = ConfigDict(extra="forbid")
    motivo: Word
    status: StatusDoChip | None = None
    tipo: TipoDeChip | None = None
    fase: Fase | None = None
    em_uso_desde: date | None = None


def router(work: Batuta, chips: ChipServices) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["chips"], route_class=AuthoriseFirst)

    @routes.get("", operation_id="list_chips")
    async def everything() -> dict[str, Any]:
        """List the WhatsApp numbers, each with its purpose, connection, trust and permissions."""
        rows = await chips.pool.list_chips(work.database)
        return {"chips": [chip_em_palavras(row, work.zone) for row in rows]}

    @routes.post(
        "/{instancia}",
        operation_id="decide_chip",
        responses={404: {"description": "no such chip"}, 409: {"description": "the day is in the future"}},
    )
    async def decide(
        request: Request, instancia: Annotated[str, Path(max_length=200)], decisao: Decisao
    ) -> dict[str, Any]:
        """Set a chip's status, purpose, phase or age. The caller and the reason are recorded."""
        day = decisao.em_uso_desde
        since = None if day is None else datetime.combine(day, time(0), work.zone)
        what = DecisaoDoChip(status=decisao.status, tipo=decisao.tipo, fase=decisao.fase, em_uso_desde=since)
        with as_problems(request, REFUSALS):
            async with work.database.transaction() as transaction:
                after = await chips.chips.decidir(
                    transaction, instancia, what, decisao.motivo, by=caller_of(request), now=work.clock.now()
                )
        return {"instance": instancia, **after}

    return routes
