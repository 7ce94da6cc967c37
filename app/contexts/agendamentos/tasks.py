"""Task ``normalize_appointment``: parse the address and the documents of one appointment, with rules first.

If a language model is configured and allowed, the task queries it about texts that the rules cannot parse. The rules'
results are stored even if the model fails. If an appointment's text changes while the task runs, no result is stored.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import timedelta
from typing import Any, Final, Protocol

from app.contexts.agendamentos.documento.cifra import cifrado, decifrado
from app.contexts.agendamentos.documento.documento import documento_de
from app.contexts.agendamentos.endereco.endereco import CEP_DE_OUTRA_UF, Endereco
from app.contexts.agendamentos.endereco.geografia import cep_concorda
from app.contexts.agendamentos.llm import LeituraDoLlm, Lida, Mudo, PedidoAoLlm
from app.contexts.agendamentos.model import TIMEOUT_SAID, StatusDaLeitura
from app.contexts.agendamentos.normalizacao import LLM, documento_em_json, endereco_em_json, endereco_lido
from app.contexts.agendamentos.repository import appointment_queries
from app.contexts.agendamentos.service import Agendamentos, Ligado
from app.contexts.agendamentos.texto import diz_nada, limpo
from app.contexts.agendamentos.verificacao import pode_ter_documento
from batuta import Again, Failed, Idle, Snooze, TaskContext
from batuta.errors import DeadlineExceeded, KeyMissing
from batuta.guards import Hold
from batuta.kernel import PLAIN, Batcher, Clock, Encryption, Json, dataclass, with_timeout
from batuta.loops import Pace, Wakeup
from batuta.reasons import TIMED_OUT, define, reason_of_error
from batuta.sql import AsJson, Database, Row, is_uuid

MODEL_HELD = define("agendamento_llm_suspenso", "calls to the model are held: {why}")
MODEL_AWAY = define("llm_fora", "the model could not be called")
KEPT_CHANGING = define("agendamento_mudou", "the appointment changed several times while it was being read")

log = logging.getLogger("julia.agendamentos")
FIRST_WAIT: Final = 60
# Wait before the next attempt if the key that decrypts the documents is not set. No attempt is counted.
KEY_WAIT: Final = timedelta(minutes=1)
# Maximum number of times that one attempt parses a text. A text that changes while it is parsed is parsed again.
MOST_READS: Final = 3
# The task stops itself this long before its time limit, so that it can store the reason with the appointment.
SOONER: Final = timedelta(seconds=5)
NUNCA: Final = Ligado(endereco=False, documento=False)
_STARTS: Final = {
    "endereco": "Normalizing address for appointment %s",
    "documento": "Normalizing documents for appointment %s",
}
_ENDS: Final = {
    "endereco": "Address normalized for appointment %s",
    "documento": "Documents normalized for appointment %s",
}


class LeitorLlm(Protocol):
    """Client for the language model. It returns only values that occur in the appointment's text."""

    async def ler(self, pedido: PedidoAoLlm, began: Callable[[], Awaitable[None]]) -> Lida: ...


@dataclass(slots=True)
class _Lido:
    """The fields of an appointment that have been parsed so far. ``pedido`` has the texts that the rules could not
    parse.

    ``espera`` is set if the model must not be queried yet. ``faltou`` is true if the model was queried but did not
    answer.
    """

    endereco: dict[str, Json] | None = None
    documento: dict[str, Json] | None = None
    regra: Endereco = field(default_factory=Endereco)
    pedido: PedidoAoLlm = field(default_factory=PedidoAoLlm)
    espera: Hold | None = None
    faltou: bool = False

    @property
    def campos(self) -> list[Json]:
        named = {"endereco_normalizado": self.endereco, "documento_normalizado": self.documento}
        return [name for name, value in named.items() if value is not None]


def waits(max_tries: int) -> list[float]:
    """Return the waits before each retry of a task, in seconds: 60 after the first failure, and twice the previous
    value after each of the next failures.
    """
    return [float(FIRST_WAIT * 2**attempt) for attempt in range(max_tries - 1)]


