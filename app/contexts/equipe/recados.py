"""Apply people's actions in the help desk to Julia's conversations.

    a person writes to the doctor   ──▶ the person handles the conversation, and the message is queued as ``manual``
    assigned to a person            ──▶ the person handles the conversation
    unassigned                      ──▶ the conversation needs a person
    resolved                        ──▶ Julia handles the conversation; held messages are cancelled
    resolved, with label continuar  ──▶ Julia handles the conversation; held messages are sent
    label humano                    ──▶ the conversation needs a person

The help desk also sends events about changes that Julia made. Those events have no effect.
"""

from contextlib import suppress
from datetime import datetime
from typing import Final

from app.contexts.comum.fila import Fila
from app.contexts.conversas.api import Atendimento, ConversaComPessoa, ConversaSemPessoa, Estagios
from app.contexts.conversas.service import Conversas
from app.contexts.equipe.central import CONTINUAR, HUMANO
from app.contexts.equipe.espelho import FROM_CENTRAL
from app.contexts.mensagens.api import NovaMensagem, Tipo
from app.contexts.mensagens.service import NaDevolucao
from app.contexts.webhooks.api import EscritaNaCentral, MudancaNaCentral
from batuta.kernel import dataclass
from batuta.sql import Dialect, Query, Row, Transaction, load_queries

OPEN: Final = ("active", "paused", "escalated")
PERSON: Final = "human"
CENTRAL: Final = "chatwoot"


@dataclass(frozen=True, slots=True)
class DeskQueries:
    of_central: Query
    seen: Query
    unlink: Query
    relink: Query


class Recados:
    """Applies people's actions in the help desk. Each action is applied in the transaction that settles its webhook
    delivery.
    """

    def __init__(
        self, dialect: Dialect, conversas: Conversas, atendimento: Atendimento, estagios: Estagios, fila: Fila
    ) -> None:
        self._conversas = conversas
        self._atendimento = atendimento
        self._estagios = estagios
        self._fila = fila
        self._queries = load_queries(DeskQueries, "sql/recados.sql", dialect)

    async def escrita(self, transaction: Transaction, fato: EscritaNaCentral, *, now: datetime) -> None:
        """Queue a message that a person wrote. This person takes over the conversation, unless a colleague
        already has.
        """
        talk = await transaction.one(self._queries.of_central, central_id=fato.central_id)
        if talk is None or not fato.texto.strip():
            return
        id = str(talk["id"])
        if talk["status"] not in OPEN:
            id = await self._open_again(transaction, talk, fato.central_id, now)
        await self._take(transaction, id, fato.autor, "escreveu na central")
        item = NovaMensagem(
            tipo=Tipo.MANUAL,
            cliente_id=str(talk["cliente_id"]),
            telefone=talk["telefone"],
            texto=fato.texto,
            chave=f"{CENTRAL}:{fato.message_id}",
            conversa_id=id,
            metadata={FROM_CENTRAL: fato.message_id},
        ).item(now=now)
        await self._fila.put([item], within=transaction)

    async def mudanca(self, transaction: Transaction, fato: MudancaNaCentral, *, now: datetime) -> None:
        """Apply a change that a person made to a conversation, unless a later change was already applied."""
        talk = await transaction.one(self._queries.of_central, central_id=fato.central_id)
        if talk is None or talk["status"] not in OPEN:
            return
        id, em = str(talk["id"]), fato.em or now
        resolved = fato.resolvida and "status" in fato.mudou
        if not await transaction.run(self._queries.seen, id=id, em=em, resolvida=resolved):
            return
        if resolved:
            await self._give_back(transaction, talk, fato, now)
        elif "assignee_id" in fato.mudou and fato.autor is not None:
            await self._take(transaction, id, fato.autor, "atribuída na central")
        elif "assignee_id" in fato.mudou:
            await self._let_go(transaction, talk)
        elif HUMANO in fato.etiquetas and any("label" in each for each in fato.mudou):
            await self._estagios.escalar(transaction, id, por=CENTRAL, motivo=f"etiqueta {HUMANO}", now=now)

    async def _take(self, transaction: Transaction, id: str, autor: str, motivo: str) -> None:
        try:
            await self._atendimento.assumir_em(transaction, id, por=_name(autor), motivo=motivo)
        except ConversaComPessoa:
            return  # another person handles the conversation and stays responsible

    async def _let_go(self, transaction: Transaction, talk: Row) -> None:
        leader = talk["responsavel"]
        # A person who took the conversation outside the help desk stays responsible.
        if leader is not None and leader.startswith(f"{CENTRAL}:"):
            await self._atendimento.liberar_em(
                transaction, str(talk["id"]), por=leader, motivo="sem responsável na central"
            )

    async def _give_back(self, transaction: Transaction, talk: Row, fato: MudancaNaCentral, now: datetime) -> None:
        decisao = NaDevolucao.CONTINUAR if CONTINUAR in fato.etiquetas else NaDevolucao.CANCELAR
        who = talk["responsavel"] or (CENTRAL if fato.autor is None else _name(fato.autor))
        motivo = "resolvida na central"
        with suppress(ConversaSemPessoa):  # Julia handles it already
            await self._atendimento.devolver_em(transaction, str(talk["id"]), decisao, por=who, motivo=motivo)
        await self._conversas.pendencias.resolver_do_medico(
            transaction, str(talk["cliente_id"]), por=who, motivo=motivo, now=now
        )

    async def _open_again(self, transaction: Transaction, talk: Row, central_id: int, now: datetime) -> str:
        """Return the id of the doctor's open conversation. The conversation in the help desk belonged to an earlier
        conversation, which has ended; link it to the open one.
        """
        id = await self._conversas.conversa(transaction, str(talk["cliente_id"]), None, now=now)
        await transaction.run(self._queries.unlink, id=talk["id"])
        await transaction.run(self._queries.relink, id=id, central_id=central_id, desde=now)
        return id


def _name(autor: str) -> str:
    return f"{CENTRAL}:{autor}"
