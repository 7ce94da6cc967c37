"""Import a spreadsheet. The import checks and stores the file. Then a child process reads the rows, and the import
turns each batch of rows into appointments.

em_andamento ─▶ concluida     one transaction per batch of rows: appointments, tasks and the number of the last row
      └─▶ falhou              the attempts are exhausted

Everything that can make the import refuse a file is checked before the first write (``leitor``). The file stays stored
until its last row has become an appointment. If this process or the child crashes, the import resumes after the last
stored row.

For each appointment, one task parses its address and documents. These tasks form a batch with the import's id; the
batch is closed when the import ends.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from app.contexts.agendamentos.model import AgendamentoRepetido, colunas_ditas, recusada
from app.contexts.agendamentos.planilha.arquivo import MOST_ROWS, nome_mostravel
from app.contexts.agendamentos.planilha.linhas import MOST_REPORTED, Pedaco, Problema, Recusa, Reparo
from app.contexts.agendamentos.planilha.processo import ArquivoAberto, Interrompida, LeitorDeArquivos
from app.contexts.agendamentos.repository import import_queries
from app.contexts.agendamentos.service import Agendamentos, Lotes
from batuta import BatchProgress, Idle
from batuta.errors import EncryptionError, StatementRefused, StoreConflict, UnknownWord
from batuta.kernel import Clock, Ids
from batuta.loops import Pace, Wakeup
from batuta.sql import AsJson, Database, Row, Transaction

LOOK_EVERY: Final = timedelta(seconds=15)
# After this time without progress, an import's process is assumed to be dead.
INTERRUPTED_AFTER: Final = timedelta(seconds=30)
KEPT: Final = timedelta(days=180)  # retention of the import record; its appointments are kept
MOST_RETRIES: Final = 5
# Maximum number of attempts to resume an import.
MOST_RESUMED: Final = 10
SHOWN_ID: Final = 6  # the name of an import's batch has this many characters from the end of the import's id

Progress = Callable[[int, int], None]


class Importacao:
    def __init__(
        self,
        database: Database,
        leitura: LeitorDeArquivos,
        agendamentos: Agendamentos,
        lotes: Lotes,
        ids: Ids,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._leitura = leitura
        self._agendamentos = agendamentos
        self._lotes = lotes
        self._ids = ids
        self._clock = clock
        self._wake = wake
        self._queries = import_queries(database.dialect)

    async def importar(
        self,
        content: bytes,
        name: str,
        *,
        by: str,
        colunas: Sequence[str] = (),
        progress: Progress = lambda done, at_most: None,
    ) -> Row:
        """Import a file and return its record. If the record's status is ``em_andamento``, a later attempt imports the
        remaining rows.

        ``colunas`` has the fields that a person chose for column titles, such as "DIA DA CONSULTA=data". These choices
        are stored and apply to later files with the same titles. ``progress`` is called with the number of processed
        rows and an upper limit for the total.
        """
        name, chosen = nome_mostravel(name), colunas_ditas(colunas)
        try:
            async with self._opened(content, name, chosen) as (folha, used):
                id = await self._receive(folha, content, name, by, used)
                if chosen:
                    said = {"forma": folha.forma, "colunas": AsJson(chosen), "by": by, "now": self._clock.now()}
                    await self._database.run(self._queries.remember, **said)
                await self._import_rows(id, folha, 0, progress)
        except Recusa as refused:
            raise recusada(refused) from None
        except Interrompida:
            await self._resume(id, progress)
        return await self.uma(id)

    @asynccontextmanager
    async def _opened(
        self, content: bytes, name: str, chosen: Mapping[str, str]
    ) -> AsyncIterator[tuple[ArquivoAberto, Mapping[str, str]]]:
        """Open a file with the given choices of fields for column titles. If no choices are given, use those stored for
        earlier files with the same column titles.
        """
        used = chosen
        async with AsyncExitStack() as stack:
            try:
                folha = await stack.enter_async_context(self._leitura.aberta(content, name, escolhidas=chosen))
                forma = folha.forma
            except Recusa as refused:
                forma = str(refused.facts.get("forma", ""))
                if chosen or not (used := await self._read_columns(forma)):
                    raise
            else:
                used = chosen or await self._read_columns(forma)
                if used == chosen:
                    yield folha, used
                    return
            await stack.aclose()
            async with self._leitura.aberta(content, name, escolhidas=used) as folha:
                yield folha, used

    async def _read_columns(self, forma: str) -> dict[str, str]:
        row = await self._database.one(self._queries.remembered, forma=forma) if forma else None
        return {} if row is None else dict(row["colunas"])

    async def continuar(self, id: str) -> None:
        """Resume an interrupted import unless another process is working on it. After too many attempts, mark the
        import as failed.
        """
        now = self._clock.now()
        asked = {"id": id, "now": now, "before": now - INTERRUPTED_AFTER, "most": MOST_RESUMED}
        if await self._database.run(self._queries.resume, **asked):
            try:
                # this import is retried later, and the other imports continue
                with suppress(StatementRefused, StoreConflict):
                    await self._resume(id, lambda done, at_most: None)
            except EncryptionError:
                # wait until the key is set again, without counting an attempt
                await self._database.run(self._queries.wait, id=id)
            return
        async with self._database.transaction() as transaction:
            errors = await self._errors(transaction, id, [Reparo(None, None, Problema.INTERROMPIDA)])
            if await transaction.run(self._queries.fail, errors=AsJson(errors), **asked):
                await transaction.run(self._queries.drop, id=id)
                await self._lotes.handle(id).close(within=transaction)

    async def uma(self, id: str) -> Row:
        row = await self._database.one(self._queries.show, id=id)
        assert row is not None
        return row

    async def proposta(self, content: bytes, name: str, colunas: Sequence[str] = ()) -> Sequence[str]:
        """Propose a field for each column with an uncertain title, as in "DIA DA CONSULTA=data". The file is not
        imported. The result is empty if the file needs no choices, or is refused for another reason.
        """
        try:
            async with self._opened(content, nome_mostravel(name), colunas_ditas(colunas)):
                return ()
        except Recusa as refused:
            return re.findall(r'"([^"]+=[^"=]+)"', str(refused.facts.get("proposta", "")))

    async def encontrada(self, id: str) -> Row | None:
        return await self._database.one(self._queries.show, id=id)

    async def leitura(self, id: str) -> BatchProgress | None:
        """Return the progress of the tasks that parse the import's addresses and documents, or None if the retention
        has deleted their batch.
        """
        try:
            return await self._lotes.handle(id).progress()
        except UnknownWord:
            return None

    async def recentes(self, limit: int) -> list[Row]:
        return await self._database.all(self._queries.recent, limit=limit)

    async def interrompidas(self) -> Sequence[str]:
        rows = await self._database.all(self._queries.interrupted, before=self._clock.now() - INTERRUPTED_AFTER)
        return [row["id"] for row in rows]

    async def esquecer_antigas(self) -> int:
        return await self._database.run(self._queries.forget, before=self._clock.now() - KEPT, limit=100)

    async def _receive(
        self, folha: ArquivoAberto, content: bytes, name: str, by: str, escolhidas: Mapping[str, str]
    ) -> str:
        """Store the file and return the id of the import. Until the last row is read, the record of the import has the
        number of rows of the sheets, including empty rows.
        """
        id, arquivo, sha256 = self._ids.new(), name, hashlib.sha256(content).hexdigest()
        asked = {"arquivo": arquivo, "sha256": sha256, "total_rows": folha.altura, "by": by, "now": self._clock.now()}
        columns = {"escolhidas": AsJson(dict(escolhidas)), "colunas": AsJson(folha.colunas)}
        async with self._database.transaction() as transaction:
            await transaction.run(self._queries.create, id=id, **asked, **columns)
            await transaction.run(self._queries.keep, id=id, conteudo=content)
            await self._lotes.create(f"importação {id[-SHOWN_ID:]}", id=id, within=transaction)
        return id

    async def _resume(self, id: str, progress: Progress) -> None:
        row = await self._database.one(self._queries.file, id=id)
        if row is None:
            return
        try:
            chosen = row["escolhidas"] or {}
            async with self._leitura.aberta(row["conteudo"], row["arquivo"], row["linha"], chosen) as folha:
                await self._import_rows(id, folha, row["linha"], progress)
        except (Recusa, Interrompida):
            return  # the file passed its checks, so a later attempt resumes the import

    async def _import_rows(self, id: str, folha: ArquivoAberto, desde: int, progress: Progress) -> None:
        async for pedaco in folha.pedacos():
            try:
                is_ours = await self._try(id, desde, pedaco)
            except (AgendamentoRepetido, StatementRefused, StoreConflict):
                is_ours = await self._row_by_row(id, desde, pedaco)
            if not is_ours:
                return  # another process continues this import
            desde = pedaco.ate
            self._wake()
            progress(pedaco.ate, folha.altura)

    async def _try(self, id: str, desde: int, pedaco: Pedaco) -> bool:
        for _ in range(MOST_RETRIES):
            try:
                return await self._write(id, desde, pedaco)
            except AgendamentoRepetido:
                continue  # another import inserted the same key at the same time; the next attempt finds that key
        raise AgendamentoRepetido

    async def _row_by_row(self, id: str, desde: int, pedaco: Pedaco) -> bool:
        """Write each row of a batch in a transaction of its own. A row that cannot be written is reported, and the
        remaining rows are still stored.
        """
        for row in pedaco.linhas:
            ate = pedaco.acima + int(str(row["linha"]))
            alone = replace(pedaco, linhas=[row], ate=ate, is_last=False)
            try:
                is_ours = await self._try(id, desde, alone)
            except (AgendamentoRepetido, StatementRefused, StoreConflict):
                is_ours = await self._refuse(id, desde, alone)
            if not is_ours:
                return False
            desde = ate
        return await self._write(id, desde, replace(pedaco, linhas=[]))

    async def _refuse(self, id: str, desde: int, alone: Pedaco) -> bool:
        async with self._database.transaction() as transaction:
            if not await transaction.run(
                self._queries.advance, id=id, desde=desde, ate=alone.ate, now=self._clock.now()
            ):
                return False
            (row,), acima = alone.linhas, alone.acima
            aba = None if row.get("aba") is None else str(row["aba"])
            wrong = Reparo(alone.ate - acima, None, Problema.NAO_GRAVADA, aba, acima)
            errors = await self._errors(transaction, id, [wrong])
            await transaction.run(self._queries.refuse, id=id, errors=AsJson(errors))
        return True

    async def _errors(self, transaction: Transaction, id: str, more: Sequence[Reparo]) -> list[dict[str, Any]]:
        """Return the errors of an import, both the stored ones and the new ones, sorted by line."""
        row = await transaction.one(self._queries.show, id=id)
        errors = [*((row and row["errors"]) or []), *(each.em_json() for each in more)]
        return sorted(errors, key=_position)[: MOST_REPORTED + 1]

    async def _write(self, id: str, desde: int, pedaco: Pedaco) -> bool:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            if not await transaction.run(self._queries.advance, id=id, desde=desde, ate=pedaco.ate, now=now):
                return False
            done = await self._agendamentos.gravar(transaction, pedaco.linhas, id)
            await transaction.run(
                self._queries.count,
                id=id,
                valid=pedaco.total - pedaco.invalidas - pedaco.puladas,
                invalid=pedaco.invalidas,
                skipped=pedaco.puladas,
                imported=done.novas,
                duplicates=done.repetidas,
                cars=done.carros,
                jobs=done.tarefas,
            )
            if pedaco.is_last:
                errors = await self._errors(transaction, id, pedaco.erros)
                warnings = [each.em_json() for each in pedaco.avisos]
                said = {"errors": AsJson(errors), "warnings": AsJson(warnings)}
                await transaction.run(self._queries.finish, id=id, total_rows=pedaco.total, now=now, **said)
                await transaction.run(self._queries.drop, id=id)
                await self._lotes.handle(id).close(within=transaction)
        return True


def _position(error: Mapping[str, Any]) -> int:
    """Return the key that sorts problems by sheet, then by line. Problems that concern the whole file come last."""
    return MOST_ROWS + 1 if error["linha"] is None else error.get("acima", 0) + error["linha"]


class ImportLoop:
    """Loop that resumes imports whose process has died."""

    name = "importacoes"

    def __init__(self, importacao: Importacao) -> None:
        self.wakeup = Wakeup()
        self._importacao = importacao

    async def tick(self) -> Pace:
        await self._importacao.esquecer_antigas()
        for id in await self._importacao.interrompidas():
            await self._importacao.continuar(id)
        return Idle()


def resultado(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    """Return an import's result in the form that the uploading client receives."""
    names = (
        "total_rows",
        "valid_rows",
        "invalid_rows",
        "imported",
        "duplicates",
        "skipped",
        "cars_created",
        "jobs_enqueued",
    )
    return {
        "success": row["status"] == "concluida",
        "importacao_id": row["id"],
        "filename": row["arquivo"],
        "status": row["status"],
        "colunas": row["colunas"] or {},
        **{name: row[name] for name in names},
        **{kind: [_document(each) for each in row[kind] or []] for kind in ("errors", "warnings")},
    }


def leitura_em_json(leitura: BatchProgress | None) -> dict[str, Any] | None:
    """Return the progress of an import's tasks as a JSON object for API clients."""
    if leitura is None:
        return None
    return {"state": leitura.state, "total": leitura.total, "done": leitura.done, "failed": leitura.failed}


def _document(reparo: Mapping[str, Any]) -> dict[str, Any]:
    """Return a problem in a spreadsheet as a JSON object. ``aba`` (the sheet) is set only if several sheets were read."""
    return {name: reparo[name] for name in ("aba", "linha", "coluna", "problema") if name in reparo}
