"""Jobs for the send queue, which do once what the worker does continuously. A job and a worker never process the same
message, because each claims a message before processing it.
"""

from collections.abc import Awaitable, Callable, Sized
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.envio.envios_em_duvida import Reconciliador
from app.contexts.envio.registro import Registro
from app.contexts.mensagens.api import HORARIO, TIMELY, Desfecho, MensagemEncerrada, open_time
from batuta import Done, Outcome
from batuta.jobs import JobCall
from batuta.kernel import Clock
from batuta.reasons import define
from batuta.sql import Database, Transaction

WAITED_TOO_LONG = define("esperou_demais", "the message waited too long")

AT_MOST: Final = 20
BATCH: Final = 500


class Contagem:
    """Listener for all types of messages. It counts the messages that this process sent (``enviadas``), and the
    messages that it settled without sending them (``encerradas``).
    """

    def __init__(self) -> None:
        self.enviadas = 0
        self.encerradas = 0

    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        self.enviadas += 1

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        self.encerradas += 1


class MessageJobs:
    def __init__(
        self,
        database: Database,
        registro: Registro,
        reconciliador: Reconciliador,
        send: Callable[[int], Awaitable[int]],
        rescue: Callable[[], Awaitable[Sized]],
        contagem: Contagem,
        zone: ZoneInfo,
        clock: Clock,
    ) -> None:
        """Build the jobs for the send queue. ``send`` processes due messages and returns their number. ``rescue``
        releases messages that a dead worker had claimed.
        """
        self._database = database
        self._registro = registro
        self._reconciliador = reconciliador
        self._send = send
        self._rescue = rescue
        self._contagem = contagem
        self._zone = zone
        self._clock = clock

    async def processar_mensagens_agendadas(self, call: JobCall) -> Outcome:
        """Process the send queue once: release messages that dead workers had claimed, expire old messages, store dead
        letters, resolve messages that may or may not have been sent, and send due messages.

        The run reports the number of sent messages as its items. ``vistas`` also counts messages that have to wait or
        are blocked.
        """
        rescued = len(await self._rescue())
        expired = await self._expire()
        dead_letters = await self._store_dead_letters()
        decided = await self._reconciliador.look()
        sent, ended = self._contagem.enviadas, self._contagem.encerradas
        worked = await self._send(AT_MOST)
        sent, ended = self._contagem.enviadas - sent, self._contagem.encerradas - ended
        return Done(
            items=sent,
            result={
                "resgatadas": rescued,
                "expiradas": expired,
                "esclarecidas": decided,
                "para_a_dlq": dead_letters,
                "vistas": worked,
                "enviadas": sent,
                "encerradas": ended,
                "adiadas": max(worked - sent - ended, 0),
            },
        )

    async def _expire(self) -> int:
        now, expired = self._clock.now(), 0
        # A message created after this instant cannot have expired, whatever the sending hours.
        before = now - TIMELY
        for row in await self._registro.waiting_long(self._database, before=before, now=now, limit=BATCH):
            if open_time(row["devida_em"], now, HORARIO, self._zone) > TIMELY:
                async with self._database.transaction() as transaction:
                    expired += await self._registro.expire(
                        transaction, row["id"], WAITED_TOO_LONG(outcome=Desfecho.FAILED_EXPIRED.value), now=now
                    )
        return expired

    async def _store_dead_letters(self) -> int:
        async with self._database.transaction() as transaction:
            return await self._registro.store_dead_letters(transaction, now=self._clock.now(), limit=BATCH)
