"""A file of appointments: kept first, then turned into rows a block at a time, so that whoever crashes in between goes on there.

recebendo ─▶ em_andamento ─▶ concluida       a block goes in the transaction that makes its appointments and their tasks
     └─▶ falhou                              its sender never got an answer: what was kept of it goes
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from app.contexts.agendamentos.arquivo import MOST_ROWS, nome_mostravel
from app.contexts.agendamentos.leitura import Leitura
from app.contexts.agendamentos.linhas import Lida, Problema, Recusa, Reparo
from app.contexts.agendamentos.model import MOST_AT_ONCE, AgendamentoRepetido, chave_de, recusada
from app.contexts.agendamentos.repository import import_book
from app.contexts.agendamentos.service import Agendamentos
from batuta.kernel.clock import Clock
from batuta.kernel.ids import Ids
from batuta.kernel.json import Json
from batuta.stores.sql.database import AsJson, Database, Row
from batuta.supervise.loop import Doorbell, Idle, Pace

LOOK_EVERY: Final = timedelta(seconds=15)
# Nobody has gone on for this long: whoever did is gone.
INTERRUPTED_AFTER: Final = timedelta(seconds=30)
UNRECEIVED_AFTER: Final = timedelta(hours=1)
KEPT: Final = timedelta(days=180)  # what is known of an import; its appointments stay
MOST_TOLD: Final = 200
MOST_RETRIES: Final = 5
MOST_BLOCKS: Final = MOST_ROWS // MOST_AT_ONCE + 2


class Importacao:
    def __init__(
        self,
        database: Database,
        leitura: Leitura,
        agendamentos: Agendamentos,
        ids: Ids,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._leitura = leitura
        self._agendamentos = agendamentos
        self._ids = ids
        self._clock = clock
        self._wake = wake
        self._book = import_book(database.dialect)

    async def importar(
        self, content: bytes, name: str, *, by: str, told: Callable[[int, int], None] = lambda done, total: None
    ) -> Row:
        """Returned means: every row is there, and its task. ``told`` hears how many of how many are."""
        name = nome_mostravel(name)
        try:
            lida = await self._leitura.ler(content, name)
        except Recusa as refused:
            raise recusada(refused) from None
        id = await self._receive(lida, content, name, by)
        for done in range(1, _blocks(lida) + 2):
            await self.continuar(id)
            told(min(done * MOST_AT_ONCE, len(lida.linhas)), len(lida.linhas))
        return await self.uma(id)

    async def continuar(self, id: str) -> bool:
        """One block more. False: there is none left, and it is concluded unless somebody else is at its last."""
        if await self._one_block(id):
            self._wake()
            return True
        await self._database.run(self._book.finish, id=id, now=self._clock.now())
        return False

    async def uma(self, id: str) -> Row:
        row = await self._database.one(self._book.show, id=id)
        assert row is not None
        return row

    async def encontrada(self, id: str) -> Row | None:
        return await self._database.one(self._book.show, id=id)

    async def recentes(self, limit: int) -> list[Row]:
        return await self._database.all(self._book.recent, limit=limit)

    async def interrompidas(self) -> Sequence[str]:
        rows = await self._database.all(self._book.interrupted, before=self._clock.now() - INTERRUPTED_AFTER)
        return [row["id"] for row in rows]

    async def esquecer_incompletas(self) -> int:
        """Of a file that never came whole: its sender sends it again."""
        now = self._clock.now()
        rows = await self._database.all(self._book.unreceived, before=now - UNRECEIVED_AFTER)
        for row in rows:
            async with self._database.transaction() as transaction:
                await transaction.run(self._book.drop, id=row["id"])
                await transaction.run(self._book.fail, id=row["id"], now=now)
        return len(rows)

    async def esquecer_antigas(self) -> int:
        return await self._database.run(self._book.forget, before=self._clock.now() - KEPT, limit=100)

    async def _receive(self, lida: Lida, content: bytes, name: str, by: str) -> str:
        id, now = self._ids.new(), self._clock.now()
        linhas = [{**row, "chave": chave_de(row)} for row in lida.linhas]
        repeated = _repeated(linhas)
        async with self._database.transaction() as transaction:
            await transaction.run(
                self._book.create,
                id=id,
                arquivo=name,
                sha256=hashlib.sha256(content).hexdigest(),
                total_rows=lida.total,
                valid_rows=len(lida.linhas),
                invalid_rows=len({each.linha for each in lida.erros}),
                skipped=lida.puladas,
                errors=AsJson(_told(lida.erros)),
                warnings=AsJson(_told([*lida.avisos, *repeated])),
                by=by,
                now=now,
            )
        for bloco in range(_blocks(lida)):
            rows = linhas[bloco * MOST_AT_ONCE : (bloco + 1) * MOST_AT_ONCE]
            await self._database.run(self._book.keep, id=id, bloco=bloco, linhas=AsJson(rows))
        await self._database.run(self._book.receive, id=id, now=self._clock.now())
        return id

    async def _one_block(self, id: str) -> bool:
        for _ in range(MOST_RETRIES):
            try:
                async with self._database.transaction() as transaction:
                    taken = await transaction.one(self._book.take, id=id)
                    if taken is None:
                        return False
                    done = await self._agendamentos.gravar(transaction, taken["linhas"], id)
                    await transaction.run(
                        self._book.count,
                        id=id,
                        imported=done.novas,
                        duplicates=done.repetidas,
                        cars=done.carros,
                        jobs=done.tarefas,
                        now=self._clock.now(),
                    )
            except AgendamentoRepetido:
                continue  # another file brought the same at the same time: now it is known
            return True
        raise AgendamentoRepetido


class ImportLoop:
    """Goes on with imports whose process is gone."""

    name = "importacoes"

    def __init__(self, importacao: Importacao) -> None:
        self.doorbell = Doorbell()
        self._importacao = importacao

    async def tick(self) -> Pace:
        await self._importacao.esquecer_incompletas()
        await self._importacao.esquecer_antigas()
        for id in await self._importacao.interrompidas():
            for _ in range(MOST_BLOCKS):
                if not await self._importacao.continuar(id):
                    break
        return Idle()

    async def drain(self, grace: timedelta) -> None:
        """Nothing was started that outlives a tick."""


def _blocks(lida: Lida) -> int:
    return -(-len(lida.linhas) // MOST_AT_ONCE)


def _repeated(linhas: Sequence[Mapping[str, Json]]) -> list[Reparo]:
    """Rows of one file that say the same appointment: the last one counts."""
    seen: set[str] = set()
    found: list[Reparo] = []
    for row in linhas:
        if row["chave"] in seen:
            found.append(Reparo(int(str(row["linha"])), None, Problema.REPETIDO))
        seen.add(str(row["chave"]))
    return found


def _told(reparos: Sequence[Reparo]) -> list[dict[str, Json]]:
    told = [each.em_json() for each in reparos[:MOST_TOLD]]
    if len(reparos) > MOST_TOLD:
        told.append(Reparo(None, str(len(reparos) - MOST_TOLD), Problema.MUITOS).em_json())
    return told


def resultado(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    """As the one who sent the file is told it."""
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
        **{name: row[name] for name in names},
        "errors": row["errors"] or [],
        "warnings": row["warnings"] or [],
    }
