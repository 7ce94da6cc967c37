"""Check whether the doctors' phones are on WhatsApp.

    pendente ──claim──▶ validando ──▶ validado | invalido
        ▲                   │  └────▶ erro ──later──▶ validando
        └── no answer ──────┘
              (the claim of a dead process expires)

Each look-up lowers the reputation of the chip that makes the request. Therefore the job looks up few phones at a time,
only by day, and with one chip. While the job is paused, it looks up no phones.
"""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.comum.disjuntor import GATEWAY, report_of
from app.contexts.comum.whatsapp import NO_LINE, Numero, Unavailable, WhatsApp, circuit_of
from app.contexts.mensagens.api import PAUSES, SAFE_MODE, Switches
from batuta import Done, Failed, Outcome, Partial, Skipped
from batuta.guards import WORKED, Admit, Circuits, Hold, Ticket, judge_switch
from batuta.jobs import JobCall, Window
from batuta.kernel import Clock, Json, dataclass
from batuta.reasons import define, hold_reason
from batuta.sql import Database, Query, load_queries

NO_LOOKUP = define("consulta_falhou", "no phone could be looked up: {why}")
OUTSIDE_HOURS = define("consulta_fora_do_horario", "phones are looked up from 08:00 to 20:00; next at {next}")
NO_CHIP_TO_ASK = define("sem_chip_para_consulta", "no connected sending chip is free for the lookup")
SOME_LEFT_OUT = define("consulta_incompleta", "the gateway omitted some phones; they will be looked up later")

AT_MOST: Final = 50
# How long a claim is valid. It is longer than the call may take.
LEASE: Final = timedelta(minutes=10)
AGAIN_AFTER: Final = (timedelta(hours=1), timedelta(hours=6), timedelta(days=1))
HOURS: Final = Window(opens=time(8), lasts=timedelta(hours=12), days=frozenset(range(7)))


@dataclass(frozen=True, slots=True)
class PhoneQueries:
    due: Query
    claim: Query
    settle: Query
    askers: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservado:
    """A phone that this process has leased for a look-up. ``until`` is the end of the lease."""

    id: str
    telefone: str
    tentativas: int
    until: datetime


def verdict_of(telefone: str, found: Sequence[Numero]) -> str:
    """Return a phone's new status. If the gateway's answer omits the phone, the status is erro, and the phone is looked
    up again later.
    """
    exists = next((each.exists for each in found if each.telefone == telefone), None)
    return "erro" if exists is None else "validado" if exists else "invalido"


def again_after(tentativas: int) -> timedelta:
    """Return how long to wait before a phone is looked up again. ``tentativas`` is the number of failed attempts so
    far.
    """
    return AGAIN_AFTER[min(tentativas, len(AGAIN_AFTER)) - 1]


class Validacao:
    def __init__(
        self,
        database: Database,
        line: WhatsApp | None,
        circuits: Circuits,
        switches: Switches,
        zone: ZoneInfo,
        clock: Clock,
    ) -> None:
        """Create the job that checks doctors' phones. ``line`` is the WhatsApp client, or None if no gateway is
        configured.
        """
        self._database = database
        self._line = line
        self._circuits = circuits
        self._switches = switches
        self._zone = zone
        self._clock = clock
        self._queries = load_queries(PhoneQueries, "sql/validacao.sql", database.dialect)

    async def validar_telefones(self, call: JobCall) -> Outcome:
        if (hold := await self._find_hold()) is not None:
            return Skipped(hold)
        assert self._line is not None
        admitted = await self._admit()
        if isinstance(admitted, str):
            return Skipped(admitted)
        instance, gateway = admitted
        try:
            claimed = await self._claim()
        except BaseException:
            await gateway.give_back()
            raise
        if not claimed:
            await gateway.give_back()
            return Done(items=0, result=_counts([], 0))
        found = await self._line.numbers(instance, [each.telefone for each in claimed])
        if isinstance(found, Unavailable):
            await gateway.report(report_of(found, "whatsappNumbers"))
            await self._give_back(claimed)
            return Failed(NO_LOOKUP(why=found.why))
        await gateway.report(WORKED)
        return await self._settle(claimed, found)

    async def _find_hold(self) -> str | None:
        if self._line is None:
            return NO_LINE()
        now = self._clock.now()
        if not HOURS.is_open(now, self._zone):
            return OUTSIDE_HOURS(next=HOURS.next_open(now, self._zone).astimezone(self._zone))
        switches = await self._switches.all()
        for rule in (*PAUSES, SAFE_MODE):
            if isinstance(hold := judge_switch(rule, switches.get(rule.key), now), Hold):
                return hold_reason(hold.reason)
        return None

    async def _admit(self) -> tuple[str, Ticket] | str:
        """Return two values: the instance that will make the look-up, and the permission from the gateway's circuit
        breaker. If no look-up may start, return the reason instead.
        """
        now = self._clock.now()
        gateway = await self._circuits.breaker(GATEWAY).admit(now)
        if isinstance(gateway, Hold):
            return hold_reason(gateway.reason)
        for chip in await self._database.all(self._queries.askers, now=now):
            own = await self._circuits.breaker(circuit_of(chip["instance_name"])).admit(now)
            if isinstance(own, Admit):
                await (
                    own.ticket.give_back()
                )  # the look-up proves nothing about sending, so the chip's ticket is returned unused
                return str(chip["instance_name"]), gateway.ticket
        await gateway.ticket.give_back()
        return NO_CHIP_TO_ASK()

    async def _claim(self) -> list[Reservado]:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            rows = await transaction.all(self._queries.due, now=now, limit=AT_MOST)
            return [
                Reservado(
                    id=row["id"], telefone=row["telefone"], tentativas=row["telefone_tentativas"], until=now + LEASE
                )
                for row in rows
                if await transaction.run(self._queries.claim, id=row["id"], lease_until=now + LEASE, now=now)
            ]

    async def _give_back(self, claimed: Sequence[Reservado]) -> None:
        """Release the claimed phones without counting an attempt, because the gateway did not answer."""
        for each in claimed:
            await self._write(each, "pendente", next_at=None, tentativas=each.tentativas)

    async def _settle(self, claimed: Sequence[Reservado], found: Sequence[Numero]) -> Outcome:
        now, ours = self._clock.now(), 0
        words = [verdict_of(each.telefone, found) for each in claimed]
        for each, word in zip(claimed, words, strict=True):
            failed = each.tentativas + 1 if word == "erro" else 0
            next_at = now + again_after(failed) if failed else None
            ours += await self._write(each, word, next_at=next_at, tentativas=failed)
        details = _counts(words, len(claimed) - ours)
        if "erro" in words:
            return Partial(SOME_LEFT_OUT(), items=ours, result=details)
        return Done(items=ours, result=details)

    async def _write(self, each: Reservado, status: str, *, next_at: datetime | None, tentativas: int) -> int:
        return await self._database.run(
            self._queries.settle,
            id=each.id,
            lease_until=each.until,
            status=status,
            next_at=next_at,
            tentativas=tentativas,
            is_known=status in ("validado", "invalido"),
            now=self._clock.now(),
        )


def _counts(words: Sequence[str], lost: int) -> dict[str, Json]:
    """Return the counts for the job's result. ``lost`` counts the phones whose lease expired before the gateway
    answered.
    """
    return {
        "processados": len(words),
        "validados": words.count("validado"),
        "invalidos": words.count("invalido"),
        "erros": words.count("erro"),
        "skips": lost,
    }
