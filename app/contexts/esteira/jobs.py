"""Scheduled jobs for the groups pipeline. A job and a worker never process the same row, because each claims a row
before processing it.
"""

from datetime import date, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.comum.prazo import MARGIN
from app.contexts.esteira.metricas import Metricas
from app.contexts.esteira.operacao import Operacao
from app.contexts.esteira.saude import SaudeDosGrupos
from app.contexts.grupos.api import Estagio
from app.contexts.grupos.service import Grupos
from app.contexts.llm.service import Custos
from batuta import Done, Failed, Outcome, Partial
from batuta.jobs import JobCall
from batuta.kernel import Clock, Json
from batuta.reasons import define
from batuta.sql import Database

NUMBER_WANTED = define("numero_esperado", "{names}: expected a number from 1 to {most}")
DAY_WANTED = define("dia_esperado", "data: expected a day such as 2026-03-11")
DAYS_WANTED = define("dias_esperados", "desde and ate: expected days such as 2026-03-11")
CANARY_LOST = define("canario_perdido", "the last canary did not reach the end of the pipeline")
STAGE_WANTED = define("estagio_esperado", "estagio: expected one of {stages}; limite: a number from 1 to {most}")

MOST: Final = 10_000


# The daily canary message. The place is fictitious.
CANARIO: Final = "Plantão de clínica médica no Hospital Canário Fictício, dia {dia:%d/%m/%Y}, das 19h às 7h, R$ 1.500"


class GroupJobs:
    def __init__(
        self,
        database: Database,
        operacao: Operacao,
        saude: SaudeDosGrupos,
        metricas: Metricas,
        grupos: Grupos,
        custos: Custos,
        zone: ZoneInfo,
        clock: Clock,
    ) -> None:
        self._database = database
        self._operacao = operacao
        self._saude = saude
        self._metricas = metricas
        self._grupos = grupos
        self._custos = custos
        self._zone = zone
        self._clock = clock

    async def processar_grupos(self, call: JobCall) -> Outcome:
        """Run every stage of the groups pipeline once. ``batch_size`` limits the items per stage. ``max_workers``
        limits how many items are processed at the same time in stages that query the language model.
        """
        asked = {name: _number(call, name) for name in ("batch_size", "max_workers")}
        wrong = [name for name, value in asked.items() if value == 0]
        if wrong:
            return Failed(NUMBER_WANTED(names=", ".join(wrong), most=MOST), permanent=True)
        ciclo = await self._operacao.ciclo(asked["batch_size"], asked["max_workers"])
        return Done(
            items=ciclo.processados,
            result={
                "ciclo": {
                    "processados": ciclo.processados,
                    "erros": ciclo.erros,
                    "por_estagio": {**ciclo.por_estagio},
                },
                "fila": await self._operacao.fila(),
            },
        )

    async def limpar_grupos_finalizados(self, call: JobCall) -> Outcome:
        expired = await self._operacao.vencer(self._today())
        removed = await self._operacao.limpar(self._today(), call.deadline - MARGIN)
        return Done(items=removed, result={"removidos": removed, "vencidas": expired})

    async def verificar_alertas_grupos(self, call: JobCall) -> Outcome:
        """Return the health findings about the groups pipeline. For each cause, the alert loop sends one alert."""
        found = await self._saude.achados()
        alerts = [
            {
                "tipo": each.cause.removeprefix("grupos."),
                "severidade": each.severity.value,
                "valor": each.value,
                "limite": each.threshold,
            }
            for each in found
        ]
        return Done(items=len(found), result={"alertas": [{**each} for each in alerts]})

    async def consolidar_metricas_grupos(self, call: JobCall) -> Outcome:
        """Compute yesterday's metrics, in the local time zone. If ``data`` is given, recompute the metrics for that day
        instead.
        """
        try:
            said = call.params.get("data")
            day = date.fromisoformat(said) if said else self._today() - timedelta(days=1)
            since, until = self._metricas.dia(day)
        except (ValueError, OverflowError):
            return Failed(DAY_WANTED(), permanent=True)
        counted = await self._metricas.consolidar(day, await self._custos.no_dia(since, until))
        return Done(items=int(str(counted["mensagens_total"])), result=counted)

    async def canario_grupos(self, call: JobCall) -> Outcome:
        """Enqueue today's canary message (a synthetic offer), and report whether the previous one reached the end of
        the pipeline.
        """
        sinais = await self._saude.sinais()
        day, now = self._today(), self._clock.now()
        async with self._database.transaction() as transaction:
            text = CANARIO.format(dia=day + timedelta(days=1))
            await self._grupos.ensaiar(transaction, text, day, now=now)
        last = None if sinais.canario_em is None else sinais.canario_em.isoformat()
        details: dict[str, Json] = {"ultimo": last, "perdido": sinais.canario_perdido}
        if sinais.canario_perdido:
            return Partial(CANARY_LOST(), items=1, result=details)
        return Done(items=1, result=details)

    async def status_grupos(self, call: JobCall) -> Outcome:
        return Done(result={"fila": await self._operacao.fila()})

    async def reprocessar_grupos_erro(self, call: JobCall) -> Outcome:
        """Retry dead rows, each at the stage where it failed. ``estagio`` selects the rows of one stage, and ``limite``
        limits their number.
        """
        stage, limit = call.params.get("estagio"), _number(call, "limite") if "limite" in call.params else 100
        if not limit or (stage is not None and stage not in tuple(Estagio)):
            return Failed(STAGE_WANTED(stages=", ".join(Estagio), most=MOST), permanent=True)
        dead = await self._operacao.mortas(None if stage is None else Estagio(stage), limit)
        revived = sum([each async for each in self._operacao.reprocessar(dead, por=call.by)])
        message = f"{revived} itens enviados para reprocessamento"
        return Done(items=revived, result={"sucesso": True, "reprocessados": revived, "mensagem": message})

    async def backfill_fila_grupos(self, call: JobCall) -> Outcome:
        """Enqueue pending messages that have no row in the queue. If ``desde`` and ``ate`` are given, count the
        processed messages from these days instead; if ``enfileirar=true`` is also given, enqueue them to be read again.
        """
        limit = _number(call, "limite") if "limite" in call.params else 1000
        if not limit:
            return Failed(NUMBER_WANTED(names="limite", most=MOST), permanent=True)
        if {"desde", "ate"} & {*call.params}:
            return await self._read_again(call, limit)
        added = await self._operacao.enfileirar(await self._operacao.esquecidas(limit))
        return Done(items=added, result={"enfileiradas": added})

    async def _read_again(self, call: JobCall, limit: int) -> Outcome:
        try:
            first, last = (date.fromisoformat(call.params.get(name, "")) for name in ("desde", "ate"))
            since, until = self._metricas.dia(first)[0], self._metricas.dia(last)[1]
        except (ValueError, OverflowError):
            return Failed(DAYS_WANTED(), permanent=True)
        found = await self._operacao.passadas(since, until, limit)
        added = await self._operacao.reler(found) if call.params.get("enfileirar") == "true" else 0
        return Done(items=added, result={"encontradas": len(found), "enfileiradas": added})

    def _today(self) -> date:
        return self._clock.now().astimezone(self._zone).date()


def _number(call: JobCall, name: str) -> int | None:
    """Return a job parameter as a number: None if the parameter is absent, 0 if it is invalid."""
    if (said := call.params.get(name)) is None:
        return None
    is_number = said.isascii() and said.isdigit() and len(said) <= len(str(MOST))
    return int(said) if is_number and int(said) <= MOST else 0
