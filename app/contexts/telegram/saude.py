"""Health of Telegram, for ``/health/telegram`` and the health score: one finding per account with a problem."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.telegram.contas import Contas, EstadoDaConta
from batuta.health import (
    FORGOTTEN_AFTER,
    JOBS_AND_WORKERS,
    Beats,
    Check,
    Finding,
    HealthPage,
    Now,
    QueueLimits,
    Report,
    Severity,
    merge_reports,
)
from batuta.kernel import Clock, dataclass
from batuta.reasons import decode, describe_reason
from batuta.sql import Database, Row

WORKER: Final = "telegram-main"
# If an account has had no answer from the server for this long, its connection is dead.
SILENT_AFTER: Final = timedelta(minutes=2)
# A new or restarted account has this long to connect.
CONNECTS_WITHIN: Final = timedelta(minutes=2)
LIMITS: Final = QueueLimits(
    backlog_warning=500,
    backlog_critical=5_000,
    age_warning=timedelta(minutes=5),
    age_critical=timedelta(hours=1),
    stuck_warning=1,
    stuck_critical=10,
)
_STOPPED: Final = {
    EstadoDaConta.REVOGADA.value: ("telegram_revogada", Severity.ERROR, 5),
    EstadoDaConta.BANIDA.value: ("telegram_banida", Severity.ERROR, 5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContaVista:
    """The facts that determine the health of one Telegram account."""

    id: str
    nome: str
    estado: str
    conectada: bool
    desde: datetime
    respondeu_em: datetime | None
    espera_ate: datetime | None
    na_fila: int
    em_duvida: int
    enviadas_hora: int
    reconexoes: int
    erro: str | None

    def problem(self, now: datetime) -> tuple[str, Severity, int] | None:
        """Return the account's problem as text key, severity and lost points. Return None if the account is healthy."""
        if self.estado in _STOPPED:
            return _STOPPED[self.estado]
        if self.estado != EstadoDaConta.ATIVA.value:
            return None
        last = self.respondeu_em or self.desde
        if not self.conectada and now - last > CONNECTS_WITHIN:
            return "telegram_desconectada", Severity.ERROR, 5
        if self.conectada and now - last > SILENT_AFTER:
            return "telegram_silenciosa", Severity.ERROR, 5
        if self.espera_ate is not None:
            return "telegram_em_espera", Severity.WARNING, 1
        return None


def judge(contas: list[ContaVista], now: datetime) -> Report:
    return merge_reports(_findings(contas, now))


def _findings(contas: list[ContaVista], now: datetime) -> Iterator[Report]:
    for conta in contas:
        if (problem := conta.problem(now)) is None:
            continue
        says, severity, lost = problem
        facts: dict[str, Any] = {"conta": conta.nome, "until": conta.espera_ate, "why": conta.erro}
        finding = Finding(
            severity=severity,
            source="telegram",
            cause=f"telegram.{says.removeprefix('telegram_')}.{conta.nome}",
            says=says,
            facts={name: value for name, value in facts.items() if value is not None},
        )
        yield Report(findings=(finding,), lost=lost)


class SaudeDoTelegram:
    def __init__(
        self, database: Database, contas: Contas, beats: Beats, now: Now, clock: Clock, zone: ZoneInfo
    ) -> None:
        self._database = database
        self._contas = contas
        self._beats = beats
        self._now = now
        self._clock = clock
        self._zone = zone

    async def contas(self) -> list[ContaVista]:
        return [_read_account(row) for row in await self._contas.listar()]

    async def ask(self) -> Report:
        return judge(await self.contas(), self._clock.now())

    async def documento(self) -> dict[str, Any]:
        contas, now = await self.contas(), self._clock.now()
        signs = await self._beats.read_signs(within=FORGOTTEN_AFTER, now=self._now())
        loops = {name: name in signs.living_loops for name in ("sync", "outbound", "history", "jobs")}
        problems = {conta.nome: problem for conta in contas if (problem := conta.problem(now)) is not None}
        is_down = bool(contas) and not all(loops.values())
        severe = any(severity is Severity.ERROR for _, severity, _ in problems.values())
        status = "critical" if is_down else "degraded" if severe or problems else "healthy"
        return {
            "status": status if contas else "not_configured",
            "worker": {"worker_id": WORKER, "loops": loops},
            "contas": [self._account(conta, problems) for conta in contas],
            "timestamp": now.astimezone(self._zone).isoformat(),
        }

    def _account(self, conta: ContaVista, problems: Mapping[str, tuple[str, Severity, int]]) -> dict[str, Any]:
        problem = problems.get(conta.nome)
        return {
            "nome": conta.nome,
            "estado": conta.estado,
            "conectada": conta.conectada,
            "respondeu_em": _local(conta.respondeu_em, self._zone),
            "espera_ate": _local(conta.espera_ate, self._zone),
            "na_fila": conta.na_fila,
            "em_duvida": conta.em_duvida,
            "enviadas_ultima_hora": conta.enviadas_hora,
            "reconexoes": conta.reconexoes,
            "problema": None if problem is None else problem[0].removeprefix("telegram_"),
            "erro": conta.erro,
            **describe_reason(conta.erro, "erro"),
        }

    @property
    def page(self) -> HealthPage:
        return HealthPage(name="telegram", ask=self.documento, about="the Telegram accounts and their worker")

    @property
    def check(self) -> Check:
        return Check(name="telegram", section=JOBS_AND_WORKERS, ask=self.ask)


def _read_account(row: Row) -> ContaVista:
    return ContaVista(
        id=str(row["id"]),
        nome=row["nome"],
        estado=row["estado"],
        conectada=row["conectada"],
        desde=row["conectada_em"] or row["created_at"],
        respondeu_em=row["respondeu_em"],
        espera_ate=row["espera_ate"],
        na_fila=row["na_fila"],
        em_duvida=row["em_duvida"],
        enviadas_hora=row["enviadas_hora"],
        reconexoes=row["reconexoes"],
        erro=decode(row["erro"]),
    )


def _local(instant: datetime | None, zone: ZoneInfo) -> str | None:
    return None if instant is None else instant.astimezone(zone).isoformat()
