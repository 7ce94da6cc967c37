"""Alerts about the service to doctors. Each rule compares a figure with a threshold from the settings.

The rules are a health check, so ``batuta health`` shows the problems. The engine's alert loop reports the start and the
end of each problem once. The job ``verificar_alertas`` returns every figure. Findings contain figures and no personal
data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from batuta import Done, Outcome
from batuta.health import QUEUES, Check, Finding, Report, Severity
from batuta.jobs import JobCall, Window
from batuta.kernel import Clock, Json, dataclass
from batuta.sql import Database, Query, Reading, Row, load_queries

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
WEEK: Final = 7 * DAY
ANSWERS_OF: Final = timedelta(minutes=30)
# A message that Julia sends later than this after the doctor's last message is a new contact, not an answer.
ANSWERED_WITHIN: Final = timedelta(hours=2)
# Time that the worker may take for an answer. A younger message is not yet treated as unanswered.
SETTLED: Final = timedelta(minutes=5)
MOST_ANSWERS, MOST_PLACES = 500, 10
# Smallest counts for which a share or a mean is reported.
CONVERSAS, RESPOSTAS, AVALIADAS, CHAMADAS, OFERTAS = 5, 3, 5, 5, 10
# If a figure exceeds its threshold by this factor, the finding is critical.
PICO_CRITICO, LENTO_CRITICO = 1.5, 2
LOST: Final = {Severity.CRITICAL: 5, Severity.ERROR: 3, Severity.WARNING: 2, Severity.INFO: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limiares:
    """The thresholds of the alert rules, from the settings."""

    handoff_parte: float = 0.2
    handoff_pico: int = 5
    resposta_segundos: int = 120
    silencio_minutos: int = 30
    nota_minima: float = 5.0
    performance_ms: int = 1000
    recusas_parte: float = 0.4
    conversao_queda: float = 0.3


@dataclass(frozen=True, slots=True)
class Hospital:
    """A hospital with the number of its hand-offs in the last 24 hours (``dia``) and in the week before that."""

    id: str
    nome: str
    dia: int
    semana: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Medidas:
    """The figures that the rules compare. ``segundos`` is the mean time until Julia answers. ``esperam`` counts the
    messages that have not been answered yet. A mean is None if there is nothing to count.
    """

    conversas: int = 0
    com_pessoa: int = 0
    handoffs_dia: int = 0
    handoffs_semana: int = 0
    hospitais: Sequence[Hospital] = ()
    respostas: int = 0
    segundos: float | None = None
    esperam: int = 0
    esperam_desde: datetime | None = None
    enviadas: int = 0
    no_horario: bool = True  # whether it is within the sending hours, in which Julia answers
    avaliadas: int = 0
    nota: float | None = None  # mean score of the conversations evaluated in the last 24 hours
    chamadas: int = 0
    performance_ms: float | None = None
    ofertas: int = 0
    recusas: int = 0
    reservas: int = 0
    ofertas_semana: int = 0
    reservas_semana: int = 0

    @property
    def conversao(self) -> float:
        """The number of reservations per offer in the last 24 hours."""
        return self.reservas / self.ofertas if self.ofertas else 0.0

    @property
    def conversao_semana(self) -> float:
        return self.reservas_semana / self.ofertas_semana if self.ofertas_semana else 0.0


def julgar(medidas: Medidas, limiares: Limiares) -> tuple[Finding, ...]:
    """Return a finding for each figure that exceeds its threshold."""
    return (*_conversations(medidas, limiares), *_handover_peak(medidas, limiares), *_business(medidas, limiares))


def _conversations(medidas: Medidas, limiares: Limiares) -> Iterator[Finding]:
    share = medidas.com_pessoa / medidas.conversas if medidas.conversas else 0.0
    if medidas.conversas >= CONVERSAS and share > limiares.handoff_parte:
        yield _finding(Severity.WARNING, "taxa_handoff_alta", share, limiares.handoff_parte, f"{share:.0%}")
    seconds = round(medidas.segundos or 0)
    if medidas.respostas >= RESPOSTAS and seconds > limiares.resposta_segundos:
        yield _finding(Severity.WARNING, "tempo_resposta_alto", seconds, limiares.resposta_segundos, f"{seconds} s")
    if medidas.no_horario and medidas.esperam and not medidas.enviadas:
        minutes, since = limiares.silencio_minutos, medidas.esperam_desde
        found = str(medidas.esperam)
        yield _finding(Severity.CRITICAL, "sem_respostas", medidas.esperam, 0, found, since, minutos=minutes)
    score, lowest = medidas.nota, limiares.nota_minima
    if score is not None and medidas.avaliadas >= AVALIADAS and score < lowest:
        yield _finding(Severity.ERROR, "score_qualidade_baixo", score, lowest, f"{score:.1f}", minima=f"{lowest:g}")
    mean, slow = round(medidas.performance_ms or 0), limiares.performance_ms
    if medidas.chamadas >= CHAMADAS and mean > slow:
        is_worse = mean > LENTO_CRITICO * slow
        limit = LENTO_CRITICO * slow if is_worse else slow
        yield _finding(Severity.CRITICAL if is_worse else Severity.WARNING, "performance", mean, limit, f"{mean} ms")


def _handover_peak(medidas: Medidas, limiares: Limiares) -> Iterator[Finding]:
    yield from _peak("pico_handoff", medidas.handoffs_dia, medidas.handoffs_semana, limiares)
    for place in medidas.hospitais:
        for found in _peak("pico_handoff_hospital", place.dia, place.semana, limiares):
            facts = {**found.facts, "hospital": place.nome}
            yield replace(found, cause=f"{found.cause}.{place.id}", facts=facts)


def _peak(what: str, day: int, week: int, limiares: Limiares) -> Iterator[Finding]:
    """Report a peak of hand-offs: their number in the last 24 hours is at least twice the daily mean of the week
    before, and at least ``limiares.handoff_pico``.
    """
    limit = max(limiares.handoff_pico, round(2 * week / WEEK.days))
    if day >= limit:
        severity = Severity.CRITICAL if day >= PICO_CRITICO * limit else Severity.WARNING
        yield _finding(severity, what, day, limit, str(day))


def _business(medidas: Medidas, limiares: Limiares) -> Iterator[Finding]:
    refused = medidas.recusas / medidas.ofertas if medidas.ofertas else 0.0
    if medidas.ofertas >= OFERTAS and refused > limiares.recusas_parte:
        yield _finding(Severity.WARNING, "recusas_altas", refused, limiares.recusas_parte, f"{refused:.0%}")
    usual, lowest = medidas.conversao_semana, medidas.conversao_semana * (1 - limiares.conversao_queda)
    if min(medidas.ofertas, medidas.ofertas_semana) >= OFERTAS and medidas.conversao < lowest:
        found, week = f"{medidas.conversao:.0%}", f"{usual:.0%}"
        yield _finding(Severity.WARNING, "conversao_caiu", medidas.conversao, lowest, found, semana=week)


def _finding(
    severity: Severity,
    what: str,
    value: float,
    limit: float,
    found: str,
    since: datetime | None = None,
    **facts: object,
) -> Finding:
    """Build the finding ``alertas.{what}``. ``found`` is the figure, formatted for operators."""
    shown = f"{limit:.0%}" if isinstance(limit, float) else str(limit)
    return Finding(
        severity=severity,
        source="alertas",
        cause=f"alertas.{what}",
        says=f"alertas_{what}",
        facts={"medida": found, "limite": shown, **facts},
        value=round(value, 3),
        threshold=round(limit, 3),
        since=since,
    )


@dataclass(frozen=True, slots=True)
class AlertQueries:
    handovers: Query
    places: Query
    answered: Query
    silence: Query
    offers: Query
    scores: Query
    durations: Query


class Alertas:
    def __init__(self, database: Database, limiares: Limiares, hours: Window, zone: ZoneInfo, clock: Clock) -> None:
        """Create the alerts about the service to doctors. ``hours`` are the sending hours."""
        self._database = database
        self._limiares = limiares
        self._hours = hours
        self._zone = zone
        self._clock = clock
        self._queries = load_queries(AlertQueries, "sql/alertas.sql", database.dialect)

    async def medir(self) -> Medidas:
        """Compute every figure that the alert rules compare, from the stored rows."""
        now, queries = self._clock.now(), self._queries
        ago = {"hour_ago": now - HOUR, "day_ago": now - DAY, "week_ago": now - DAY - WEEK}
        silent = now - timedelta(minutes=self._limiares.silencio_minutos)
        async with self._database.snapshot() as reading:
            handed = await _only(reading, queries.handovers, now=now, **ago)
            places = await reading.all(
                queries.places,
                now=now,
                day_ago=now - DAY,
                week_ago=now - DAY - WEEK,
                least=self._limiares.handoff_pico,
                most=MOST_PLACES,
            )
            answered = await reading.all(
                queries.answered, hours_ago=now - ANSWERED_WITHIN, since=now - ANSWERS_OF, most=MOST_ANSWERS
            )
            silence = await _only(reading, queries.silence, since=silent, settled=now - SETTLED)
            today = await _only(reading, queries.offers, since=now - DAY, until=now)
            week = await _only(reading, queries.offers, since=now - DAY - WEEK, until=now - DAY)
            scores = await _only(reading, queries.scores, since=now - DAY)
            calls = await _only(reading, queries.durations, hour_ago=now - HOUR)
        waits = [(row["saiu"] - row["veio"]).total_seconds() for row in answered]
        return Medidas(
            conversas=handed["conversas"],
            com_pessoa=handed["com_pessoa"],
            handoffs_dia=handed["handoffs_dia"],
            handoffs_semana=handed["handoffs_semana"],
            hospitais=[Hospital(str(row["id"]), row["nome"], row["dia"], row["semana"]) for row in places],
            respostas=len(waits),
            segundos=sum(waits) / len(waits) if waits else None,
            esperam=silence["esperam"],
            esperam_desde=silence["desde"],
            enviadas=silence["enviadas"],
            no_horario=self._hours.is_open(now, self._zone),
            avaliadas=scores["avaliadas"],
            nota=_mean(scores["nota"]),
            chamadas=calls["chamadas"],
            performance_ms=_mean(calls["media"]),
            ofertas=today["ofertas"],
            recusas=today["recusas"],
            reservas=today["reservas"],
            ofertas_semana=week["ofertas"],
            reservas_semana=week["reservas"],
        )

    async def verificar_alertas(self, call: JobCall) -> Outcome:
        """Return every figure about the service to doctors, and a finding for each figure that exceeds its threshold.
        The engine's alert loop sends the alerts.
        """
        measured = await self.medir()
        found = julgar(measured, self._limiares)
        alerts: list[Json] = [
            {
                "tipo": each.cause.removeprefix("alertas."),
                "severidade": each.severity.value,
                "valor": each.value,
                "limite": each.threshold,
            }
            for each in found
        ]
        figures: dict[str, Json] = {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in asdict(measured).items()
            if name != "esperam_desde"
        }
        return Done(items=len(found), result={"alertas": alerts, "medidas": figures})

    async def ask(self) -> Report:
        found = julgar(await self.medir(), self._limiares)
        return Report(findings=found, lost=sum(LOST[each.severity] for each in found))

    @property
    def check(self) -> Check:
        return Check(name="alertas", section=QUEUES, ask=self.ask)


def _mean(value: float | Decimal | None) -> float | None:
    """Convert a mean to a float, because PostgreSQL returns a decimal number."""
    return None if value is None else float(value)


async def _only(reading: Reading, query: Query, **values: object) -> Row:
    """Return the only row of a query that returns counts."""
    row = await reading.one(query, **values)
    assert row is not None
    return row
