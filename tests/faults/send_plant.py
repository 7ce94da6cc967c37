"""A worker that sends messages and exits at a chosen point in the code, as in a power cut."""

import asyncio
from collections.abc import Mapping
from typing import Any

from app.contexts.comum.whatsapp import SendResult
from app.integrations.evolution.client import EvolutionClient
from scripts import ensaio
from tests.faults.points import PointedDatabase, Points


def run(encoded: Mapping[str, Any]) -> None:
    """Run one worker. If ``dies_at`` is empty, it only records the points that it passes."""
    plano = ensaio.plano_of(encoded)
    points = Points(plano.dies_at or "", lambda label: ensaio.note(plano, "point", label))
    ensaio.log_into(plano)
    work = ensaio.office(plano)
    work.database.inner = PointedDatabase(work.database.inner, points)
    _around_the_call(points)
    asyncio.run(ensaio.serve_queues(plano, work))


def _around_the_call(points: Points) -> None:
    send = EvolutionClient.send_text

    async def pointed(self: EvolutionClient, instance: str, telefone: str, texto: str) -> SendResult:
        points.reach("before the call")
        result = await send(self, instance, telefone, texto)
        points.reach("after the call")
        return result

    EvolutionClient.send_text = pointed  # type: ignore[method-assign]
