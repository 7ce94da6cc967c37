"""Operations on appointments: create, change, list, and parse addresses and documents again."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any, Final, Protocol

from app.contexts.agendamentos.documento.cifra import cifrado, decifrado
from app.contexts.agendamentos.documento.mascara import esta_coberto
from app.contexts.agendamentos.model import (
    CAMPOS,
    AgendamentoInexistente,
    AgendamentoRecusado,
    AgendamentoRepetido,
    StatusDaLeitura,
    fonte_de,
)
from app.contexts.agendamentos.planilha.celulas import cep_da, data_da, hora_da, telefone_da
from app.contexts.agendamentos.planilha.linhas import (
    ONDE_E_QUANDO,
    SituacaoDoAgendamento,
    chave_de,
    chave_natural_de,
    mais_longo,
)
from app.contexts.agendamentos.repository import COLUMNS, appointment_queries, insert_query, page_query
from app.contexts.agendamentos.texto import limpo
from batuta import Batch
from batuta.errors import BatchEnded, StoreConflict
from batuta.kernel import PLAIN, Clock, Encryption, Ids, Json, dataclass, is_writable
from batuta.sql import AsJson, AuditLog, Database, Row, Transaction, is_uuid

# Order of an appointment's states. A file may move an appointment to a state with the same or a higher number.
_FAR: Final = {
    SituacaoDoAgendamento.PENDENTE: 0,
    SituacaoDoAgendamento.AUTORIZACAO: 1,
    SituacaoDoAgendamento.CADASTRAR: 1,
    SituacaoDoAgendamento.AGENDADO: 2,
    SituacaoDoAgendamento.ALTERAR: 3,
    SituacaoDoAgendamento.CONFIRMADO: 3,
    SituacaoDoAgendamento.COLETADO: 4,
    SituacaoDoAgendamento.RECOLETA: 4,
    SituacaoDoAgendamento.CANCELADO: 4,
}
# A field and the field on which it depends: the old CEP does not fit a new address.
_BELONGS: Final = {"cep": "endereco_completo", "hora_confirmacao": "data_confirmacao"}


def atualizado(antes: Mapping[str, Any], dito: Mapping[str, Json]) -> dict[str, Json]:
    """Merge a file's row into an existing appointment. Only the fields in ``dito``, which have a value in the file,
    replace stored values.
    """
    now = {name: antes[name] if dito.get(name) is None else dito[name] for name in CAMPOS}
    for name, owner in _BELONGS.items():
        if dito.get(name) is None and now[owner] != antes[owner]:
            now[name] = None
    if not _advances(antes["status"], now["status"]):
        now["status"] = antes["status"]
    return now


def _advances(antes: Json, agora: Json) -> bool:
    return _FAR[SituacaoDoAgendamento(str(agora))] >= _FAR[SituacaoDoAgendamento(str(antes))]


TASK: Final = "normalize_appointment"
QUEUE: Final = "agendamentos"
FONTE: Final = ("endereco_completo", "documento_completo", "cep")  # the texts that the parsing task reads
ORIGEM: Final = ("importacao_id", "aba", "linha")  # import, sheet and line of the row
CEP: Final = r"^(?:[1-9][0-9]{4}|0[1-9][0-9]{3})-[0-9]{3}$"


class Tarefas(Protocol):
    """The engine's task operations that appointments use. Every task backend provides them."""

    async def enqueue_many(
        self,
        task: str,
        arguments: Sequence[Sequence[Json]],
        *,
        keys: Sequence[str | None] | None = None,
        batch: Batch | None = None,
        within: Any | None = None,
    ) -> list[str]: ...


