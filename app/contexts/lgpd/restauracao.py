"""Erase a person again after a restored backup, older than the erasure, has brought the person's data back."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from app.contexts.comum.telefone import chave
from app.contexts.conversas.api import Diario, Resumos
from app.contexts.lgpd.pessoa import Alvo
from batuta.kernel import Ids, dataclass
from batuta.sql import AsJson, Dialect, Query, Reading, Restored, Row, Transaction, as_values, insert_rows, load_queries

JSON: Final = ("digests", "alvo", "contagens", "restam")


@dataclass(frozen=True, slots=True)
class RestoreQueries:
    requests: Query
    numbers: Query
    reopen: Query
    refuse_number: Query


class RestauracaoLgpd:
    """After a restore, copies the LGPD requests from the replaced database, and reopens the erasures of people whose
    data is in the backup.

    The job ``limpar_historico`` continues the reopened erasures. Until an erasure is complete, the person is opted out.
    """

    def __init__(self, dialect: Dialect, resumos: Resumos, diario: Diario | None, ids: Ids) -> None:
        self._dialect = dialect
        self._resumos = resumos
        self._diario = diario
        self._ids = ids
        self._queries = load_queries(RestoreQueries, "sql/restauracao.sql", dialect)

    async def collect(self, old: Reading, since: datetime) -> Sequence[Row]:
        return await old.all(self._queries.requests)

    async def apply(self, new: Transaction, collected: Sequence[Row] | None, restored: Restored) -> Mapping[str, int]:
        rows, now = collected or (), restored.restored_at
        await insert_rows(new, self._dialect, "lgpd_pedidos", as_values(rows, JSON))
        entries = [] if self._diario is None else self._diario.entries()
        erased = {digest for row in rows if row["tipo"] == "apagar" for digest in row["digests"]}
        erased |= {entry.digest for entry in entries if entry.kind == "erasure"}
        for digest in sorted(erased):
            await new.run(self._queries.refuse_number, digest=digest, now=now)
        back = {
            key: digest
            for row in (await new.all(self._queries.numbers) if erased else [])
            if (digest := await self._resumos.settle(new, key := chave(row["telefone"]), now=now)) in erased
        }
        for key, digest in back.items():
            await new.run(
                self._queries.reopen,
                id=self._ids.new(),
                digests=AsJson([digest]),
                alvo=AsJson(Alvo(chaves=(key,)).em_json()),
                por=restored.by,
                motivo=f"restauracao:{now.isoformat()}",
                empty=AsJson({}),
                now=now,
            )
        return {"erasures": len(back)}
