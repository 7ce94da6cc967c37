"""Start a campaign in steps. Each step is a small transaction, so that the next run can continue after a crash.

    due, and may it start? ─▶ ativa ─▶ choose recipients, 500 at a time ─▶ queue messages, 500 at a time ─▶ concluida
                                       (excluded doctors with a reason)                         when its batch ends

Several processes may start the same campaign at the same time: each step locks the campaign's row, so the second
process finds that the step is already done.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from app.contexts.campanhas.lotes import Lotes, MensagensDeCampanha
from app.contexts.campanhas.model import (
    CampanhaRecusada,
    Filtros,
    Lugar,
    StatusDaCampanha,
    de_ninguem,
    espera,
    filtros_de,
    recorte,
)
from app.contexts.campanhas.publico import Escolha, MotivoDaExclusao, ate, escolher
from app.contexts.campanhas.repository import candidato, lists, start_queries
from app.contexts.campanhas.texto import campos, preenchido
from app.contexts.comum.fila import Fila
from app.contexts.mensagens.api import TIPOS, RegrasDeEnvio, Tipo
from app.contexts.operacao.service import Eventos
from batuta.kernel import Clock, Ids, dataclass, mask_text
from batuta.queues import NewItem
from batuta.reasons import encode, reason_of_error
from batuta.sql import AsJson, Database, Row, Transaction

BATCH: Final = 500
DUE_LIMIT: Final = 50
WEEK: Final = timedelta(days=7)
LONGEST_REASON: Final = 500
Held: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]
Rules: TypeAlias = Callable[[Any, str | None], Awaitable[RegrasDeEnvio]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resultado:
    """Result of one pass over the due campaigns. ``recusadas`` and ``esperam`` map the id of each refused or waiting
    campaign to the reason.
    """

    iniciadas: int = 0
    enfileiradas: int = 0
    recusadas: Mapping[int, str]
    esperam: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Devida:
    """A campaign that is due to start, decoded from its row."""

    id: int
    tipo: str
    status: StatusDaCampanha
    corpo: str
    filtros: Filtros
    campos: frozenset[str]
    publico_em: datetime | None
    metadata: Mapping[str, Any]


class Inicio:
    def __init__(
        self,
        database: Database,
        fila: Fila,
        rules: Rules,
        eventos: Eventos,
        lotes: Lotes,
        mensagens: MensagensDeCampanha,
        ids: Ids,
        clock: Clock,
    ) -> None:
        """Create the service that starts campaigns. ``lotes`` creates batches. ``mensagens`` counts and cancels the
        messages in a campaign's batch.
        """
        self._database = database
        self._fila = fila
        self._rules = rules
        self._eventos = eventos
        self._lotes = lotes
        self._mensagens = mensagens
        self._ids = ids
        self._clock = clock
        self._queries = start_queries(database.dialect)

    async def passar(self, held: Held | None = None) -> Resultado:
        """Start the due campaigns that the rules permit. ``held`` returns the campaign types that must wait, and the
        reason for each.
        """
        done = Resultado(recusadas={}, esperam={})
        now = self._clock.now()
        due = await self._database.all(self._queries.due, now=now, limit=DUE_LIMIT)
        held_types = await held() if due and held is not None else {}
        for row in due:
            tipo = row["tipo_campanha"]
            why = await self.por_que_espera(tipo, held_types)
            if why is not None:
                done = replace(done, esperam={**done.esperam, row["id"]: why})
                continue
            done = await self._start_due(row, done)
        return done

    async def por_que_espera(self, tipo: str, held_types: Mapping[str, str]) -> str | None:
        """Return the reason why campaigns of the type ``tipo`` must wait now, or None if they may start or continue."""
        if tipo in held_types:
            return held_types[tipo]
        return espera(await self._rules(self._database, tipo), self._clock.now())

    async def conhecidos(self, ids: Sequence[str]) -> int:
        row = await self._database.one(self._queries.known, clientes=AsJson(list(ids)))
        return 0 if row is None else int(row["quantos"])

    async def previsto(self, row: Row, then: datetime) -> Mapping[MotivoDaExclusao | None, int]:
        """Predict a campaign's audience at the instant ``then``. Map each reason for exclusion to the number of
        excluded doctors; the key None has the number of recipients.
        """
        _, choices = await self._choices(_due(row), then)
        return Counter(choice.motivo for choice in choices)

    async def de_ninguem(self, filtros: Filtros) -> tuple[str, ...]:
        """Return the specialities and regions in the filters that match no doctor."""
        return de_ninguem(filtros, _places(await self._database.all(self._queries.words)))

    async def _start_due(self, row: Row, done: Resultado) -> Resultado:
        if row["enfileirada_em"] is not None:  # an earlier release, which had no batches, queued its messages
            async with self._database.transaction() as transaction:
                await self._join_batch(transaction, row["id"])
            return done
        try:
            campanha = _due(row)
        except CampanhaRecusada as error:
            await self._refuse(row["id"], reason_of_error(error))
            return replace(done, recusadas={**done.recusadas, row["id"]: reason_of_error(error)})
        if not await self._begin(campanha):
            return done
        if campanha.publico_em is None and not await self._consider(campanha):
            return done
        queued = await self._enqueue(campanha)
        began = campanha.status is StatusDaCampanha.AGENDADA
        return replace(done, iniciadas=done.iniciadas + began, enfileiradas=done.enfileiradas + queued)

    async def _begin(self, campanha: Devida) -> bool:
        """Mark the campaign as started. Returns False if an operator has stopped it."""
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            if not await transaction.run(self._queries.begin, id=campanha.id, now=now):
                return False
            await self._join_batch(transaction, campanha.id)
            await self._record_event(transaction, "campanha_iniciada", campanha.id, now, {"tipo": campanha.tipo})
        return True

    async def _join_batch(self, transaction: Transaction, id: int) -> None:
        """Create the campaign's batch. Close it immediately, because only a closed batch can end. The batch ends as
        soon as each of the campaign's messages was sent or will never be sent.
        """
        lote = self._ids.new()
        if await transaction.run(self._queries.join, id=id, lote=lote):
            batch = await self._lotes.create(f"campanha {id}", members=self._mensagens, id=lote, within=transaction)
            await batch.close(within=transaction)

    async def _refuse(self, id: int, why: str) -> None:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            await transaction.run(self._queries.refuse, id=id, why=encode(mask_text(why, LONGEST_REASON)), now=now)
            await self._eventos.record(
                transaction, "campanha_recusada", now=now, dedupe_key=None, source="ops", props={"campanha_id": id}
            )

    async def _consider(self, campanha: Devida) -> bool:
        """Store one row per doctor in the audience: a recipient, or an excluded doctor with the reason.

        Returns False if an operator stopped the campaign, or if another process is working on it.
        """
        seen, choices = await self._choices(campanha)
        for first in range(0, max(1, len(choices)), BATCH):
            some = choices[first : first + BATCH]
            async with self._database.transaction() as transaction:
                if not await self._is_ours(transaction, campanha.id, expected=seen + first):
                    return False
                await self._write(transaction, campanha.id, some, seen + first)
                if first + BATCH >= len(choices):
                    await transaction.run(self._queries.decided, id=campanha.id, now=self._clock.now())
        return True

    async def _choices(self, campanha: Devida, then: datetime | None = None) -> tuple[int, list[Escolha]]:
        """Decide which doctors in the audience receive the campaign. Return the number of doctors who already have a
        row in the recipients' table, and the decision about each remaining doctor.
        """
        now, filtros = self._clock.now(), campanha.filtros
        then = now if then is None else then
        async with self._database.snapshot() as reading:
            words = await reading.all(self._queries.words)
            cut = recorte(filtros, _places(words))
            considered = await reading.one(self._queries.considered, id=campanha.id)
            assert considered is not None
            listed = lists(
                clientes=filtros.clientes_especificos,
                especialidades=cut.especialidades,
                cidades=cut.cidades,
                estados=cut.estados,
            )
            found = await reading.all(
                self._queries.candidates,
                id=campanha.id,
                named=bool(filtros.clientes_especificos),
                any_especialidade=cut.especialidades is None,
                anywhere=cut.cidades is None,
                week_ago=then - WEEK,
                **{name: AsJson(values) for name, values in listed.items()},
            )
        choices = escolher(
            [ate(candidato(row), now, then) for row in found],
            filtros,
            campanha.campos,
            campanha_id=campanha.id,
            ja_escolhidos=considered["escolhidos"],
            now=then,
        )
        return considered["vistos"], choices

    async def _is_ours(self, transaction: Transaction, id: int, *, expected: int) -> bool:
        if not await transaction.run(self._queries.hold, id=id, now=self._clock.now()):
            return False
        considered = await transaction.one(self._queries.considered, id=id)
        return considered is not None and considered["vistos"] == expected

    async def _write(self, transaction: Transaction, id: int, choices: Sequence[Escolha], before: int) -> None:
        now = self._clock.now()
        rows = [
            {
                "id": id,
                "cliente_id": choice.cliente_id,
                "situacao": "selecionado" if choice.motivo is None else "excluido",
                "motivo": None if choice.motivo is None else choice.motivo.value,
                "posicao": before + place,
                "now": now,
            }
            for place, choice in enumerate(choices, start=1)
        ]
        if rows:
            await transaction.run_many(self._queries.consider, rows)

    async def _enqueue(self, campanha: Devida) -> int:
        total = 0
        for _ in range(campanha.filtros.quantidade_alvo // BATCH + 2):
            async with self._database.transaction() as transaction:
                if not await transaction.run(self._queries.hold, id=campanha.id, now=self._clock.now()):
                    return total
                people = await transaction.all(self._queries.next, id=campanha.id, limit=BATCH)
                if not people:
                    await transaction.run(self._queries.enqueued, id=campanha.id, now=self._clock.now())
                    return total
                total += await self._queue(transaction, campanha, people)
        return total

    async def _queue(self, transaction: Transaction, campanha: Devida, people: Sequence[Row]) -> int:
        """Queue a campaign's messages to the given recipients, and mark the recipients as queued in the same
        transaction. Return the number of queued messages.
        """
        now, items = self._clock.now(), []
        for recipient in people:
            valores = {"nome": recipient["primeiro_nome"], "especialidade": recipient["especialidade"]}
            text = preenchido(campanha.corpo, valores)
            if text is None:
                await transaction.run(
                    self._queries.exclude,
                    id=campanha.id,
                    cliente_id=recipient["cliente_id"],
                    motivo=MotivoDaExclusao.SEM_NOME.value,
                    now=now,
                )
            elif not recipient["na_fila"]:
                items.append(_item(campanha, recipient, text))
        shared = {
            "campanha_id": campanha.id,
            "tipo": Tipo.CAMPANHA.value,
            "prioridade": TIPOS[Tipo.CAMPANHA].prioridade,
            "devida_em": now,
            "metadata": AsJson(campanha.metadata),
        }
        taken = await self._fila.put(items, within=transaction, shared=shared)
        await transaction.run(self._queries.queued, id=campanha.id, until=people[-1]["posicao"], now=now)
        return sum(id is not None for id in taken)

    async def _record_event(
        self, transaction: Transaction, event: str, id: int, now: datetime, props: Mapping[str, Any]
    ) -> None:
        key = f"{event}:{id}"
        await self._eventos.record(
            transaction, event, now=now, dedupe_key=key, source="ops", props={"campanha_id": id, **props}
        )


def _item(campanha: Devida, recipient: Row, text: str) -> NewItem:
    return NewItem(
        values={"cliente_id": recipient["cliente_id"], "telefone_destino": recipient["telefone"], "conteudo": text},
        key=f"campanha:{campanha.id}:{recipient['cliente_id']}",
    )


def _places(words: Sequence[Row]) -> list[Lugar]:
    return [Lugar(row["especialidade"], row["cidade"], row["estado"]) for row in words]


def _due(row: Row) -> Devida:
    filtros = filtros_de(row["audience_filters"])
    return Devida(
        id=row["id"],
        tipo=row["tipo_campanha"],
        status=StatusDaCampanha(row["status"]),
        corpo=row["corpo"] or "",
        filtros=filtros,
        campos=campos(row["corpo"]),
        publico_em=row["publico_em"],
        metadata={
            "campanha_id": str(row["id"]),
            "tipo_campanha": row["tipo_campanha"],
            "objetivo": row["objetivo"],
            "pode_ofertar": row["pode_ofertar"],
            "chips_excluidos": list(filtros.chips_excluidos),
        },
    )
