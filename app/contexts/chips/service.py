"""Change chips in response to connection events and operators' decisions.

A lost connection does not change a chip's status; otherwise a single outage would take every chip out of service. A ban
changes the status immediately and permanently. If the phone is logged out, the status changes too, because only a
person with the phone can pair it again.
"""

from datetime import datetime
from enum import StrEnum

from app.contexts.comum.whatsapp import EstadoDaConexao
from app.contexts.operacao.service import Eventos
from app.contexts.webhooks.api import Ligacao
from batuta import BatutaError
from batuta.kernel import Ids, Json, dataclass
from batuta.reasons import define, encode
from batuta.sql import Dialect, Query, Transaction, load_queries

BANS = {
    402: define("chip_banido_402", "temporary ban, code 402"),
    403: define("chip_banido_403", "access forbidden, code 403"),
    406: define("chip_banido_406", "permanent ban, code 406"),
}
LOGGED_OUT_BY_PHONE = define("chip_saiu_pelo_celular", "the phone logged out, code 401")
LOGGED_OUT = 401
IN_USE = frozenset({"warming", "ready", "active", "degraded", "cooldown", "recovery"})


@dataclass(frozen=True, slots=True)
class ChipQueries:
    chip: Query
    connected: Query
    ban: Query
    move: Query
    note: Query
    assign: Query


class UnknownChip(BatutaError):
    sentence = "no chip has the instance {instance}: `batuta chips` lists all"


class InicioNoFuturo(BatutaError):
    sentence = "a chip cannot be in use since {day}, which is in the future: give the day of its first message"


class StatusDoChip(StrEnum):
    """Chip statuses that an operator may set. Only Julia sets the statuses pending, degraded and banned."""

    WARMING = "warming"
    READY = "ready"
    ACTIVE = "active"
    PAUSED = "paused"
    CANCELLED = "cancelled"


class TipoDeChip(StrEnum):
    JULIA = "julia"
    LISTENER = "listener"
    SCRAPER = "scraper"


class Fase(StrEnum):
    REPOUSO = "repouso"
    SETUP = "setup"
    PRIMEIROS_CONTATOS = "primeiros_contatos"
    EXPANSAO = "expansao"
    PRE_OPERACAO = "pre_operacao"
    TESTE_GRADUACAO = "teste_graduacao"
    OPERACAO = "operacao"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisaoDoChip:
    """An operator's changes to a chip. None leaves a value unchanged.

    ``em_uso_desde`` is the start of the day on which the number was first used, perhaps by another system. Trust grows
    with the age of the number.
    """

    status: StatusDoChip | None = None
    tipo: TipoDeChip | None = None
    fase: Fase | None = None
    em_uso_desde: datetime | None = None


class Chips:
    def __init__(self, dialect: Dialect, ids: Ids, eventos: Eventos) -> None:
        self._queries = load_queries(ChipQueries, "sql/chips.sql", dialect)
        self._ids = ids
        self._eventos = eventos

    async def ligacao(self, transaction: Transaction, fato: Ligacao, *, now: datetime) -> None:
        chip = await transaction.one(self._queries.chip, instance=fato.instance)
        if chip is None:
            return  # the instance has no chip yet; the synchronisation job adds it
        is_newest = await transaction.run(
            self._queries.connected,
            id=chip["id"],
            connected=fato.state is EstadoDaConexao.OPEN,
            em=None
            if fato.em is None
            else min(fato.em, now),  # an event time in the future must not block later events
            telefone=fato.telefone,
            now=now,
        )
        # A ban counts even if its event is late; a log-out counts only if no newer event is known.
        if fato.state is EstadoDaConexao.OPEN or fato.code is None or not (is_newest or fato.code in BANS):
            return
        await self.cortar(transaction, chip["id"], chip["status"], fato.code, by="webhook", now=now)

    async def cortar(
        self, transaction: Transaction, chip_id: str, status: str, code: int, *, by: str, now: datetime
    ) -> bool:
        """Change the chip's status according to the code with which WhatsApp closed its connection. Return whether the
        status changed.
        """
        if code in BANS:
            return await self.banir(transaction, chip_id, status, code, by=by, now=now)
        if code != LOGGED_OUT or status not in IN_USE:
            return False
        moved = await self.mover(transaction, chip_id, status, "pending", LOGGED_OUT_BY_PHONE(), by=by, now=now)
        if moved:
            await self._eventos.record(
                transaction, "chip_deslogado", now=now, dedupe_key=None, props={"chip_id": chip_id}
            )
        return moved

    async def banir(
        self, transaction: Transaction, chip_id: str, status: str, code: int, *, by: str, now: datetime
    ) -> bool:
        """Mark a chip as banned. Returns False if it was already banned."""
        reason = BANS[code]()
        if not await transaction.run(self._queries.ban, id=chip_id, reason=encode(reason), now=now):
            return False
        await self._note(transaction, chip_id, status, "banned", reason, by, now)
        await self._eventos.record(
            transaction, "chip_banido", now=now, dedupe_key=None, props={"chip_id": chip_id, "codigo": code}
        )
        return True

    async def decidir(
        self, transaction: Transaction, instance: str, what: DecisaoDoChip, why: str, *, by: str, now: datetime
    ) -> dict[str, str]:
        """Apply an operator's decision about a chip's status, type and phase, and return the resulting values."""
        chip = await transaction.one(self._queries.chip, instance=instance)
        if chip is None:
            raise UnknownChip(instance=instance)
        if (since := what.em_uso_desde) is not None and since > now:
            raise InicioNoFuturo(day=since.date())
        after = {
            "status": str(what.status or chip["status"]),
            "tipo": str(what.tipo or chip["tipo"]),
            "fase": str(what.fase or chip["fase_warmup"]),
        }
        await transaction.run(
            self._queries.assign,
            id=chip["id"],
            tipo=after["tipo"],
            fase=after["fase"],
            sends=after["tipo"] == TipoDeChip.JULIA,
            is_banned=after["status"] == "banned",
            since=since,
            now=now,
        )
        if after["status"] != chip["status"]:
            await self.mover(transaction, chip["id"], chip["status"], after["status"], why, by=by, now=now)
        props: dict[str, Json] = {"instance": instance, "por": by, "motivo": why, **after}
        if since is not None:
            props["em_uso_desde"] = f"{since:%Y-%m-%d}"
        await self._eventos.record(transaction, "chip_alterado", now=now, dedupe_key=None, source="ops", props=props)
        return after

    async def mover(
        self, transaction: Transaction, id: str, before: str, after: str, why: str, *, by: str, now: datetime
    ) -> bool:
        """Change a chip's status from ``before`` to ``after``. Return False if the chip no longer has the status
        ``before``.
        """
        if not await transaction.run(self._queries.move, id=id, from_status=before, to_status=after, now=now):
            return False
        await self._note(transaction, id, before, after, why, by, now)
        return True

    async def _note(
        self, transaction: Transaction, chip_id: str, before: str, after: str, why: str, by: str, now: datetime
    ) -> None:
        await transaction.run(
            self._queries.note,
            id=self._ids.new(),
            chip_id=chip_id,
            from_status=before,
            to_status=after,
            reason=encode(why),
            triggered_by=by,
            now=now,
        )
