"""Move deduplication keys between extracted vacancies after an operator's decision.

A key identifies one shift: place, day, period and speciality. If several extracted vacancies have the same key, only
one of them owns it. If the owner is rejected, the next extracted vacancy from another author becomes the owner.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from app.contexts.vagas.vagas import JANELA, VagaQueries
from batuta.kernel import dataclass
from batuta.sql import AsJson, Dialect, Query, Row, Transaction, load_queries


@dataclass(frozen=True, slots=True)
class KeyQueries:
    free: Query
    move_key: Query
    become_duplicate: Query
    heir: Query
    send_to_review: Query
    repoint: Query
    copy_sources: Query
    refused: Query


class Chaves:
    def __init__(self, dialect: Dialect) -> None:
        here = Path(__file__).parent
        self._vagas = load_queries(VagaQueries, here / "sql" / "vagas.sql", dialect)
        self._queries = load_queries(KeyQueries, here / "sql" / "chaves.sql", dialect)

    async def soltar(self, transaction: Transaction, id: str, hash: str | None) -> None:
        if hash is not None:
            await transaction.run(self._queries.free, id=id, hash=hash)

    async def tomar(self, transaction: Transaction, id: str, hash: str, now: datetime) -> str:
        """Give a deduplication key to an extracted vacancy that an operator approved, and return the id of the vacancy
        that then owns the key. If an undecided vacancy owned the key, it loses the key and becomes a duplicate. If a
        decided vacancy owns the key, it stays the owner.
        """
        holder = await self._take_key(transaction, id, hash, now)
        if holder == id or not await transaction.run(self._queries.become_duplicate, id=holder, principal=id, now=now):
            return holder
        await transaction.run(self._queries.move_key, hash=hash, former=holder, id=id, now=now)
        await self._hand_over(transaction, holder, id, now, todas=True)
        return id

    async def recusada(
        self, transaction: Transaction, vaga: Row | Mapping[str, Any], now: datetime, *, mesmo_texto: bool
    ) -> None:
        """Release a rejected vacancy's deduplication key, and send the next duplicate from another author to review.
        With ``mesmo_texto``, this duplicate may have the same text. Pass False if the text itself was wrong.
        """
        id, hash = str(vaga["id"]), vaga["hash_dedup"]
        await self.soltar(transaction, id, hash)
        heir = await transaction.one(self._queries.heir, id=id, mesmo_texto=mesmo_texto)
        if heir is None:
            return
        await transaction.run(self._queries.send_to_review, id=heir["id"], now=now)
        await self._hand_over(transaction, id, heir["id"], now, todas=False)
        await self._take_key(transaction, heir["id"], heir["hash_dedup"], now)

    async def do_autor(self, transaction: Transaction, autor: str, now: datetime) -> None:
        """Release the deduplication keys of the vacancies that were rejected at ``now``, when their author was blocked."""
        for row in await transaction.all(self._queries.refused, autor=autor, now=now):
            await self.recusada(transaction, row, now, mesmo_texto=True)

    async def _take_key(self, transaction: Transaction, id: str, hash: str, now: datetime) -> str:
        asked = AsJson([{"hash": hash, "vaga": id}])
        rows = await transaction.all(self._vagas.take_keys, asked=asked, now=now, since=now - JANELA)
        return str(rows[0]["vaga"])

    async def _hand_over(self, transaction: Transaction, de: str, para: str, now: datetime, *, todas: bool) -> None:
        await transaction.run(self._queries.copy_sources, de=de, para=para, todas=todas)
        await transaction.run(self._queries.repoint, id=de, herdeira=para, now=now)
        await transaction.run(self._vagas.count_sources, id=para)
