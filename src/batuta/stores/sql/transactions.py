"""The oldest open transaction, as the server's own views show it."""

from dataclasses import dataclass
from datetime import timedelta

from batuta.health.checks import OpenTransaction
from batuta.stores.sql.database import Database, Query, from_row
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries


@dataclass(frozen=True, slots=True)
class TransactionQueries:
    oldest: Query


class SqlTransactions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = load_queries(TransactionQueries, STATEMENTS / "transactions.sql", database.dialect)

    async def oldest(self) -> OpenTransaction | None:
        row = await self._database.one(self._queries.oldest)
        if row is None:
            return None
        lasts = timedelta(seconds=max(0.0, row["seconds"]))
        return from_row(OpenTransaction, row, lasts=lasts, transactions_since=row["transactions"])
