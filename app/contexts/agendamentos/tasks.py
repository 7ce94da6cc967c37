"""``normalize_appointment``: the address and the documents of one appointment are read, by the rules first.

Only what the rules cannot do is asked of a model, if there is one and the settings allow it. What was read is kept whatever becomes
of the rest, and nothing is written over an appointment that says something else by now.
"""

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, Protocol

from app.contexts.agendamentos.documento import Documento, cpf_valido, documento_de
from app.contexts.agendamentos.endereco import Endereco
from app.contexts.agendamentos.model import TIMEOUT_SAID, Status
from app.contexts.agendamentos.normalizacao import MODELO, documento_em_json, endereco_em_json, endereco_lido
from app.contexts.agendamentos.repository import appointment_book
from app.contexts.agendamentos.service import Ligado
from batuta.guard.deadline import within
from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded
from batuta.kernel.json import Json
from batuta.queue.outcome import Failed
from batuta.stores.sql.database import AsJson, Database, Row
from batuta.tasks.registry import TaskContext

log = logging.getLogger("julia.agendamentos")
FIRST_WAIT: Final = 60
# What it said changed while it was read: so often it is read again at once.
MOST_READS: Final = 3
# The task ends itself a little before it would be ended, so that the appointment says why.
SOONER: Final = timedelta(seconds=5)
MODEL_FAILED: Final = "the model could not be asked"


class ModeloIndisponivel(Exception):
    """It did not answer, or nothing that can be used: worth another attempt."""


class Modelo(Protocol):
    """Reads what the rules cannot. Every answer is held against the text before it counts."""

    async def endereco(self, texto: str) -> Endereco: ...
    async def documento(self, texto: str) -> Documento: ...


@dataclass(frozen=True, slots=True)
class _Lido:
    endereco: dict[str, Json] | None = None
    documento: dict[str, Json] | None = None
    faltou: bool = False  # the model was needed and not there

    @property
    def campos(self) -> list[Json]:
        named = {"endereco_normalizado": self.endereco, "documento_normalizado": self.documento}
        return [name for name, value in named.items() if value is not None]


def waits(max_tries: int) -> list[float]:
    """After the first failure 60 s, then twice as long each time."""
    return [float(FIRST_WAIT * 2**attempt) for attempt in range(max_tries - 1)]


