"""Copy a conversation to the help desk while it needs a person or a person is handling it.

    a person is needed ──▶ opened and labelled in the help desk, with the last messages
    messages from doctor, Julia and team ──▶ published in the order in which they were sent
    Julia handles the conversation again, or it ends ──▶ resolved in the help desk

Each event adds a row to the queue ``central_fila``. A conversation's rows are processed one after the other. The
handler compares the conversation with the help desk and writes the difference, so a repeated row changes nothing.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from app.contexts.comum.fila import Fila
from app.contexts.comum.saude import report_count
from app.contexts.conversas.api import Chamado, MensagemRecebida
from app.contexts.equipe.central import CIRCUIT, HUMANO, JULIA, Central, Falha, Ficha, Publicacao
from app.contexts.mensagens.api import MensagemEncerrada
from batuta import Done, Failed, Outcome, Snooze
from batuta.guards import WORKED, Circuits, Hold
from batuta.health import JOBS_AND_WORKERS, Check, Report, Severity
from batuta.kernel import Clock, dataclass
from batuta.queues import ItemHandler, Lease, NewItem, QueueTable, after_seconds
from batuta.reasons import define, hold_reason
from batuta.sql import Database, Query, Row, Transaction, load_queries

FILA: Final = QueueTable(
    name="central_fila",
    ready=("pendente",),
    running="processando",
    done="processada",
    dead="erro",
    cancelled="cancelada",
    attempts="tentativas",
    crashes="quedas",
    error="erro",
    group="grupo",
)
TIMEOUT: Final = timedelta(seconds=120)
RETRY: Final = after_seconds([5, 30, 120, 600, 1800, 3600, 7200, 14_400])
LATE: Final = timedelta(minutes=10)
RECENT: Final = timedelta(hours=24)
# Number of earlier messages that the help desk shows when a conversation first needs a person.
CONTEXT: Final = 10
BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
# Maximum number of messages that one run publishes. It is less than the 20 latest messages that the help desk lists, so
# that a repeated run recognises the messages that it already published.
AT_A_TIME: Final = 15
# Metadata key of a message that a person wrote in the help desk. Its value is the id of the message there.
FROM_CENTRAL: Final = "central_message_id"

FAILED = define(
    "central_falhou", "the help desk did not accept the request ({error}): check CHATWOOT_URL and CHATWOOT_TOKEN"
)
NOTE: Final = "A mensagem não foi enviada ao médico ({desfecho})."
T = TypeVar("T")


class _Parou(Exception):
    """Raised to stop handling a row of the queue ``central_fila``. ``outcome`` is the row's outcome."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class MirrorQueries:
    talk: Query
    linked: Query
    context: Query
    unpublished: Query
    published: Query
    written_there: Query
    stuck: Query


