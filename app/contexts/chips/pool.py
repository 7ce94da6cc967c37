"""Read and write the chips' rows, and compute figures about each chip's messages."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import date, datetime, timedelta
from typing import Final

from app.contexts.chips.confianca import MedidasDoChip, Nivel, Permissoes, factors
from app.contexts.chips.sincronia import Conhecido
from app.contexts.comum.whatsapp import EstadoDaConexao, Instancia
from batuta.kernel import Ids, dataclass
from batuta.sql import AsJson, Dialect, Query, Reading, Row, Transaction, load_queries

# The rates of a chip cover its messages in this period.
WINDOW: Final = timedelta(days=30)
DAY: Final = timedelta(days=1)
# A message younger than this may still be delivered.
SETTLES_WITHIN: Final = timedelta(minutes=10)
# After this many checks in a row with a closed connection, a chip is marked as disconnected.
COUNTS_FROM: Final = 2
TEXT: Final = "texto"


@dataclass(frozen=True, slots=True)
class PoolQueries:
    known: Query
    add: Query
    seen: Query
    rename: Query
    senders: Query
    answered: Query
    shut: Query
    figures: Query
    judged: Query
    judge: Query
    history: Query
    lock: Query
    snapshots: Query
    snapshot: Query
    recount: Query
    shown: Query
    waiting: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Numeros:
    """Figures about one chip's messages. ``contatados``, ``responderam`` and ``bloquearam`` (contacted, answered,
    blocked) count people, not messages. Rates are fractions between 0 and 1.
    """

    enviadas: int = 0
    recebidas: int = 0
    entregues: int = 0
    lidas: int = 0
    falhas: int = 0
    decididas: int = 0  # messages whose delivery is confirmed, failed, or overdue
    contatados: int = 0
    responderam: int = 0
    bloquearam: int = 0

    @property
    def taxa_resposta(self) -> float:
        return _rate(self.responderam, self.contatados)

    @property
    def taxa_delivery(self) -> float:
        return _rate(self.entregues, self.decididas)

    @property
    def taxa_block(self) -> float:
        return _rate(self.bloquearam, self.contatados)

    @property
    def taxas(self) -> dict[str, float]:
        return {
            "taxa_resposta": self.taxa_resposta,
            "taxa_delivery": self.taxa_delivery,
            "taxa_block": self.taxa_block,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipDeEnvio:
    id: str
    instance: str
    connected: bool
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Avaliado:
    """A chip with the figures from which its trust is computed. ``has_history`` says whether an earlier trust score is
    stored for the chip.
    """

    id: str
    telefone: str | None
    tipo: str
    status: str
    fase: str
    trust: int
    midia: tuple[str, ...]
    medidas: MedidasDoChip
    has_history: bool


class Pool:
    def __init__(self, dialect: Dialect, ids: Ids) -> None:
        self._queries = load_queries(PoolQueries, "sql/pool.sql", dialect)
        self._ids = ids

    async def list_known(self, reading: Reading) -> list[Conhecido]:
        return [
            Conhecido(
                id=row["id"],
                instance=row["instance_name"],
                status=row["status"],
                telefone=row["telefone"],
                left=row["antes"],
            )
            for row in await reading.all(self._queries.known)
        ]

    async def add(self, transaction: Transaction, instance: Instancia, *, now: datetime) -> bool:
        """Add a chip. Returns False if another chip has the same number or name."""
        is_open = instance.state is EstadoDaConexao.OPEN
        return bool(
            await transaction.run(
                self._queries.add,
                id=self._ids.new(),
                telefone=instance.telefone,
                instance=instance.name,
                status="warming" if is_open else "pending",
                connected=is_open,
                warming_since=now if is_open else None,
                now=now,
            )
        )

    async def record_connection(
        self,
        transaction: Transaction,
        id: str,
        *,
        connected: bool,
        asked_at: datetime,
        now: datetime,
        telefone: str | None = None,
    ) -> None:
        """Store the connection state that the gateway returned for a request. If a webhook event has arrived since the
        request was made (``asked_at``), store nothing, because the event is newer.
        """
        await transaction.run(
            self._queries.seen, id=id, connected=connected, telefone=telefone, asked_at=asked_at, now=now
        )

    async def rename(self, transaction: Transaction, id: str, instance: str, *, now: datetime) -> None:
        await transaction.run(self._queries.rename, id=id, instance=instance, now=now)

    async def senders(self, reading: Reading) -> list[ChipDeEnvio]:
        return [
            ChipDeEnvio(
                id=row["id"],
                instance=row["instance_name"],
                connected=row["evolution_connected"],
                failures=row["conexao_falhas"],
            )
            for row in await reading.all(self._queries.senders)
        ]

    async def record_state(
        self, transaction: Transaction, id: str, *, is_open: bool, asked_at: datetime, now: datetime
    ) -> None:
        if is_open:
            await transaction.run(self._queries.answered, id=id, asked_at=asked_at, now=now)
        else:
            await transaction.run(self._queries.shut, id=id, counts_from=COUNTS_FROM, asked_at=asked_at, now=now)

    async def figures(self, reading: Reading, *, since: datetime, until: datetime, now: datetime) -> dict[str, Numeros]:
        """Map every chip's id to the figures about its messages. Chips without messages are included."""
        rows = await reading.all(
            self._queries.figures, since=since, until=until, settled=min(until, now - SETTLES_WITHIN)
        )
        return {row["id"]: Numeros(**{name: row[name] for name in _COUNTED}) for row in rows}

    async def list_assessed(self, reading: Reading, *, now: datetime) -> list[Avaliado]:
        figures = await self.figures(reading, since=now - WINDOW, until=now, now=now)
        rows = await reading.all(self._queries.judged, day_ago=now - DAY)
        return [_assess(row, figures[row["id"]], now) for row in rows if row["id"] in figures]

    async def judge(
        self,
        transaction: Transaction,
        chip: Avaliado,
        trust: int,
        nivel: Nivel,
        may: Permissoes,
        *,
        now: datetime,
    ) -> None:
        made_of, medidas = AsJson(factors(chip.medidas, chip.fase)), chip.medidas
        await transaction.run(
            self._queries.judge,
            id=chip.id,
            trust=trust,
            level=nivel.value,
            factors=made_of,
            taxa_resposta=medidas.taxa_resposta,
            taxa_delivery=medidas.taxa_delivery,
            taxa_block=medidas.taxa_block,
            conversas=medidas.conversas_bidirecionais,
            midia=AsJson(list(chip.midia)),
            erros=medidas.erros_24h,
            dias_sem_erro=medidas.dias_sem_erro,
            **asdict(may),
            now=now,
        )
        if chip.trust != trust or not chip.has_history:
            await transaction.run(
                self._queries.history,
                id=self._ids.new(),
                chip_id=chip.id,
                trust=trust,
                level=nivel.value,
                factors=made_of,
                now=now,
            )

    async def lock(self, transaction: Transaction) -> list[Row]:
        """Lock and return every chip, so that no other transaction changes the chips' counts before the caller's
        transaction ends.
        """
        return await transaction.all(self._queries.lock)

    async def snapshot(
        self,
        transaction: Transaction,
        chips: Iterable[Row],
        figures: Mapping[str, Numeros],
        data: date,
        *,
        is_over: bool,
        now: datetime,
    ) -> tuple[int, int]:
        """Store one snapshot per chip for the day ``data``: its message counts, trust and status. Return the number of
        new snapshots and the number of snapshots that already existed.
        """
        there = {row["chip_id"] for row in await transaction.all(self._queries.snapshots, data=data)}
        made = kept = 0
        for chip in chips:
            numeros = figures.get(chip["id"], Numeros())
            await transaction.run(
                self._queries.snapshot,
                id=self._ids.new(),
                chip_id=chip["id"],
                data=data,
                enviadas=numeros.enviadas,
                recebidas=numeros.recebidas,
                entregues=numeros.entregues,
                lidas=numeros.lidas,
                falhas=numeros.falhas,
                **numeros.taxas,
                trust=chip["trust_score"],
                level=chip["trust_level"],
                status=chip["status"],
                is_over=is_over,
                now=now,
            )
            made, kept = (made, kept + 1) if chip["id"] in there else (made + 1, kept)
        return made, kept

    async def recount(self, transaction: Transaction, id: str, numeros: Numeros, *, now: datetime) -> None:
        await transaction.run(
            self._queries.recount, id=id, enviadas=numeros.enviadas, recebidas=numeros.recebidas, now=now
        )

    async def list_chips(self, reading: Reading) -> list[Row]:
        return await reading.all(self._queries.shown)

    async def count_waiting(self, reading: Reading, *, soon: datetime) -> int:
        """Return the number of messages that are waiting for a chip and are due by ``soon``."""
        row = await reading.one(self._queries.waiting, soon=soon)
        assert row is not None
        return int(row["waiting"])


_COUNTED = tuple(Numeros.__dataclass_fields__)


def _assess(row: Row, numeros: Numeros, now: datetime) -> Avaliado:
    begun = row["desde"]
    errors = [at for at in (row["ultimo_erro_em"], row["erro_em"], row["perda_em"]) if at is not None]
    used = {*row["tipos_midia_usados"], *([TEXT] if numeros.enviadas else [])}
    return Avaliado(
        id=row["id"],
        telefone=row["telefone"],
        tipo=row["tipo"],
        status=row["status"],
        fase=row["fase_warmup"],
        trust=row["trust_score"],
        midia=tuple(sorted(used)),
        medidas=MedidasDoChip(
            idade_dias=max(0.0, (now - begun) / DAY),
            taxa_resposta=numeros.taxa_resposta,
            taxa_delivery=numeros.taxa_delivery,
            taxa_block=numeros.taxa_block,
            tipos_midia=len(used),
            erros_24h=row["erros"],
            conversas_bidirecionais=numeros.responderam,
            dias_sem_erro=max(0, (now - max(errors, default=begun)).days),
            seguidas=row["seguidas"],
        ),
        has_history=row["tem_historia"],
    )


def _rate(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
