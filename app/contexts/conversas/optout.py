"""The wish to be left alone that a person was told some other way: by telephone, by mail."""

from dataclasses import dataclass
from typing import Final

from app.contexts.comum.telefone import telefone_de
from app.contexts.conversas.service import Conversas
from batuta import BatutaError
from batuta.kernel import Clock, Ids
from batuta.sql import AuditLog, Database

SHORTEST: Final = 12  # with the country's code; without it the same digits may be somebody else's
SHOWN: Final = 4


class TelefoneRecusado(BatutaError):
    """What was written is not repeated: it may be somebody's number."""

    sentence = "that is no telephone number: write it with the country's and the area's code, as in 5511900000001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parado:
    final: str  # the last digits, enough to know whom one meant
    medico: bool  # False: nobody of ours has that number; it is kept all the same
    canceladas: int


class OptoutManual:
    def __init__(self, database: Database, conversas: Conversas, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._conversas = conversas
        self._ids = ids
        self._audit = AuditLog(database.dialect, ids)
        self._clock = clock

    async def remover(self, escrito: str, *, by: str, reason: str) -> Parado:
        """Delete what is known of a person who asked for it."""
        telefone = telefone_de(escrito)
        if telefone is None or len(telefone) < SHORTEST:
            raise TelefoneRecusado
        now, final = self._clock.now(), telefone[-SHOWN:]
        async with self._database.transaction() as transaction:
            cliente_id, cancelled = await self._conversas.remover_numero(
                transaction, telefone, origem=f"manual:{self._ids.new()}", now=now
            )
            await self._audit.note(
                transaction,
                actor=by,
                action="remocao",
                subject=f"externo:…{final}" if cliente_id is None else f"medico:{cliente_id}",
                before=None,
                after={"reason": reason, "canceladas": cancelled},
                now=now,
            )
        return Parado(final=final, medico=cliente_id is not None, canceladas=cancelled)

    async def parar(self, escrito: str, *, by: str, reason: str) -> Parado:
        telefone = telefone_de(escrito)
        if telefone is None or len(telefone) < SHORTEST:
            raise TelefoneRecusado
        now, final = self._clock.now(), telefone[-SHOWN:]
        async with self._database.transaction() as transaction:
            cliente_id, cancelled = await self._conversas.parar_numero(
                transaction, telefone, origem=f"manual:{self._ids.new()}", now=now
            )
            await self._audit.note(
                transaction,
                actor=by,
                action="optout",
                subject=f"externo:…{final}" if cliente_id is None else f"medico:{cliente_id}",
                before=None,
                after={"reason": reason, "canceladas": cancelled},
                now=now,
            )
        return Parado(final=final, medico=cliente_id is not None, canceladas=cancelled)
