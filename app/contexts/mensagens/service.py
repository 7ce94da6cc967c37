"""What other contexts may ask of the messages."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from batuta.stores.sql.database import Dialect, Query, Transaction
from batuta.stores.sql.queries import load


@dataclass(frozen=True, slots=True)
class MessageBook:
    cancel_waiting: Query
    ask_to_stop: Query


class Mensagens:
    def __init__(self, dialect: Dialect) -> None:
        self._book = load(MessageBook, Path(__file__).parent / "mensagens.sql", dialect)

    async def cancelar(
        self, transaction: Transaction, cliente_id: str, *, outcome: str, reason: str, now: datetime
    ) -> int:
        """Everything that waits for this doctor; what is being sent is asked to stop. How many were cancelled at once."""
        await transaction.run(self._book.ask_to_stop, cliente_id=cliente_id)
        return await transaction.run(
            self._book.cancel_waiting, cliente_id=cliente_id, outcome=outcome, reason=reason, now=now
        )