class Normalizador:
    def __init__(
        self,
        database: Database,
        ligado: Ligado,
        clock: Clock,
        *,
        llm: LeitorLlm | None = None,
        perguntavel: Ligado = NUNCA,
        max_tries: int = 3,
        timeout: timedelta = timedelta(seconds=300),
        cifra: Encryption = PLAIN,
    ) -> None:
        """Build the parsing task. ``perguntavel`` names the parts of an appointment that may be sent to the language
        model. ``cifra`` encrypts the documents.
        """
        self._cifra = cifra
        self._database = database
        self._ligado = ligado
        self._clock = clock
        self._llm = llm
        self._perguntavel = NUNCA if llm is None else perguntavel
        self._max_tries = max_tries
        self._timeout = max(timeout - SOONER, timeout / 2)
        self._queries = appointment_queries(database.dialect)
        self._sources = Batcher(self._sources_of, self._source_of)
        self._writing = Batcher(self._write_together, self._write_alone)

    async def normalize_appointment(self, ctx: TaskContext, appointment_id: str) -> dict[str, Json] | Failed | Snooze:
        log.info("Starting normalization for appointment %s", appointment_id)
        reading = self._read(appointment_id, ctx.attempt)
        if self._llm is None:  # the rules alone need no time limit
            return await reading
        try:
            return await with_timeout(self._timeout, reading, self._clock, "a normalization")
        except DeadlineExceeded:
            now = self._clock.now()
            await self._database.run(self._queries.give_up, id=appointment_id, job=ctx.id, error=TIMEOUT_SAID, now=now)
            return Failed(TIMED_OUT(), permanent=True)

    async def _read(self, id: str, attempt: int) -> dict[str, Json] | Failed | Snooze:
        for _ in range(MOST_READS):
            stored = await self._sources.ask(id) if is_uuid(id) else None
            if stored is None:
                return {"success": False, "appointment_id": id, "fields_normalized": []}
            try:
                row = decifrado(stored, self._cifra)
            except KeyMissing as error:
                return Snooze(KEY_WAIT, reason_of_error(error))
            lido = await self._lido(row)
            is_last = attempt >= self._max_tries
            status = _status(row, lido, self._ligado, is_last=is_last)
            if not _is_known(row, lido, status) and not await self._write(row, lido, status):
                continue  # the text changed
            if lido.espera is not None:
                return Snooze(lido.espera.until, MODEL_HELD(why=lido.espera.reason))
            if lido.faltou:
                return Failed(MODEL_AWAY(), permanent=is_last)
            log.info("Normalization completed successfully for %s", id)
            return {"success": True, "appointment_id": id, "fields_normalized": lido.campos}
        return Failed(KEPT_CHANGING())

    async def _lido(self, row: Mapping[str, Any]) -> _Lido:
        lido = _Lido()
        if self._ligado.endereco and (row["endereco_completo"] or row["cep"]):
            self._with_rules("endereco", self._address, row, lido)
        if self._ligado.documento and row["documento_completo"]:
            self._with_rules("documento", self._document, row, lido)
        if self._llm is None or not lido.pedido.partes:
            return lido
        said = await self._llm.ler(lido.pedido, lambda: self._begin(row))
        match said:
            case LeituraDoLlm():
                _add(said, lido)
            case Mudo():
                lido.faltou = True
            case Hold():
                lido.espera = said
            case _:  # the budget is exhausted: only the rules are used
                pass
        if lido.espera is None and not lido.faltou:
            for part in lido.pedido.partes:
                log.info(_ENDS[part], row["id"])
        return lido

    def _with_rules(
        self, part: str, read: Callable[[Mapping[str, Any], _Lido], None], row: Mapping[str, Any], lido: _Lido
    ) -> None:
        """Parse one part of an appointment with the rules, and log the start. The end is not logged here if the
        language model still has to parse that part.
        """
        log.info(_STARTS[part], row["id"])
        read(row, lido)
        if part not in lido.pedido.partes:
            log.info(_ENDS[part], row["id"])

    def _address(self, row: Mapping[str, Any], lido: _Lido) -> None:
        text = row["endereco_completo"] or ""
        if _is_by_model(row["endereco_normalizado"]):  # an earlier attempt already stored this result
            lido.endereco = row["endereco_normalizado"]
            return
        lido.regra = endereco_lido(text, row["cep"])
        lido.endereco = endereco_em_json(lido.regra) if lido.regra.diz_algo else None
        if self._perguntavel.endereco and lido.regra.logradouro is None and not diz_nada(limpo(text)):
            lido.pedido = replace(lido.pedido, endereco=text)

    def _document(self, row: Mapping[str, Any], lido: _Lido) -> None:
        text = row["documento_completo"]
        if _is_by_model(row["documento_normalizado"]):
            lido.documento = row["documento_normalizado"]
            return
        documento = documento_de(text)
        lido.documento = documento_em_json(documento) if documento.diz_algo else None
        is_clear = documento.diz_algo or documento.avisos or not pode_ter_documento(text)
        if self._perguntavel.documento and not is_clear:
            lido.pedido = replace(lido.pedido, documento=text)

    async def _begin(self, row: Mapping[str, Any]) -> None:
        await self._database.run(self._queries.begin, id=row["id"], fonte=row["fonte"], now=self._clock.now())

    async def _write(self, row: Mapping[str, Any], lido: _Lido, status: StatusDaLeitura) -> bool:
        documento = lido.documento or {}
        documents = {"documento_normalizado": lido.documento, "cpf": documento.get("cpf"), "rg": documento.get("rg")}
        stored = cifrado(documents, self._cifra)
        return await self._writing.ask(
            {
                "id": str(row["id"]),
                "fonte": row["fonte"],
                "status": status.value,
                "error": MODEL_AWAY() if lido.faltou else None,
                "endereco": lido.endereco,
                "documento": stored["documento_normalizado"],
                "cpf": stored["cpf"],
                "rg": stored["rg"],
            }
        )

    async def _sources_of(self, ids: Sequence[str]) -> list[Row | None]:
        found = await self._database.all(self._queries.sources, ids=AsJson(list(ids)))
        by_id = {str(row["id"]): row for row in found}
        return [by_id.get(id) for id in ids]

    async def _source_of(self, id: str) -> Row | None:
        return await self._database.one(self._queries.source, id=id)

    async def _write_together(self, lidas: Sequence[Mapping[str, Json]]) -> list[bool | None]:
        """Store the results for several appointments in one statement. Return one value per appointment: True if the
        result was stored, None if the appointment's text has changed or its row is locked.
        """
        now = self._clock.now()
        written = await self._database.all(self._queries.read_together, rows=AsJson(list(lidas)), now=now)
        stored = {(str(row["id"]), row["fonte"]) for row in written}
        return [True if (lida["id"], lida["fonte"]) in stored else None for lida in lidas]

    async def _write_alone(self, lida: Mapping[str, Json]) -> bool:
        read = {"endereco": AsJson(lida["endereco"]), "documento": AsJson(lida["documento"])}
        return bool(await self._database.run(self._queries.read, **{**lida, **read}, now=self._clock.now()))


