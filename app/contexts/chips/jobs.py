"""Scheduled jobs for the chips. If the gateway does not answer, the jobs leave all chips unchanged."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from app.contexts.chips.confianca import demotion, level, permissions, score
from app.contexts.chips.pool import COUNTS_FROM, DAY, Avaliado, ChipDeEnvio, Pool
from app.contexts.chips.service import Chips
from app.contexts.chips.sincronia import (
    Cortada,
    Mudanca,
    Nova,
    Plano,
    Renomeada,
    Sumida,
    Vista,
    Volta,
    find_unlisted,
    plan,
)
from app.contexts.comum.disjuntor import Disjuntor
from app.contexts.comum.whatsapp import NO_LINE, EstadoDaConexao, Unavailable, WhatsApp
from app.contexts.operacao.service import Eventos
from batuta import Done, Failed, Outcome, Partial, Skipped
from batuta.jobs import JobCall
from batuta.kernel import Clock, Json
from batuta.reasons import define, join
from batuta.sql import Database, Transaction

NOTHING_CHANGED = define("chips_inalterados", "{why}: nothing was changed")
NO_INSTANCE = define("sem_instancias", "the gateway lists no instance although {count} are known: nothing was changed")
NUMBER_TAKEN = define("numero_repetido", "{instance} has the number of another chip: it was not added")
NO_ACTIVE_CHIP = define("sem_chip_ativo", "no chip is active: nothing could be sent")
NO_LINE_SEEN = define("linhas_sem_resposta", "no connection could be checked ({why}): nothing was changed")
DISCONNECTED = define("desconectados", "disconnected: {instances}")
CHECK_AGAIN = define(
    "desconectados_aguardando",
    "disconnected at this check (counted only if still disconnected at the next one): {instances}",
)
PAIRED = define("chip_pareado", "its phone is paired again")
NO_ANSWER_ABOUT = define("sem_resposta_de", "no answer about {instances}")

SHOWN: Final = 10
# A snapshot that is taken before noon is stored for the previous day.
LATE_UNTIL: Final = timedelta(hours=12)
DEMOTED_FROM: Final = frozenset({"warming", "ready", "active"})
SYNC, LOOK, TRUST = "sincronizar_chips", "verificar_whatsapp", "atualizar_trust_scores"


class ChipJobs:
    def __init__(
        self,
        database: Database,
        line: WhatsApp | None,
        gateway: Disjuntor,
        pool: Pool,
        chips: Chips,
        eventos: Eventos,
        zone: ZoneInfo,
        clock: Clock,
    ) -> None:
        """Create the scheduled jobs for the chips. ``line`` is the WhatsApp client, or None if no gateway is
        configured.
        """
        self._database = database
        self._line = line
        self._gateway = gateway
        self._pool = pool
        self._chips = chips
        self._eventos = eventos
        self._zone = zone
        self._clock = clock

    async def sincronizar_chips(self, call: JobCall) -> Outcome:
        """Create chips for new gateway instances, and store whether each chip is connected."""
        if self._line is None:
            return Skipped(NO_LINE())
        asked_at = self._clock.now()
        instances = await self._gateway.ask("fetchInstances", self._line.instances)
        if isinstance(instances, Unavailable):
            return Failed(NOTHING_CHANGED(why=instances.why))
        chips = await self._pool.list_known(self._database)
        if chips and not instances:
            return Failed(NO_INSTANCE(count=len(chips)))
        asked = {chip.instance: await self._connection(chip.instance) for chip in find_unlisted(chips, instances)}
        made = plan(chips, instances, asked)
        async with self._database.transaction() as transaction:
            done = Counter([await self._change(transaction, made, each, asked_at) for each in made.changes])
        details: dict[str, Json] = {
            "instancias": len(instances),
            **{
                word: done[word]
                for word in ("novas", "conectadas", "desconectadas", "renomeadas", "voltaram", "sumidas")
            },
        }
        if made.doubts:
            return Partial(join(made.doubts), items=len(instances), result=details)
        return Done(items=len(instances), result=details)

    async def _change(self, transaction: Transaction, made: Plano, change: Mudanca, asked_at: datetime) -> str:
        """Apply one change to a chip. Return the name of the counter for this change in the job's result."""
        now = self._clock.now()
        match change:
            case Nova(instance=instance):
                if not await self._pool.add(transaction, instance, now=now):
                    made.doubts.append(NUMBER_TAKEN(instance=instance.name))
                    return "recusadas"
                await self._record_event(transaction, "chip_encontrado", instance.name, now)
                return "novas"
            case Renomeada(chip=chip, instance=name):
                await self._pool.rename(transaction, chip.id, name, now=now)
                await self._record_event(transaction, "chip_renomeado", name, now)
                return "renomeadas"
            case Vista(chip=chip, connected=connected, telefone=telefone):
                await self._pool.record_connection(
                    transaction, chip.id, connected=connected, telefone=telefone, asked_at=asked_at, now=now
                )
                return "conectadas" if connected else "desconectadas"
            case Sumida(chip=chip):
                await self._pool.record_connection(transaction, chip.id, connected=False, asked_at=asked_at, now=now)
                return "sumidas"
            case Volta(chip=chip):
                await self._chips.mover(transaction, chip.id, chip.status, chip.returns_to, PAIRED(), by=SYNC, now=now)
                return "voltaram"
            case Cortada(chip=chip, code=code):
                await self._chips.cortar(transaction, chip.id, chip.status, code, by=SYNC, now=now)
                return "cortadas"
            case _:
                assert_never(change)

    async def verificar_whatsapp(self, call: JobCall) -> Outcome:
        """Check the connection of every chip that sends.

        A chip is marked as disconnected when two checks in a row find its connection closed.
        """
        if self._line is None:
            return Skipped(NO_LINE())
        senders = await self._pool.senders(self._database)
        if not senders:
            return Skipped(NO_ACTIVE_CHIP())
        asked_at = self._clock.now()
        answers = [(chip, await self._connection(chip.instance)) for chip in senders]
        silent = [chip.instance for chip, answer in answers if isinstance(answer, Unavailable)]
        if len(silent) == len(answers):
            why = next(answer.why for _, answer in answers if isinstance(answer, Unavailable))
            return Failed(NO_LINE_SEEN(why=why))
        looked = [
            (chip, answer is EstadoDaConexao.OPEN) for chip, answer in answers if isinstance(answer, EstadoDaConexao)
        ]
        await self._record_states(looked, asked_at)
        shut = [chip for chip, is_open in looked if not is_open]
        down = [chip.instance for chip in shut if chip.failures + 1 >= COUNTS_FROM]
        waiting = [chip.instance for chip in shut if chip.instance not in down]
        details: dict[str, Json] = {
            "conexao": "desconectado" if down else "desconectado_aguardando" if shut else "ok",
            "conectados": len(looked) - len(shut),
            "aguardando": len(waiting),
            "desconectados": len(down),
            "sem_resposta": len(silent),
        }
        wrong = [DISCONNECTED(instances=", ".join(down))] if down else []
        wrong += [CHECK_AGAIN(instances=", ".join(waiting))] if waiting else []
        wrong += [NO_ANSWER_ABOUT(instances=", ".join(silent))] if silent else []
        return Partial(join(wrong), len(looked), details) if wrong else Done(items=len(looked), result=details)

    async def _connection(self, instance: str) -> EstadoDaConexao | Unavailable:
        assert self._line is not None
        line = self._line
        return await self._gateway.ask("connectionState", lambda: line.connection(instance))

    async def _record_states(self, looked: Sequence[tuple[ChipDeEnvio, bool]], asked_at: datetime) -> None:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            for chip, is_open in looked:
                await self._pool.record_state(transaction, chip.id, is_open=is_open, asked_at=asked_at, now=now)
                if not is_open and chip.failures + 1 == COUNTS_FROM:
                    await self._record_event(transaction, "chip_desconectado", chip.instance, now)

    async def atualizar_trust_scores(self, call: JobCall) -> Outcome:
        """Compute each chip's trust and permissions. A chip with too many errors stops sending."""
        now = self._clock.now()
        chips = await self._pool.list_assessed(self._database, now=now)
        demoted = 0
        shown: list[Json] = []
        for chip in chips:
            trust = score(chip.medidas, chip.fase)
            nivel = level(trust)
            async with self._database.transaction() as transaction:
                may = permissions(chip.tipo, chip.fase, nivel)
                await self._pool.judge(transaction, chip, trust, nivel, may, now=now)
                demoted += await self._demote(transaction, chip, trust, now)
            shown.append({"telefone": last_digits(chip.telefone), "score": trust, "nivel": nivel.value})
        return Done(items=len(chips), result={"atualizados": len(chips), "rebaixados": demoted, "chips": shown[:SHOWN]})

    async def _demote(self, transaction: Transaction, chip: Avaliado, trust: int, now: datetime) -> bool:
        why = demotion(trust, chip.medidas) if chip.tipo == "julia" and chip.status in DEMOTED_FROM else None
        if why is None:
            return False
        moved = await self._chips.mover(transaction, chip.id, chip.status, "degraded", why, by=TRUST, now=now)
        if moved:
            props: dict[str, Json] = {"chip_id": chip.id, "trust": trust, "motivo": why.code}
            await self._eventos.record(transaction, "chip_rebaixado", now=now, dedupe_key=None, props=props)
        return moved

    async def snapshot_chips_diario(self, call: JobCall) -> Outcome:
        """Store a snapshot of every chip: its message counts for one day, its trust and its status. A run before noon
        stores the snapshots of the previous day, a later run those of today.
        """
        now = self._clock.now()
        data = (now.astimezone(self._zone) - LATE_UNTIL).date()
        async with self._database.transaction() as transaction:
            made, kept = await self._snapshot(transaction, data, now)
        return Done(
            items=made + kept,
            result={
                "data": data.isoformat(),
                "total_chips": made + kept,
                "snapshots_criados": made,
                "snapshots_existentes": kept,
                "erros": 0,
            },
        )

    async def resetar_contadores_chips(self, call: JobCall) -> Outcome:
        """Store a snapshot of every chip for the previous day (message counts, trust and status). Then recount the
        messages that each chip has sent and received today.
        """
        now = self._clock.now()
        today = now.astimezone(self._zone).date()
        async with self._database.transaction() as transaction:
            made, _ = await self._snapshot(transaction, today - DAY, now)
            since = _midnight(today, self._zone)
            figures = await self._pool.figures(transaction, since=since, until=since + 2 * DAY, now=now)
            for id, numeros in figures.items():
                await self._pool.recount(transaction, id, numeros, now=now)
        return Done(items=len(figures), result={"chips_resetados": len(figures), "snapshots_criados": made})

    async def _snapshot(self, transaction: Transaction, data: date, now: datetime) -> tuple[int, int]:
        since, until = _midnight(data, self._zone), _midnight(data + DAY, self._zone)
        chips = await self._pool.lock(transaction)
        figures = await self._pool.figures(transaction, since=since, until=until, now=now)
        return await self._pool.snapshot(transaction, chips, figures, data, is_over=now >= until, now=now)

    async def _record_event(self, transaction: Transaction, event: str, instance: str, now: datetime) -> None:
        await self._eventos.record(transaction, event, now=now, dedupe_key=None, props={"instance": instance})


def last_digits(telefone: str | None) -> str | None:
    return None if telefone is None else telefone[-4:]


def _midnight(data: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(data, time(0), zone)