class Normalizador:
    def __init__(
        self,
        database: Database,
        ligado: Ligado,
        clock: Clock,
        *,
        modelo: Modelo | None = None,
        max_tries: int = 3,
        timeout: timedelta = timedelta(seconds=300),
    ) -> None:
        self._database = database
        self._ligado = ligado
        self._clock = clock
        self._modelo = modelo
        self._max_tries = max_tries
        self._timeout = max(timeout - SOONER, timeout / 2)
        self._book = appointment_book(database.dialect)

    async def normalize_appointment(self, ctx: TaskContext, appointment_id: str) -> dict[str, Json] | Failed:
        log.info("Starting normalization for appointment %s", appointment_id)
        reading = self._read(appointment_id, ctx.attempt)
        if self._modelo is None:  # the rules take no time that would have to be watched
            return await reading
        try:
            return await within(self._timeout, reading, self._clock, "a normalization")
        except DeadlineExceeded:
            await self._give_up(appointment_id, TIMEOUT_SAID)
            return Failed(TIMEOUT_SAID, permanent=True)

    async def _read(self, id: str, attempt: int) -> dict[str, Json] | Failed:
        for _ in range(MOST_READS):
            row = await self._database.one(self._book.source, id=id)
            if row is None:
                return {"success": False, "appointment_id": id, "fields_normalized": []}
            lido = await self._lido(row)
            is_last = attempt >= self._max_tries
            status = _status(row, lido, self._ligado, is_last=is_last)
            if not await self._write(row, lido, status):
                continue  # it says something else by now
            if status in (Status.COMPLETED, Status.SKIPPED):
                log.info("Normalization completed successfully for %s", id)
                return {"success": True, "appointment_id": id, "fields_normalized": lido.campos}
            return Failed(MODEL_FAILED, permanent=is_last)
        return Failed("it kept changing while it was read")

    async def _lido(self, row: Row) -> _Lido:
        lido = _Lido()
        if self._ligado.endereco and (row["endereco_completo"] or row["cep"]):
            lido = await self._address(row, lido)
        if self._ligado.documento and row["documento_completo"]:
            lido = await self._document(row, lido)
        return lido

    async def _address(self, row: Row, lido: _Lido) -> _Lido:
        text = row["endereco_completo"] or ""
        endereco = endereco_lido(text, row["cep"])
        if self._modelo is None or not text or endereco.logradouro is not None:
            return replace(lido, endereco=endereco_em_json(endereco) if endereco.diz_algo else None)
        if _by_model(row["endereco_normalizado"]):  # an earlier attempt got this far
            return replace(lido, endereco=row["endereco_normalizado"])
        try:
            read = await self._asked(row, "address", self._modelo.endereco(text))
        except ModeloIndisponivel:
            return replace(lido, endereco=endereco_em_json(endereco) if endereco.diz_algo else None, faltou=True)
        return replace(lido, endereco=endereco_em_json(_provado(read, endereco, text), fonte=MODELO))

    async def _document(self, row: Row, lido: _Lido) -> _Lido:
        text = row["documento_completo"]
        documento = documento_de(text)
        is_clear = documento.diz_algo or documento.avisos or sum(each.isdigit() for each in text) < 5
        if self._modelo is None or is_clear:
            return replace(lido, documento=documento_em_json(documento) if documento.diz_algo else None)
        if _by_model(row["documento_normalizado"]):
            return replace(lido, documento=row["documento_normalizado"])
        try:
            read = await self._asked(row, "documents", self._modelo.documento(text))
        except ModeloIndisponivel:
            return replace(lido, faltou=True)
        return replace(lido, documento=documento_em_json(_documento_provado(read, text), fonte=MODELO))

    async def _asked(self, row: Row, what: str, answer: Any) -> Any:
        await self._database.run(self._book.begin, id=row["id"], fonte=row["fonte"], now=self._clock.now())
        log.info("Normalizing %s for appointment %s", what, row["id"])
        return await answer

    async def _write(self, row: Row, lido: _Lido, status: Status) -> bool:
        documento = lido.documento or {}
        touched = await self._database.run(
            self._book.read,
            id=row["id"],
            fonte=row["fonte"],
            status=status.value,
            error=MODEL_FAILED if lido.faltou else None,
            endereco=AsJson(lido.endereco),
            documento=AsJson(lido.documento),
            cpf=documento.get("cpf"),
            rg=documento.get("rg"),
            now=self._clock.now(),
        )
        return bool(touched)

    async def _give_up(self, id: str, error: str) -> None:
        row = await self._database.one(self._book.one, id=id)
        if row is not None and row["normalization_job_id"] is not None:
            now = self._clock.now()
            await self._database.run(self._book.give_up, id=id, job=row["normalization_job_id"], error=error, now=now)


def _status(row: Row, lido: _Lido, ligado: Ligado, *, is_last: bool) -> Status:
    if lido.faltou:
        return Status.FAILED if is_last else Status.PENDING
    return Status.COMPLETED if ligado.tem_o_que_ler(dict(row)) else Status.SKIPPED


def _by_model(kept: Any) -> bool:
    return isinstance(kept, dict) and kept.get("fonte") == MODELO


def _provado(read: Endereco, regra: Endereco, texto: str) -> Endereco:
    """A model may invent a CEP or a number: whatever digits it gives must stand in the text."""
    return replace(
        read,
        cep=regra.cep or (read.cep if _stands(read.cep, texto) else None),
        numero=regra.numero or (read.numero if _stands(read.numero, texto) else None),
        uf=regra.uf or read.uf,
        avisos=regra.avisos,
        referencia=regra.referencia,
    )


def _documento_provado(read: Documento, texto: str) -> Documento:
    cpf = read.cpf if read.cpf and cpf_valido(read.cpf) and _stands(read.cpf, texto) else None
    rg = read.rg if _stands(read.rg, texto) else None
    return Documento(
        cpf=cpf, rg=rg, orgao_emissor=read.orgao_emissor if rg else None, uf_emissor=read.uf_emissor if rg else None
    )


def _stands(value: str | None, texto: str) -> bool:
    digits = "".join(each for each in value or "" if each.isdigit())
    return value is not None and digits in "".join(each for each in texto if each.isdigit())
