"""Health of the chips that send, for ``/health/chips`` and the health score. Chips that only read groups
are ignored.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from app.contexts.chips.jobs import last_digits
from app.contexts.chips.pool import Pool
from app.contexts.comum.whatsapp import circuit_of
from batuta.guards import Circuit, Circuits, CircuitState
from batuta.health import Check, Finding, HealthPage, Report, Severity
from batuta.kernel import Clock, dataclass
from batuta.reasons import Reason, define, join
from batuta.sql import Database, Row

HEALTHY, ATTENTION = 80, 60
LOW_TRUST: Final = 40
LOST_BY_BAN: Final = 10  # points of the score; half of the section
PROSPECTS, FOLLOWS_UP, ANSWERS = 60, 40, 20
LOST_WITHOUT_SENDER: Final = 20  # the whole section
# A message that finds no chip is postponed for a minute.
POSTPONED_FOR: Final = timedelta(minutes=1)
KEPT: Final = timedelta(seconds=30)
GATEWAY_DOWN: Final = ("connectivity.evolution",)

NOT_CONFIGURED = define("chips_sem_gateway", "no chip and no gateway is configured: nothing is sent by WhatsApp")
NO_SENDER = define("chips_sem_emissor", "no chip can send")
NONE_AVAILABLE = define("chips_indisponiveis", "no chip is available (total: {total})")
FEW_HEALTHY = define("chips_poucos_saudaveis", "fewer than 30 % of the chips are healthy")
MANY_CIRCUITS_OPEN = define("chips_disjuntores_abertos", "more than half of the circuits are open")
DISCONNECTED = define("chips_desconectados", "disconnected: {chips}")
RESTING_UNTIL = define("chips_em_descanso_ate", "resting: {chips}, the first until {until}")
CIRCUIT_OPEN = define("chips_com_disjuntor", "circuit open: {chips}")
NOT_PERMITTED = define("chips_sem_permissao", "no type of message permitted: {chips}")
AVAILABLE = define("chips_disponiveis", "{able} of {total} chips are available")


@dataclass(frozen=True, slots=True, kw_only=True)
class Saude:
    """The health of one chip that sends."""

    telefone: str | None
    status: str
    trust: int
    level: str
    connected: bool
    circuit: str
    circuit_failures: int
    rests_until: datetime | None  # None if the chip does not rest
    may_prospect: bool
    may_follow_up: bool
    may_answer: bool
    sent_today: int
    errors: int

    @property
    def is_active(self) -> bool:
        return self.status == "active"

    @property
    def resting(self) -> bool:
        return self.rests_until is not None

    @property
    def is_available(self) -> bool:
        may = self.may_prospect or self.may_follow_up or self.may_answer
        return self.is_active and self.connected and not self.resting and self.circuit != CircuitState.OPEN and may

    @property
    def health(self) -> str:
        return "saudavel" if self.trust >= HEALTHY else "atencao" if self.trust >= ATTENTION else "critico"


def document(chips: Sequence[Saude], *, is_configured: bool, at: datetime, banned: int = 0) -> dict[str, Any]:
    status, message = _verdict(chips, is_configured)
    able = [chip for chip in chips if chip.is_available]
    return {
        "status": status,
        "message": message,
        "summary": {
            "total": len(chips),
            "disponiveis": len(able),
            "banidos": banned,
            "saudaveis": _count(chips, lambda chip: chip.health == "saudavel"),
            "atencao": _count(chips, lambda chip: chip.health == "atencao"),
            "criticos": _count(chips, lambda chip: chip.health == "critico"),
            "circuit_aberto": _count(chips, lambda chip: chip.circuit == CircuitState.OPEN),
            "desconectados": _count(chips, lambda chip: not chip.connected),
            "trust_medio": round(sum(chip.trust for chip in chips) / len(chips), 1) if chips else None,
        },
        "capacidade": {
            "prospeccao": _count(able, lambda chip: chip.may_prospect and chip.trust >= PROSPECTS),
            "followup": _count(able, lambda chip: chip.may_follow_up and chip.trust >= FOLLOWS_UP),
            "resposta": _count(able, lambda chip: chip.may_answer and chip.trust >= ANSWERS),
        },
        "chips": [_chip_document(chip) for chip in chips],
        "timestamp": at.isoformat(),
    }


def judge(chips: Sequence[Saude], *, is_configured: bool, banned: Sequence[str] = (), waiting: int = 0) -> Report:
    """Build the chips' health report. ``banned`` contains the names of the banned instances. ``waiting`` is the number
    of messages that are waiting to be sent.
    """
    if not is_configured and not chips:
        return Report()
    active = [chip for chip in chips if chip.is_active]
    if not active:
        return Report(
            findings=(
                _finding(Severity.CRITICAL, "none_active", value=0, threshold=1, total=len(chips), banned=len(banned)),
            ),
            lost=20,
        )
    connected = [chip for chip in active if chip.connected]
    findings: list[Finding] = []
    facts = {"total": len(active), "connected": len(connected)}
    share = len(connected) / len(active)
    if not connected:
        findings.append(_finding(Severity.CRITICAL, "none_connected", value=0, threshold=1, **facts))
    elif share < 0.5:
        findings.append(_finding(Severity.WARNING, "few_connected", value=share, threshold=0.5, **facts))
    low = [chip for chip in active if chip.trust < LOW_TRUST]
    if len(low) / len(active) > 0.3:
        share_low = len(low) / len(active)
        findings.append(
            _finding(Severity.WARNING, "low_trust", value=share_low, threshold=0.3, total=len(active), low=len(low))
        )
    if banned:
        findings.append(
            _finding(
                Severity.ERROR, "banned", value=len(banned), threshold=0, count=len(banned), names=", ".join(banned)
            )
        )
    is_without_sender = bool(connected) and waiting > 0 and not any(chip.is_available for chip in active)
    if is_without_sender:
        why = _obstacles(active)
        findings.append(_finding(Severity.ERROR, "none_available", value=waiting, threshold=0, count=waiting, why=why))
    trusted = len([chip for chip in active if chip.trust >= ATTENTION]) / len(active)
    lost = 20 if not connected else (12 if share < 0.5 else 4 if share < 0.8 else 0)
    lost += 8 if trusted < 0.3 else 4 if trusted < 0.5 else 0
    lost += (LOST_BY_BAN if banned else 0) + (LOST_WITHOUT_SENDER if is_without_sender else 0)
    return Report(findings=tuple(findings), lost=lost)


def _obstacles(chips: Sequence[Saude]) -> str:
    """Return a text with the reasons why the given chips cannot send. If several reasons apply to a chip, the text
    mentions only the first.
    """
    left = list(chips)

    def take(is_one: Callable[[Saude], bool]) -> list[Saude]:
        taken = [chip for chip in left if is_one(chip)]
        left[:] = [chip for chip in left if not is_one(chip)]
        return taken

    found: list[Reason] = []
    if disconnected := take(lambda chip: not chip.connected):
        found.append(DISCONNECTED(chips=len(disconnected)))
    if resting := take(lambda chip: chip.resting):
        until = min(chip.rests_until for chip in resting if chip.rests_until is not None)
        found.append(RESTING_UNTIL(chips=len(resting), until=until))
    if blocked := take(lambda chip: chip.circuit == CircuitState.OPEN):
        found.append(CIRCUIT_OPEN(chips=len(blocked)))
    if left:
        found.append(NOT_PERMITTED(chips=len(left)))
    return join(found)


class Vistos(NamedTuple):
    chips: list[Saude]  # chips that send, and chips that an operator may activate for sending
    is_configured: bool
    banned: list[str]  # names of the banned instances


class ChipHealth:
    def __init__(
        self, database: Database, pool: Pool, circuits: Circuits, zone: ZoneInfo, clock: Clock, *, has_gateway: bool
    ) -> None:
        self._database = database
        self._pool = pool
        self._circuits = circuits
        self._zone = zone
        self._clock = clock
        self._has_gateway = has_gateway

    def check(self) -> Check:
        return Check(name="chips", section="chips", ask=self._judge)

    def page(self) -> HealthPage:
        return HealthPage(
            name="chips", ask=self.document, kept=KEPT, about="The numbers that send: trust, connection, capacity."
        )

    async def document(self) -> dict[str, Any]:
        seen = await self._look()
        now = self._clock.now().astimezone(self._zone)
        return document(seen.chips, is_configured=seen.is_configured, at=now, banned=len(seen.banned))

    async def _judge(self) -> Report:
        seen = await self._look()
        waiting = 0
        if not any(chip.is_available for chip in seen.chips):
            waiting = await self._pool.count_waiting(self._database, soon=self._clock.now() + POSTPONED_FOR)
        return judge(seen.chips, is_configured=seen.is_configured, banned=seen.banned, waiting=waiting)

    async def _look(self) -> Vistos:
        now = self._clock.now()
        rows = await self._pool.list_chips(self._database)
        circuits = {circuit.name: circuit for circuit in await self._circuits.look()}
        senders = [row for row in rows if row["tipo"] == "julia"]
        chips = [_health(row, circuits, now, self._zone) for row in senders if row["status"] != "banned"]
        banned = [row["instance_name"] for row in senders if row["status"] == "banned"]
        return Vistos(chips, self._has_gateway or bool(rows), banned)


def _health(row: Row, circuits: Mapping[str, Circuit], now: datetime, zone: ZoneInfo) -> Saude:
    circuit = circuits.get(circuit_of(row["instance_name"]))
    until = row["cooldown_until"]
    return Saude(
        telefone=last_digits(row["telefone"]),
        status=row["status"],
        trust=row["trust_score"],
        level=row["trust_level"],
        connected=row["evolution_connected"],
        circuit=CircuitState.CLOSED.value if circuit is None else circuit.state.value,
        circuit_failures=0 if circuit is None else circuit.failures,
        rests_until=until.astimezone(zone) if until is not None and until > now else None,
        may_prospect=row["pode_prospectar"],
        may_follow_up=row["pode_followup"],
        may_answer=row["pode_responder"],
        sent_today=row["msgs_enviadas_hoje"],
        errors=row["erros_ultimas_24h"],
    )


def _verdict(chips: Sequence[Saude], is_configured: bool) -> tuple[str, Reason]:
    if not is_configured and not chips:
        return "not_configured", NOT_CONFIGURED()
    if not chips:
        return "critical", NO_SENDER()
    able = _count(chips, lambda chip: chip.is_available)
    if not able:
        return "critical", NONE_AVAILABLE(total=len(chips))
    if _count(chips, lambda chip: chip.health == "saudavel") / len(chips) < 0.3:
        return "degraded", FEW_HEALTHY()
    if _count(chips, lambda chip: chip.circuit == CircuitState.OPEN) / len(chips) > 0.5:
        return "degraded", MANY_CIRCUITS_OPEN()
    return "healthy", AVAILABLE(able=able, total=len(chips))


def _chip_document(chip: Saude) -> dict[str, Any]:
    return {
        "telefone": chip.telefone,
        "trust_score": chip.trust,
        "trust_level": chip.level,
        "health": chip.health,
        "circuit_state": chip.circuit,
        "circuit_falhas": chip.circuit_failures,
        "evolution_connected": chip.connected,
        "pode_prospectar": chip.may_prospect,
        "pode_followup": chip.may_follow_up,
        "pode_responder": chip.may_answer,
        "msgs_hoje": chip.sent_today,
        "erros_24h": chip.errors,
        "is_available": chip.is_available,
    }


def _finding(severity: Severity, what: str, *, value: float, threshold: float, **facts: object) -> Finding:
    return Finding(
        severity=severity,
        source="chips",
        cause=f"chips.{what}",
        says=f"chips_{what}",
        facts=facts,
        value=value,
        threshold=threshold,
        because=GATEWAY_DOWN if what.endswith("connected") else (),
    )


def _count(chips: Sequence[Saude], is_one: Callable[[Saude], bool]) -> int:
    return sum(1 for chip in chips if is_one(chip))
