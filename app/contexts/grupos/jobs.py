"""The jobs of the groups. The continuous worker does the same all the time; the claim keeps them apart."""

from datetime import timedelta
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.operacao import Operacao
from batuta.dispatch.answer import JobAnswer, Ok
from batuta.dispatch.endpoints import JobCall
from batuta.kernel.clock import Clock
from batuta.queue.outcome import Failed

# What is left of the time when another batch is not begun.
MARGIN: Final = timedelta(seconds=10)
MOST: Final = 10_000


class GroupJobs:
    def __init__(self, operacao: Operacao, zone: ZoneInfo, clock: Clock) -> None:
        self._operacao = operacao
        self._zone = zone
        self._clock = clock

    async def processar_grupos(self, call: JobCall) -> JobAnswer:
        """Every stage once. ``batch_size`` and ``max_workers`` say how much at a time."""
        asked = {name: _number(call, name) for name in ("batch_size", "max_workers")}
        wrong = [name for name, value in asked.items() if value == 0]
        if wrong:
            return Failed(f"{' and '.join(wrong)}: a number from 1 to {MOST} is wanted", permanent=True)
        ciclo = await self._operacao.ciclo(asked["batch_size"], asked["max_workers"])
        return Ok(
            items=ciclo.processados,
            details={
                "ciclo": {
                    "processados": ciclo.processados,
                    "erros": ciclo.erros,
                    "por_estagio": {**ciclo.por_estagio},
                },
                "fila": await self._operacao.fila(),
            },
        )

    async def limpar_grupos_finalizados(self, call: JobCall) -> JobAnswer:
        today = self._clock.now().astimezone(self._zone).date()
        removed = await self._operacao.limpar(today, call.deadline - MARGIN)
        return Ok(items=removed, details={"removidos": removed})

    async def status_grupos(self, call: JobCall) -> JobAnswer:
        return Ok(details={"fila": await self._operacao.fila()})

    async def reprocessar_grupos_erro(self, call: JobCall) -> JobAnswer:
        """What failed for good is tried again, each at its own stage. ``estagio`` and ``limite`` narrow it down."""
        stage, limit = call.params.get("estagio"), _number(call, "limite") if "limite" in call.params else 100
        if not limit or (stage is not None and stage not in tuple(Estagio)):
            return Failed(f"estagio is one of {', '.join(Estagio)}, limite a number from 1 to {MOST}", permanent=True)
        dead = await self._operacao.mortas(None if stage is None else Estagio(stage), limit)
        revived = sum([each async for each in self._operacao.reprocessar(dead)])
        told = f"{revived} itens enviados para reprocessamento"
        return Ok(items=revived, details={"sucesso": True, "reprocessados": revived, "mensagem": told})

    async def backfill_fila_grupos(self, call: JobCall) -> JobAnswer:
        """Messages that wait and are in no queue."""
        limit = _number(call, "limite") if "limite" in call.params else 1000
        if not limit:
            return Failed(f"limite: a number from 1 to {MOST} is wanted", permanent=True)
        added = await self._operacao.enfileirar(await self._operacao.esquecidas(limit))
        return Ok(items=added, details={"enfileiradas": added})


def _number(call: JobCall, name: str) -> int | None:
    """None: it is not said; 0: it is no number we take."""
    if (said := call.params.get(name)) is None:
        return None
    return int(said) if said.isascii() and said.isdigit() and 1 <= int(said) <= MOST else 0
