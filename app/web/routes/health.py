"""Julia's health routes."""

from typing import Any

from fastapi import APIRouter, Request

from app.contexts.mensagens.limites import HORARIO, Limites
from batuta.jobs import Window
from batuta.web import AuthoriseFirst, state_of

DIAS = ("segunda-feira", "terça-feira", "quarta-feira", "quinta-feira", "sexta-feira", "sábado", "domingo")


def health_router(limites: Limites, hours: Window = HORARIO) -> APIRouter:
    router = APIRouter(tags=["health"], route_class=AuthoriseFirst)

    @router.get("/health/rate-limit", operation_id="health_rate_limit")
    async def rate_limit(request: Request) -> dict[str, Any]:
        """Show how many messages Julia has sent on its own initiative, the limits, and whether the current time is
        within the sending hours.
        """
        state = state_of(request)
        used = await state.work.rates.count_used([limites.hora, limites.dia])
        now = state.now()
        return {
            "rate_limit": {
                "msgs_hora": used[limites.hora.name],
                "limite_hora": limites.hora.most,
                "msgs_dia": used[limites.dia.name],
                "limite_dia": limites.dia.most,
                "horario_permitido": hours.is_open(now, state.work.zone),
                "hora_atual": f"{now:%H:%M}",
                "dia_semana": DIAS[now.weekday()],
            },
            "timestamp": now.isoformat(),
        }

    return router
