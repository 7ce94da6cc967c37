"""Let operators record opt-outs and deletion requests that people made by telephone or e-mail."""

from datetime import datetime
from typing import Final, Protocol

from app.contexts.comum.telefone import telefone_de
from app.contexts.conversas.service import Conversas
from batuta import BatutaError
from batuta.kernel import Clock, Ids, dataclass
from batuta.sql import AuditLog, Database, Transaction

SHORTEST: Final = 12  # digits with the country code; a number without it could belong to another person
SHOWN: Final = 4


class TelefoneRecusado(BatutaError):
    """Raised for an invalid phone number. The error text omits the number, because it may be a real person's number."""

    sentence = "the telephone number is invalid: write it with country code and area code, as in 5511900000001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parado:
    final: str  # the last digits, enough for the operator to recognise the number
    medico: bool  # False if no doctor has this number; the opt-out is recorded anyway
    canceladas: int


class _Act(Protocol):
    async def __call__(
        self, transaction: Transaction, telefone: str, *, origem: str, now: datetime
    ) -> tuple[str | None, int]: ...


class OptoutManual:
    def __init__(self, database: Database, conversas: Conversas, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._conversas = conversas
        self._ids = ids
        self._audit = AuditLog(database.dialect, ids)
        self._clock = clock

    async def remover(self, escrito: str, *, by: str, reason: str) -> Parado:
        """Delete the personal data of a person who has requested the deletion."""
        return await self._end_contact("remocao", self._conversas.remover_numero, escrito, by, reason)

    async def parar(self, escrito: str, *, by: str, reason: str) -> Parado:
        return await self._end_contact("optout", self._conversas.parar_numero, escrito, by, reason)

    async def _end_contact(self, action: str, act: _Act, escrito: str, by: str, reason: str) -> Parado:
        telefone = telefone_de(escrito)
        if telefone is None or len(telefone) < SHORTEST:
            raise TelefoneRecusado
        now, final = self._clock.now(), telefone[-SHOWN:]
        async with self._database.transaction() as transaction:
            cliente_id, cancelled = await act(transaction, telefone, origem=f"manual:{self._ids.new()}", now=now)
            await self._audit.note(
                transaction,
                actor=by,
                action=action,
                subject=f"externo:…{final}" if cliente_id is None else f"medico:{cliente_id}",
                before=None,
                after={"reason": reason, "canceladas": cancelled},
                now=now,
            )
        return Parado(final=final, medico=cliente_id is not None, canceladas=cancelled)
