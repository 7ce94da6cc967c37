"""Update doctors' states when messages are sent and received, and let operators see and correct them.

    novo ──message sent──▶ prospecting ──inbound message──▶ engaged
    90 days without an inbound message ──▶ churned ──inbound message──▶ engaged

An inbound message raises the temperature, and each day without an inbound message lowers it. A serious objection begins a
rest of seven days, in which Julia sends nothing on its own initiative. A rest ends when its time has passed or when an
operator ends it. An inbound message does not end it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from app.contexts.conversas.api import MensagemRecebida
from app.contexts.estado_medico.model import (
    COOLING_OFF,
    CicloDeVida,
    CorrecaoDoMedico,
    EstadoDesconhecido,
    Gravidade,
    Permissao,
    efeito_de,
    exigir_correcao,
    faixa_de,
    tendencia,
)
from app.contexts.mensagens.api import MensagemEncerrada
from app.contexts.operacao.service import Eventos
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.sql import AuditLog, Database, Dialect, Query, Row, Transaction, load_queries

WEEK: Final = timedelta(days=7)
CORRECTED: Final = (
    "temperature",
    "temperature_trend",
    "temperature_band",
    "last_decay_at",
    "lifecycle_stage",
    "permission_state",
    "cooling_off_until",
    "next_allowed_at",
)


@dataclass(frozen=True, slots=True)
class StateQueries:
    contacted: Query
    wrote: Query
    object: Query
    resolve: Query
    rest: Query
    warm: Query
    cool: Query
    end_rests: Query
    lose: Query
    recorded: Query
    repair: Query
    ensure: Query
    one: Query
    listed: Query
    correct: Query


def state_queries(dialect: Dialect) -> StateQueries:
    return load_queries(StateQueries, "sql/estado.sql", dialect)


class EstadoDosMedicos:
    """Listener that updates doctors' states. It writes in the transaction that settles a sent message or records an
    inbound message.
    """

    def __init__(self, dialect: Dialect, ids: Ids) -> None:
        self._queries = state_queries(dialect)
        self._eventos = Eventos(dialect, ids)

    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Move a new doctor to the stage prospecting, because Julia has now written to the doctor."""
        await transaction.run(self._queries.contacted, cliente_id=mensagem.cliente_id, now=mensagem.em)

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Do nothing when a message ends without being sent, because only sent messages change the doctor's state."""

    async def recebida(self, transaction: Transaction, mensagem: MensagemRecebida, *, now: datetime) -> str | None:
        """Apply an inbound message's effect on the doctor's state. Return None, because this listener does not answer
        messages.
        """
        if mensagem.cliente_id is None:
            return None
        doctor, efeito = mensagem.cliente_id, efeito_de(mensagem.leitura, mensagem.texto)
        await transaction.run(self._queries.wrote, cliente_id=doctor, sobe=efeito.sobe, now=now)
        if efeito.resolve_objecao:
            await transaction.run(self._queries.resolve, cliente_id=doctor, em=mensagem.em, now=now)
        if efeito.gravidade is None:
            return None
        severity = efeito.gravidade.value
        await transaction.run(self._queries.object, cliente_id=doctor, gravidade=severity, em=mensagem.em, now=now)
        if efeito.gravidade is Gravidade.GRAVE:
            origem = f"mensagem:{mensagem.message_id}"
            await self.descansar(transaction, doctor, ate=mensagem.em + COOLING_OFF, origem=origem, now=now)
        return None

    async def descansar(
        self, transaction: Transaction, cliente_id: str, *, ate: datetime, origem: str, now: datetime
    ) -> bool:
        """Start a doctor's rest, or extend it, until ``ate``. During a rest, Julia sends nothing on its own initiative.
        Record an event with the cause ``origem``. Return False if the doctor opted out or has no state.
        """
        if not await transaction.run(self._queries.rest, cliente_id=cliente_id, ate=ate, now=now):
            return False
        await self._eventos.record(
            transaction,
            "medico_em_descanso",
            now=now,
            dedupe_key=f"descanso:{origem}",
            cliente_id=cliente_id,
            props={"ate": ate.isoformat(), "origem": origem},
        )
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtro:
    permissao: Permissao | None = None
    ciclo: CicloDeVida | None = None


class Estados:
    """Service with which operators see and correct doctors' states."""

    def __init__(self, database: Database, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._queries = state_queries(database.dialect)
        self._audit = AuditLog(database.dialect, ids)
        self._clock = clock

    async def ver(self, cliente_id: str) -> Row:
        """Return a doctor's state. Raises EstadoDesconhecido if the doctor has no state."""
        week_ago = self._clock.now() - WEEK
        row = await self._database.one(self._queries.one, cliente_id=cliente_id, week_ago=week_ago)
        if row is None:
            raise EstadoDesconhecido(id=cliente_id)
        return row

    async def listar(self, filtro: Filtro, *, limite: int, pular: int) -> Sequence[Row]:
        return await self._database.all(
            self._queries.listed,
            permissao=None if filtro.permissao is None else filtro.permissao.value,
            ciclo=None if filtro.ciclo is None else filtro.ciclo.value,
            week_ago=self._clock.now() - WEEK,
            limite=limite,
            pular=pular,
        )

    async def corrigir(self, cliente_id: str, correcao: CorrecaoDoMedico, *, por: str, motivo: str) -> Row:
        """Store an operator's correction with its reason, and return the new state. A corrected temperature starts to
        fall again from now. If the correction ends a rest, messages to the doctor are allowed again.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            await transaction.run(self._queries.ensure, cliente_id=cliente_id, now=now)
            row = await transaction.one(self._queries.one, cliente_id=cliente_id, week_ago=now - WEEK)
            if row is None:
                raise EstadoDesconhecido(id=cliente_id)
            exigir_correcao(cliente_id, Permissao(row["permission_state"]), correcao, now)
            before = {name: row[name] for name in CORRECTED}
            after = {**before, **_values(row, correcao, now)}
            await transaction.run(self._queries.correct, cliente_id=cliente_id, **after, now=now)
            changed = [name for name in CORRECTED if before[name] != after[name]]
            await self._audit.note(
                transaction,
                actor=por,
                action="medico.corrigir",
                subject=f"medico:{cliente_id}",
                before={name: _json(before[name]) for name in changed},
                after={"motivo": motivo, **{name: _json(after[name]) for name in changed}},
                now=now,
            )
        return await self.ver(cliente_id)


def _values(row: Row, correcao: CorrecaoDoMedico, now: datetime) -> Mapping[str, Any]:
    """Return the columns of a doctor's state that an operator's correction changes, with their new values."""
    values: dict[str, Any] = {}
    if "temperatura" in correcao:
        new = correcao["temperatura"]
        values |= {
            "temperature": new,
            "temperature_trend": tendencia(row["temperature"], new),
            "temperature_band": faixa_de(new),
            "last_decay_at": now,
        }
    if "ciclo" in correcao:
        values["lifecycle_stage"] = correcao["ciclo"].value
    if "proximo_contato" in correcao:
        values["next_allowed_at"] = correcao["proximo_contato"]
    if "descanso_ate" in correcao and (until := correcao["descanso_ate"]) is not None:
        values |= {"permission_state": Permissao.COOLING_OFF.value, "cooling_off_until": until}
    elif "descanso_ate" in correcao:
        values["cooling_off_until"] = None
        if row["permission_state"] == Permissao.COOLING_OFF:
            permits = Permissao.ACTIVE if row["last_inbound_at"] is not None else Permissao.INITIAL
            values["permission_state"] = permits.value
    return values


def _json(value: object) -> Json:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, str | float | int) else None
