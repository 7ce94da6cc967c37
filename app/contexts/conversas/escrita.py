"""Messages that a team member writes to a doctor."""

from typing import Final

from app.contexts.comum.fila import Fila
from app.contexts.conversas.atendimento import Atendimento
from app.contexts.mensagens.api import NovaMensagem, Tipo
from batuta import BatutaError
from batuta.kernel import Clock, Ids, dataclass, is_writable
from batuta.sql import AuditLog, Database, Query, load_queries

# The longest text that every channel accepts.
LONGEST_TEXTO: Final = 4_096
WROTE: Final = "escreveu ao médico"


class RespostaRecusada(BatutaError):
    sentence = "the message must have a text of at most {longest} characters: write it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Respondida:
    """A message that a team member queued. ``mensagem_id`` is None if a message with the same key was queued before."""

    id: str
    mensagem_id: str | None
    assumida: bool  # True if the person took over the conversation with this message


@dataclass(frozen=True, slots=True)
class WritingQueries:
    recipient: Query


class EscritaDaEquipe:
    def __init__(self, database: Database, atendimento: Atendimento, fila: Fila, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._atendimento = atendimento
        self._fila = fila
        self._ids = ids
        self._audit = AuditLog(database.dialect, ids)
        self._clock = clock
        self._queries = load_queries(WritingQueries, "sql/escrita.sql", database.dialect)

    async def responder(self, id: str, texto: str, *, por: str, chave: str | None = None) -> Respondida:
        """Queue a text that the person ``por`` wrote, and let that person take over the conversation. The message is
        subject to the sending rules.

        Raises ConversaComPessoa if another person is handling the conversation.
        """
        texto = texto.strip()
        if not 0 < len(texto) <= LONGEST_TEXTO or not is_writable(texto):
            raise RespostaRecusada(longest=LONGEST_TEXTO)
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            taken = await self._atendimento.assumir_em(transaction, id, por=por, motivo=WROTE)
            who = await transaction.one(self._queries.recipient, id=id)
            assert who is not None
            item = NovaMensagem(
                tipo=Tipo.MANUAL,
                cliente_id=str(who["cliente_id"]),
                telefone=who["telefone"],
                texto=texto,
                chave=f"equipe:{chave or self._ids.new()}",
                conversa_id=id,
                metadata={"por": por},
            ).item(now=now)
            (message,) = await self._fila.put([item], within=transaction)
            await self._audit.note(
                transaction,
                actor=por,
                action="conversa.responder",
                subject=f"conversa:{id}",
                before=None,
                after={"mensagem": message},
                now=now,
            )
        return Respondida(id=id, mensagem_id=message, assumida=not taken.repetida)
