"""``/api/v1/gatilhos``: the triggers that act without an operator, and the doctors whom the next run of each would
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
        """List the triggers. Each trigger has the switch that currently stops the trigger, or null, and the figures of
        the last seven days.
        """
        return {"gatilhos": [gatilho_em_palavras(each) for each in await gatilhos.listar()]}

    @routes.get("/{nome}/simular", operation_id="simulate_gatilho")
    async def simulate(nome: Gatilho) -> dict[str, Any]:
        """Show the ids of the doctors whom the next run would select, and the reasons that exclude the others. Sends
        nothing.
        """
        return simulacao_em_palavras(await gatilhos.simular(nome))

    return routes
