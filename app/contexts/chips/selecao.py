"""Choose the chip that sends a message. A chip that only reads groups (listener or scraper) never sends, even if no
other chip is available.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from app.contexts.mensagens.api import DIA, HORA, TipoDeMensagem
from batuta.guards import Limit, gap
from batuta.kernel import Ids, dataclass
from batuta.sql import Dialect, Query, Reading, Transaction, load_queries

# Trust that a chip needs for a type of message: the preferred trust, and the minimum that counts if no chip has the
# preferred trust.
TRUST: Final = {
    TipoDeMensagem.PROSPECCAO: (80, 60),
    TipoDeMensagem.CAMPANHA: (80, 60),
    TipoDeMensagem.FOLLOWUP: (60, 40),
    TipoDeMensagem.RESPOSTA: (40, 20),
    TipoDeMensagem.SISTEMA: (40, 20),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Emissor:
    """A candidate for sending a message: a chip with its trust, permissions, limits and recent sends."""

    id: str
    instance: str
    trust: int
    connected: bool = True
    cooldown_until: datetime | None = None
    may: Collection[TipoDeMensagem] = ()
    per_hour: int = 0
    per_day: int = 0
    pause: timedelta = timedelta(0)
    sent_this_hour: int = 0
    sent_this_day: int = 0
    is_of_conversation: bool = False
    has_written_to_doctor: bool = False

    @property
    def limits(self) -> tuple[Limit, ...]:
        """This chip's rate limits, shared by all processes."""
        key = f"chip:{self.id}"
        limits = [
            Limit(name="chip/hora", key=key, most=self.per_hour, per=HORA),
            Limit(name="chip/dia", key=key, most=self.per_day, per=DIA),
        ]
        if self.pause > timedelta(0):
            limits.append(gap("chip/intervalo", f"{key}:gap", self.pause))
        return tuple(limits)


def rank(
    chips: Sequence[Emissor], tipo: TipoDeMensagem, now: datetime, *, excluded: Collection[str] = ()
) -> list[Emissor]:
    """Return the chips that may send this type of message, best first.

    For an answer, the conversation's chip comes first. Next are chips that have written to the doctor before. The
    remaining chips are ordered by their number of messages in the last hour, then by trust.
    """
    able = [chip for chip in chips if chip.id not in excluded and _is_able(chip, tipo, now)]
    wanted, at_least = TRUST[tipo]
    trusted = [chip for chip in able if chip.trust >= wanted] or [chip for chip in able if chip.trust >= at_least]
    return sorted(
        trusted,
        key=lambda chip: (
            not (chip.is_of_conversation and not tipo.por_iniciativa_nossa),
            not chip.has_written_to_doctor,
            chip.sent_this_hour,
            -chip.trust,
            chip.id,
        ),
    )


def _is_able(chip: Emissor, tipo: TipoDeMensagem, now: datetime) -> bool:
    is_resting = chip.cooldown_until is not None and chip.cooldown_until > now
    has_room = chip.sent_this_day < chip.per_day and chip.sent_this_hour < chip.per_hour
    return tipo in chip.may and chip.connected and not is_resting and has_room


@dataclass(frozen=True, slots=True)
class SelectionQueries:
    senders: Query
    sender: Query
    rest: Query
    error: Query
    status: Query


class Emissores:
    def __init__(self, dialect: Dialect, ids: Ids) -> None:
        self._queries = load_queries(SelectionQueries, "sql/selecao.sql", dialect)
        self._ids = ids

    async def all(self, reading: Reading, *, cliente_id: str, conversa_id: str | None, now: datetime) -> list[Emissor]:
        ago = {"hour_ago": now - HORA, "day_ago": now - DIA}
        rows = await reading.all(self._queries.senders, cliente_id=cliente_id, conversa_id=conversa_id, **ago)
        return [
            Emissor(
                id=row["id"],
                instance=row["instance_name"],
                trust=row["trust_score"],
                connected=row["evolution_connected"],
                cooldown_until=row["cooldown_until"],
                may=_may(row["pode_prospectar"], row["pode_followup"], row["pode_responder"]),
                per_hour=row["limite_hora"],
                per_day=row["limite_dia"],
                pause=timedelta(seconds=row["delay_minimo_segundos"]),
                sent_this_hour=row["na_hora"],
                sent_this_day=row["no_dia"],
                is_of_conversation=row["da_conversa"],
                has_written_to_doctor=row["ja_falou"],
            )
            for row in rows
        ]

    async def still_may(self, transaction: Transaction, id: str, *, now: datetime) -> bool:
        return await transaction.one(self._queries.sender, id=id, now=now) is not None

    async def rest(self, transaction: Transaction, id: str, why: str, *, until: datetime, now: datetime) -> None:
        """Stop a chip from sending until the instant ``until``, because it caused an error. Store the error, which
        lowers the chip's trust.
        """
        await transaction.run(self._queries.rest, id=id, until=until, now=now)
        await transaction.run(self._queries.error, id=self._ids.new(), chip_id=id, motivo=why, now=now)

    async def status(self, transaction: Transaction, id: str) -> str | None:
        row = await transaction.one(self._queries.status, id=id)
        return None if row is None else str(row["status"])


def _may(prospect: bool, follow_up: bool, answer: bool) -> frozenset[TipoDeMensagem]:
    kinds: list[TipoDeMensagem] = []
    if prospect:
        kinds += [TipoDeMensagem.PROSPECCAO, TipoDeMensagem.CAMPANHA]
    if follow_up:
        kinds.append(TipoDeMensagem.FOLLOWUP)
    if answer:
        kinds += [TipoDeMensagem.RESPOSTA, TipoDeMensagem.SISTEMA]
    return frozenset(kinds)
