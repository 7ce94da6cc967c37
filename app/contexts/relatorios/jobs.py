"""Jobs that create the reports: ``report-periodo?tipo=`` for part of a day, and ``report-semanal`` for a week."""

from collections.abc import Mapping
from datetime import date
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.relatorios.periodos import DO_DIA, WEEK, Periodo, TipoDeRelatorio, parte_do_dia, semana
from app.contexts.relatorios.relato import relatorio_em_palavras, taxas
from app.contexts.relatorios.service import SISTEMA, Relatorio, Relatorios
from batuta import Done, Failed, Outcome, Partial
from batuta.jobs import JobCall, JobHandler
from batuta.kernel import Clock, Json
from batuta.reasons import define

TIPO_WANTED = define(
    "relatorio_tipo", "tipo: expected one of {tipos}; call /jobs/report-periodo?tipo=manha, for example"
)
DAY_WANTED = define(
    "relatorio_dia", "data: expected a day such as 2026-03-11 that is not in the future; omit it for today"
)
NOT_DELIVERED = define(
    "relatorio_nao_entregue",
    "the report is stored, but {destinos} did not confirm it: `batuta relatorios ver {id}` shows why, "
    "`batuta relatorios reenviar {id}` sends it again",
)
DATA: Final = "data"
# The first Monday with which a weekly report may begin.
FIRST_DAY: Final = date(2000, 1, 3)


class ReportJobs:
    def __init__(self, relatorios: Relatorios, zone: ZoneInfo, clock: Clock) -> None:
        self._relatorios = relatorios
        self._zone = zone
        self._clock = clock

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {"report-periodo": self.report_periodo, "report-semanal": self.report_semanal}

    async def report_periodo(self, call: JobCall) -> Outcome:
        """Create the report for part of a day, either today or the day in ``data``. If that part has not ended yet,
        only return the figures.
        """
        tipo = call.params.get("tipo")
        if tipo not in DO_DIA:
            return Failed(TIPO_WANTED(tipos=", ".join(DO_DIA)), permanent=True)
        if (day := self._day(call)) is None:
            return Failed(DAY_WANTED(), permanent=True)
        return await self._report(parte_do_dia(TipoDeRelatorio(tipo), day, self._zone), call)

    async def report_semanal(self, call: JobCall) -> Outcome:
        """Create the report for the previous week, or for the week that contains the day in ``data``."""
        if (day := self._day(call)) is None:
            return Failed(DAY_WANTED(), permanent=True)
        wanted = day if DATA in call.params else day - WEEK
        return await self._report(semana(wanted, self._zone), call)

    async def _report(self, periodo: Periodo, call: JobCall) -> Outcome:
        if not periodo.terminou(self._clock.now()):
            figures = taxas(await self._relatorios.contar(periodo))
            return Done(items=0, result={"tipo": periodo.tipo.value, "previa": True, "metricas": figures})
        relatorio = await self._relatorios.fazer(periodo, por=call.by or SISTEMA)
        await self._relatorios.entregar_recusados(exceto=relatorio.id)
        relatorio = await self._relatorios.entregar(relatorio)
        result: dict[str, Json] = {**relatorio_em_palavras(relatorio, self._zone), "previa": False}
        if missing := _missing(relatorio):
            return Partial(NOT_DELIVERED(destinos=", ".join(missing), id=relatorio.id), items=1, result=result)
        return Done(items=1, result=result)

    def _day(self, call: JobCall) -> date | None:
        """Return the local day that the job's parameters name, or today if they name none. Return None if the day is
        invalid.
        """
        today = self._clock.now().astimezone(self._zone).date()
        try:
            day = date.fromisoformat(call.params.get(DATA) or today.isoformat())
        except ValueError:
            return None
        return day if FIRST_DAY <= day <= today else None


def _missing(relatorio: Relatorio) -> list[str]:
    return [destino for destino, estado in relatorio.envios.items() if estado != "enviado"]