class Espelho:
    """Queues conversations when they change. As the handler of this queue, writes the changes to the help desk."""

    def __init__(self, database: Database, central: Central, circuits: Circuits, clock: Clock) -> None:
        self.fila: Fila | None = None  # set when the queue is registered
        self._database = database
        self._central = central
        self._circuits = circuits
        self._clock = clock
        self._queries = load_queries(MirrorQueries, "sql/espelho.sql", database.dialect)

    async def chamada(self, transaction: Transaction, chamado: Chamado, *, now: datetime) -> None:
        """Queue a conversation that needs a person, so that it is opened in the help desk."""
        if chamado.conversa_id is not None:
            await self._queue(transaction, chamado.conversa_id)

    async def mudada(self, transaction: Transaction, conversa_id: str, *, now: datetime) -> None:
        """Queue a conversation that has ended, or that another person or Julia now handles, so that the help desk is
        updated.
        """
        await self._queue(transaction, conversa_id)

    async def recebida(self, transaction: Transaction, mensagem: MensagemRecebida, *, now: datetime) -> str | None:
        """Queue an inbound message if a person is handling its conversation. Always return None: a copy in the help
        desk does not answer the message.
        """
        if mensagem.com_pessoa and mensagem.conversa_id is not None:
            await self._queue(transaction, mensagem.conversa_id)
        return None

    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Queue a message that a person sent, unless the person wrote it in the help desk."""
        if mensagem.conversa_id is None:
            return
        if FROM_CENTRAL in mensagem.metadata:
            await transaction.run(self._queries.written_there, fila_id=mensagem.id)
            return
        await self._queue(transaction, mensagem.conversa_id)

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Queue a note that tells the help desk that a message written there was not sent."""
        if mensagem.conversa_id is not None and FROM_CENTRAL in mensagem.metadata:
            nota = NOTE.format(desfecho=mensagem.desfecho.value)
            await self._queue(transaction, mensagem.conversa_id, nota=nota, nota_de=mensagem.id)

    def handler(self) -> ItemHandler:
        return ItemHandler(handle=self.handle, timeout=TIMEOUT, retry=RETRY, retry_timeout=True)

    async def handle(self, lease: Lease) -> Outcome:
        """Compare one conversation with the help desk, and write the difference to the help desk."""
        talk = await self._database.one(self._queries.talk, id=lease.row["conversa_id"])
        if talk is None:
            return Done()
        try:
            return await self._mirror(talk, lease)
        except _Parou as stopped:
            return stopped.outcome

    async def _mirror(self, talk: Row, lease: Lease) -> Outcome:
        central_id = talk["chatwoot_conversation_id"]
        if central_id is None:
            if not talk["precisa"]:
                return Done()
            central_id = await self._open(talk)
        if (await self._publish(talk, central_id)) == AT_A_TIME:
            return Done(emit=(_item(str(talk["id"])),))
        if lease.row["nota"] is not None:
            note = Publicacao(chave=f"julia:nota:{lease.row['nota_de']}", texto=lease.row["nota"], privada=True)
            if note.chave not in await self._ask(partial(self._central.publicadas, central_id)):
                await self._ask(partial(self._central.publicar, central_id, note))
        await self._set_state(talk, central_id)
        return Done()

    async def _open(self, talk: Row) -> int:
        ficha = Ficha(
            conversa_id=str(talk["id"]), cliente_id=str(talk["cliente_id"]), nome=talk["primeiro_nome"] or "Médico"
        )
        central_id = await self._ask(partial(self._central.abrir, ficha))
        since = await self._database.one(self._queries.context, id=talk["id"], antes=CONTEXT - 1)
        desde = BEGINNING if since is None else since["created_at"]
        await self._database.run(self._queries.linked, id=talk["id"], central_id=central_id, desde=desde, estado="open")
        return central_id

    async def _publish(self, talk: Row, central_id: int) -> int:
        """Publish the messages that are missing from the help desk, oldest first. Return their number."""
        rows = await self._database.all(self._queries.unpublished, id=talk["id"], limite=AT_A_TIME)
        known = await self._ask(partial(self._central.publicadas, central_id)) if rows else frozenset[str]()
        for row in rows:
            message = Publicacao(
                chave=f"julia:{row['id']}", texto=row["conteudo"] or "-", do_medico=row["tipo"] == "entrada"
            )
            if message.chave not in known:
                await self._ask(partial(self._central.publicar, central_id, message))
            await self._database.run(self._queries.published, interacao_id=row["id"], now=self._clock.now())
        return len(rows)

    async def _set_state(self, talk: Row, central_id: int) -> None:
        """Set the conversation's labels in the help desk, and open or resolve the conversation there."""
        is_led = talk["controlled_by"] == "human" and talk["precisa"]
        labels = [JULIA, *([talk["motivo"]] if talk["motivo"] else []), *([HUMANO] if is_led else [])]
        if talk["precisa"]:
            await self._ask(partial(self._central.etiquetar, central_id, labels, [] if is_led else [HUMANO]))
        elif talk["chatwoot_estado"] != "resolved":
            await self._ask(partial(self._central.etiquetar, central_id, [], [HUMANO]))
        estado, known = "open" if talk["precisa"] else "resolved", talk["chatwoot_estado"]
        if known is not None and known != estado:
            await self._ask(partial(self._central.mudar, central_id, aberta=bool(talk["precisa"])))
        await self._database.run(self._queries.linked, id=talk["id"], central_id=central_id, desde=None, estado=estado)

    async def _ask(self, call: Callable[[], Awaitable[T | Falha]]) -> T:
        """Send a request to the help desk through the circuit breaker, and return the answer. Raises _Parou if there is
        no answer.
        """
        admitted = await self._circuits.breaker(CIRCUIT).admit(self._clock.now())
        if isinstance(admitted, Hold):
            raise _Parou(Snooze(admitted.until, hold_reason(admitted.reason)))
        try:
            answer = await call()
        except BaseException:
            await admitted.ticket.give_back()
            raise
        if not isinstance(answer, Falha):
            await admitted.ticket.report(WORKED)
            return answer
        await admitted.ticket.report(answer.report)
        if answer.report.retry_at is not None:
            raise _Parou(Snooze(answer.report.retry_at, FAILED(error=answer.report.error)))
        raise _Parou(Failed(FAILED(error=answer.report.error)))

    async def ask(self) -> Report:
        now = self._clock.now()
        row = await self._database.one(self._queries.stuck, depois=now - RECENT, atrasado=now - LATE)
        assert row is not None
        return report_count(Severity.WARNING, "equipe", "central", row["items"], row["desde"], lost=2)

    @property
    def check(self) -> Check:
        return Check(name="central", section=JOBS_AND_WORKERS, ask=self.ask)

    async def _queue(
        self, transaction: Transaction, conversa_id: str, *, nota: str | None = None, nota_de: str | None = None
    ) -> None:
        assert self.fila is not None
        await self.fila.put([_item(conversa_id, nota, nota_de)], within=transaction)


def _item(conversa_id: str, nota: str | None = None, nota_de: str | None = None) -> NewItem:
    return NewItem(values={"conversa_id": conversa_id, "grupo": conversa_id, "nota": nota, "nota_de": nota_de})
