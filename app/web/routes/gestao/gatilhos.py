"""``/api/v1/gatilhos``: the triggers that act without an operator, and the doctors whom each trigger's next run would
select.
"""

from typing import Any

from fastapi import APIRouter

from app.contexts.gatilhos.model import Gatilho
from app.contexts.gatilhos.relato import gatilho_em_palavras, simulacao_em_palavras
from app.contexts.gatilhos.service import Gatilhos
from batuta.web import AuthoriseFirst


def router(gatilhos: Gatilhos) -> APIRouter:
    routes = APIRouter(prefix="/api/v1/gatilhos", tags=["gatilhos"], route_class=AuthoriseFirst)

    @routes.get("", operation_id="list_gatilhos")
    async def everything() -> dict[str, Any]:
        """List the triggers, each with the switch that currently stops it (or null) and its figures for the last seven
        days.
        """
        return {"gatilhos": [gatilho_em_palavras(each) for each in await gatilhos.listar()]}

    @routes.get("/{nome}/simular", operation_id="simulate_gatilho")
    async def simulate(nome: Gatilho) -> dict[str, Any]:
        """Show the ids of the doctors whom the next run of a trigger would select, and the reasons that exclude the
        other doctors. Nothing is sent.
        """
        return simulacao_em_palavras(await gatilhos.simular(nome))

    return routes