class Lotes(Protocol):
    """The engine's batch operations that imports use. An import's batch has the same id as the import, and contains the
    tasks that parse its appointments.
    """

    def handle(self, id: str) -> Batch: ...

    async def create(self, name: str, *, id: str | None = None, within: Any | None = None) -> Batch: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ligado:
    """The parts of an appointment (address, documents) that the settings allow the parsing tasks to parse."""

    endereco: bool = True
    documento: bool = True

    def tem_o_que_ler(self, campos: Mapping[str, Json]) -> bool:
        return bool(
            (self.endereco and (campos.get("endereco_completo") or campos.get("cep")))
            or (self.documento and campos.get("documento_completo"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtro:
    leitura: StatusDaLeitura | None = None
    situacao: SituacaoDoAgendamento | None = None
    de: str | None = None
    ate: str | None = None
    unidade: str | None = None
    importacao: str | None = None
    antes_de: str | None = None


_EMPTY: Final[Mapping[str, Json]] = dict.fromkeys(COLUMNS)


@dataclass(frozen=True, slots=True)
class Gravadas:
    """The result of one call of ``gravar``: how many appointments it inserted and updated, how many parsing tasks it
    enqueued, and how many collection cars it added.
    """

    novas: int
    repetidas: int
    tarefas: int
    carros: int


class Agendamentos:
    def __init__(
        self,
        database: Database,
        tarefas: Tarefas,
        lotes: Lotes,
        ligado: Ligado,
        ids: Ids,
        clock: Clock,
        wake: Callable[[], None],
        cifra: Encryption = PLAIN,
    ) -> None:
        """Build the service. ``wake`` is called after tasks are enqueued. ``cifra`` encrypts the documents."""
        self._cifra = cifra
        self._database = database
        self._tarefas = tarefas
        self._lotes = lotes
        self._ligado = ligado
        self._ids = ids
        self._clock = clock
        self._wake = wake
        self._audit = AuditLog(database.dialect, ids)
        self._queries = appointment_queries(database.dialect)

    async def gravar(
        self, transaction: Transaction, linhas: Sequence[Mapping[str, Json]], importacao: str | None = None
    ) -> Gravadas:
        """Insert new appointments, update existing ones, and enqueue the tasks that parse their addresses and
        documents. Runs in the caller's transaction.
        """
        rows = {
            str(row.get("chave") or chave_de(row)): row for row in linhas
        }  # if two rows have the same key, the last one is used
        there = await self._find_known(transaction, rows)
        fresh = iter(self._ids.many(len(rows)))
        made = [self._row(chave, row, there.get(chave), importacao, next(fresh)) for chave, row in rows.items()]
        waiting = [row for chave, row in zip(rows, made, strict=True) if _is_due(row, there.get(chave))]
        known = {str(row["id"]) for row in there.values()}
        await self._supersede(transaction, [str(row["id"]) for row in waiting if str(row["id"]) in known])
        jobs = await self._enqueue(transaction, [str(row["id"]) for row in waiting], importacao)
        for row, job in zip(waiting, jobs, strict=True):
            row["normalization_job_id"] = job
        new = [row for chave, row in zip(rows, made, strict=True) if chave not in there]
        old = [row for chave, row in zip(rows, made, strict=True) if chave in there]
        if new and await self._insert(transaction, new) != len(new):
            raise AgendamentoRepetido
        now = self._clock.now()
        if old:
            await transaction.run(self._queries.change, rows=AsJson(self._cifradas(old)), now=now)
        cars = sorted({str(row["carro"]) for row in made if row.get("carro")})
        added = await transaction.run(self._queries.cars, nomes=AsJson(cars), now=now) if cars else 0
        return Gravadas(len(new), len(linhas) - len(new), len(jobs), added)

    async def _find_known(
        self, transaction: Transaction, rows: Mapping[str, Mapping[str, Json]]
    ) -> dict[str, dict[str, Any]]:
        """Find each row's existing appointment by its id in the source system. If the row or the appointment has no
        such id, compare patient, place and time.
        """
        places = {chave: chave_natural_de(row) for chave, row in rows.items() if row.get("origem_id")}
        wanted = sorted({*rows, *places.values()})
        found = self._decifradas(await transaction.all(self._queries.known, chaves=AsJson(wanted)))
        known = {row["chave"]: row for row in found}
        there = {chave: known[chave] for chave in rows if chave in known}
        free = {chave: row for chave, row in known.items() if chave not in there}
        for chave in rows:
            if chave not in there and places.get(chave) in free:
                there[chave] = free.pop(places[chave])
        if bare := [chave for chave in rows if chave not in there and chave not in places]:
            taken = {row["id"] for row in there.values()}
            for row in self._decifradas(await transaction.all(self._queries.known_by_place, chaves=AsJson(bare))):
                if row["id"] not in taken:
                    there.setdefault(row["chave_natural"], row)
        return there

    async def criar(self, campos: Mapping[str, Json], *, by: str) -> Mapping[str, Any]:
        checked = conferidos(campos)
        if not checked.get("nome_paciente"):
            raise AgendamentoRecusado(campo="nome_paciente")
        chave = chave_de(checked)
        async with self._database.transaction() as transaction:
            if await self._find_known(transaction, {chave: checked}):
                raise AgendamentoRepetido
            await self.gravar(transaction, [checked])
            (row,) = await transaction.all(self._queries.known, chaves=AsJson([chave]))
            await self._note(transaction, by, "criar", row["id"], sorted(checked))
        self._wake()
        return await self.um(row["id"])

    async def alterar(self, id: str, campos: Mapping[str, Json], *, by: str) -> Mapping[str, Any]:
        """Change the given fields of an appointment. If its address or documents change, they are parsed again."""
        checked = conferidos(campos)
        try:
            await self._change(id, checked, by)
        except StoreConflict:  # another process wrote the same key in the meantime
            raise AgendamentoRepetido from None
        self._wake()
        return await self.um(id)

    async def _change(self, id: str, checked: Mapping[str, Json], by: str) -> None:
        async with self._database.transaction() as transaction:
            held = await transaction.one(self._queries.hold, id=id)
            if held is None:
                raise AgendamentoInexistente(id=id)
            before = decifrado(held, self._cifra)
            merged = {name: before[name] for name in CAMPOS} | dict(checked)
            if not merged["nome_paciente"]:
                raise AgendamentoRecusado(campo="nome_paciente")
            chave, natural = before["chave"], before["chave_natural"]
            if any(merged[name] != before[name] for name in (*ONDE_E_QUANDO, "origem_id")):
                chave, natural = chave_de(merged), _natural(merged)
            if chave != before["chave"] and await transaction.one(self._queries.taken, chave=chave, id=id) is not None:
                raise AgendamentoRepetido
            origem = {name: before[name] for name in ORIGEM}
            row = self._new_row(chave, merged, id, origem, before) | {"chave_natural": natural}
            if _is_due(row, before):
                await self._supersede(transaction, [id])
                (row["normalization_job_id"],) = await self._enqueue(transaction, [id])
            await transaction.run(self._queries.change, rows=AsJson(self._cifradas([row])), now=self._clock.now())
            await self._note(transaction, by, "alterar", id, sorted(checked))

    async def um(self, id: str) -> Mapping[str, Any]:
        row = await self._database.one(self._queries.one, id=id)
        if row is None:
            raise AgendamentoInexistente(id=id)
        return decifrado(row, self._cifra)

    async def da_tarefa(self, job: str) -> Row | None:
        """Return the appointment that a task belongs to, even if the task's row was deleted."""
        return await self._database.one(self._queries.of_job, job=job)

    async def lista(self, filtro: Filtro, limit: int) -> Sequence[Mapping[str, Any]]:
        asked = {name: str(value) for name, value in asdict(filtro).items() if value is not None}
        query = page_query(self._database.dialect, tuple(asked))
        return self._decifradas(await self._database.all(query, limit=limit, **asked))

    async def contagem(self) -> dict[str, int]:
        rows = await self._database.all(self._queries.counts)
        found = {row["status"]: row["quantos"] for row in rows}
        return {status.value: found.get(status.value, 0) for status in StatusDaLeitura}

    async def quantas_repetir(self, *, limit: int) -> int:
        """Count the appointments that ``reprocessar`` would enqueue if called without ids."""
        async with self._database.transaction() as transaction:
            return len(await self._repetiveis(transaction, limit))

    async def reprocessar(self, ids: Sequence[str] | None = None, *, limit: int, by: str) -> list[str]:
        """Enqueue a new task for each appointment whose parsing failed, that was skipped while parsing was switched
        off, or that has no task. With ``ids``, appointments that are already parsed are enqueued too. Return the ids of
        the enqueued appointments.
        """
        async with self._database.transaction() as transaction:
            if ids is None:
                rows = await self._repetiveis(transaction, limit)
            else:
                rows = await transaction.all(self._queries.chosen, ids=AsJson(list(ids)), limit=limit, **self._on)
            found = [str(row["id"]) for row in rows]
            await self.reenfileirar(transaction, found)
            if found:
                await self._note(transaction, by, "reprocessar", f"{len(found)}", [])
        self._wake()
        return found

    @property
    def _on(self) -> dict[str, bool]:
        return {"endereco": self._ligado.endereco, "documento": self._ligado.documento}

    async def _repetiveis(self, transaction: Transaction, limit: int) -> list[Row]:
        failed = await transaction.all(self._queries.failed, limit=limit)
        return [*failed, *await transaction.all(self._queries.unread, limit=limit - len(failed), **self._on)]

    async def reenfileirar(self, transaction: Transaction, ids: Sequence[str]) -> None:
        await transaction.all(self._queries.hold_many, ids=AsJson(list(ids)))
        await self._supersede(transaction, ids)
        jobs = await self._enqueue(transaction, ids)
        rows = [{"id": id, "job": job} for id, job in zip(ids, jobs, strict=True)]
        if rows:
            await transaction.run(self._queries.requeue, rows=AsJson(rows), now=self._clock.now())

    async def _insert(self, transaction: Transaction, rows: Sequence[Mapping[str, Json]]) -> int:
        """Insert new appointments in the order of their keys, so that two imports of the same rows do not deadlock."""
        in_order = sorted(self._cifradas(rows), key=lambda row: str(row["chave"]))
        filled = [{name: value for name, value in row.items() if value is not None} for row in in_order]
        used = set[str]().union(*filled)
        query = insert_query(self._database.dialect, tuple(each for each in COLUMNS if each in used))
        return await transaction.run(query, rows=AsJson(filled), now=self._clock.now())

    async def _supersede(self, transaction: Transaction, ids: Sequence[str]) -> None:
        if ids:
            await transaction.run(self._queries.supersede, ids=AsJson(list(ids)))

    async def _enqueue(self, transaction: Transaction, ids: Sequence[str], importacao: str | None = None) -> list[str]:
        """Enqueue the tasks that parse the appointments in ``ids``. The tasks become members of their import's batch."""
        if not ids:
            return []
        keys, calls = [f"agendamento:{id}" for id in ids], [(id,) for id in ids]
        batch = None if importacao is None else self._lotes.handle(importacao)
        try:
            return await self._tarefas.enqueue_many(TASK, calls, keys=keys, batch=batch, within=transaction)
        except BatchEnded:  # an operator cancelled the batch; the tasks of later rows belong to no batch
            return await self._tarefas.enqueue_many(TASK, calls, keys=keys, within=transaction)

    def _cifradas(self, rows: Sequence[Mapping[str, Json]]) -> list[dict[str, Json]]:
        return [cifrado(row, self._cifra) for row in rows]

    def _decifradas(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        return [decifrado(row, self._cifra) for row in rows]

    def _row(
        self, chave: str, dito: Mapping[str, Json], known: Mapping[str, Any] | None, importacao: str | None, fresh: str
    ) -> dict[str, Json]:
        """Build the appointment that a file's row describes. If the appointment already exists, merge the row into it;
        otherwise the new appointment has the id ``fresh``.
        """
        origem: dict[str, Json] = {"importacao_id": importacao, "aba": dito.get("aba"), "linha": dito.get("linha")}
        if known is None:
            return self._new_row(chave, dito, fresh, origem)
        merged = atualizado(known, dito) | {"hora_dita": dito.get("hora_dita")}
        own = chave if dito.get("origem_id") else known["chave"]
        return self._new_row(own, merged, str(known["id"]), origem, known)

    def _new_row(
        self,
        chave: str,
        campos: Mapping[str, Json],
        id: str,
        origem: Mapping[str, Json],
        known: Mapping[str, Any] | None = None,
    ) -> dict[str, Json]:
        return {
            **_EMPTY,
            **{name: campos[name] for name in CAMPOS if name in campos},
            "status": campos.get("status") or SituacaoDoAgendamento.PENDENTE.value,
            **origem,
            "id": id,
            "chave": chave,
            "chave_natural": _natural(campos),
            "fonte": self._fonte(campos, known),
            "normalization_status": (
                StatusDaLeitura.PENDING if self._ligado.tem_o_que_ler(campos) else StatusDaLeitura.SKIPPED
            ).value,
        }

    def _fonte(self, campos: Mapping[str, Json], known: Mapping[str, Any] | None) -> str:
        """Return the fingerprint of an appointment's texts, by which a task recognises that a text has changed. Without
        encryption, the fingerprint is a hash of the texts. With encryption it is a random id that is replaced whenever
        a text changes, because anyone could find a document number from its hash by trying all numbers.
        """
        if not self._cifra.is_on:
            return fonte_de(*(None if (said := campos.get(name)) is None else str(said) for name in FONTE))
        # a new row, or a hash stored before encryption was switched on
        if known is None or not is_uuid(known["fonte"]):
            return self._ids.new()
        is_same = all((known[name] or None) == (campos.get(name) or None) for name in FONTE)
        return str(known["fonte"]) if is_same else self._ids.new()

    async def _note(self, transaction: Transaction, by: str, action: str, subject: str, fields: list[str]) -> None:
        """Record in the audit log what an operator did with an appointment. The entry has the names of the changed
        fields but not their values.
        """
        await self._audit.note(
            transaction,
            actor=by,
            action=f"agendamento.{action}",
            subject=f"agendamento:{subject}",
            before=None,
            after={"campos": [*fields]},
            now=self._clock.now(),
        )


def _is_due(row: Mapping[str, Json], known: Mapping[str, Any] | None) -> bool:
    """Return whether a row's address and documents must be parsed: the row is new, its text has changed, or parsing was
    switched off before.
    """
    if row["normalization_status"] != StatusDaLeitura.PENDING:
        return False
    return known is None or known["fonte"] != row["fonte"] or known["normalization_status"] == StatusDaLeitura.SKIPPED


def _natural(campos: Mapping[str, Json]) -> str | None:
    return chave_natural_de(campos) if campos.get("origem_id") else None


def conferidos(campos: Mapping[str, Json]) -> dict[str, Json]:
    """Validate the fields that a person or a program sent. Raises an error that names the first invalid field."""
    checked: dict[str, Json] = {}
    for name, value in campos.items():
        if name not in CAMPOS or not (value is None or isinstance(value, str)):
            raise AgendamentoRecusado(campo=name[:40])
        text = value.strip() if value is not None and limpo(value) else None
        if text and (len(text) > mais_longo(name) or not is_writable(text) or esta_coberto(name, text)):
            raise AgendamentoRecusado(campo=name)
        checked[name] = _check_field(name, text) if text else None
    return checked


def _check_field(name: str, text: str) -> str:
    read = _READERS.get(name)
    found = text if read is None else read(text)
    if found is None:
        raise AgendamentoRecusado(campo=name)
    return found


def _day(text: str) -> str | None:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        day = data_da(text)
    return None if day is None else day.isoformat()


def _cep(text: str) -> str | None:
    return text if re.fullmatch(CEP, text) else cep_da(text)


def _situation(text: str) -> str | None:
    return next((each.value for each in SituacaoDoAgendamento if each.value == text), None)


_READERS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "data_agendamento": _day,
    "data_confirmacao": _day,
    "hora_agendamento": hora_da,
    "hora_confirmacao": hora_da,
    "telefone": telefone_da,
    "cep": _cep,
    "status": _situation,
}