def _status(row: Mapping[str, Any], lido: _Lido, ligado: Ligado, *, is_last: bool) -> StatusDaLeitura:
    if lido.espera is not None:
        return StatusDaLeitura.PENDING
    if lido.faltou:
        return StatusDaLeitura.FAILED if is_last else StatusDaLeitura.PENDING
    return StatusDaLeitura.COMPLETED if ligado.tem_o_que_ler(dict(row)) else StatusDaLeitura.SKIPPED


def _is_known(row: Mapping[str, Any], lido: _Lido, status: StatusDaLeitura) -> bool:
    """Return whether an appointment's row already contains a partial result. Thanks to this check, a task that waits
    for the model several times stores its partial result only once.
    """
    kept = (row["normalization_status"], row["endereco_normalizado"], row["documento_normalizado"])
    return lido.espera is not None and kept == (status.value, lido.endereco, lido.documento)


def _is_by_model(kept: Any) -> bool:
    return isinstance(kept, dict) and kept.get("fonte") == LLM


def _add(said: LeituraDoLlm, lido: _Lido) -> None:
    """Merge the language model's answer into an appointment's result. If the model found no street, the address that
    the rules parsed remains; if it found no document, the documents that the rules parsed remain.
    """
    if said.endereco.logradouro is not None:
        lido.endereco = endereco_em_json(_junto(said.endereco, lido.regra), fonte=LLM)
    if said.documento.diz_algo:
        lido.documento = documento_em_json(said.documento, fonte=LLM)


def _junto(dito: Endereco, regra: Endereco) -> Endereco:
    """Merge an address that the model parsed (``dito``) with the one that the rules parsed (``regra``). For CEP, state
    and house number the rules take precedence, because these fields have fixed formats.
    """
    cep, uf = regra.cep or dito.cep, regra.uf or dito.uf
    avisos = [each for each in regra.avisos if each != CEP_DE_OUTRA_UF]
    avisos += [CEP_DE_OUTRA_UF] if cep and uf and not cep_concorda(cep, uf) else []
    return replace(
        dito, cep=cep, uf=uf, numero=regra.numero or dito.numero, referencia=regra.referencia, avisos=tuple(avisos)
    )


LOOK_EVERY: Final = timedelta(seconds=15)
# A task stores its result before it ends. If it ended this long ago and has stored no result, it has failed.
SETTLED_FOR: Final = timedelta(seconds=10)
LOST_FOR: Final = timedelta(minutes=5)
BATCH: Final = 200


class Conferente:
    name = "agendamentos-conferencia"

    def __init__(self, database: Database, agendamentos: Agendamentos, clock: Clock) -> None:
        self.wakeup = Wakeup()
        self._database = database
        self._agendamentos = agendamentos
        self._clock = clock
        self._queries = appointment_queries(database.dialect)

    async def tick(self) -> Pace:
        now = self._clock.now()
        rows = await self._database.all(
            self._queries.orphans, settled_before=now - SETTLED_FOR, lost_before=now - LOST_FOR, limit=BATCH
        )
        ended = [row for row in rows if row["task_status"] in ("failed", "cancelled")]
        for row in ended:
            error = row["task_error"] or row["task_status"]
            await self._database.run(self._queries.give_up, id=row["id"], job=row["job"], error=error, now=now)
        lost = [str(row["id"]) for row in rows if row["task_status"] in (None, "complete")]
        if lost:
            async with self._database.transaction() as transaction:
                await self._agendamentos.reenfileirar(transaction, lost)
        return Again() if len(rows) == BATCH else Idle()
