"""Listeners for hand-offs. They react to messages to the poster (the person who posted the vacancy) and to the poster's
replies.
"""

from datetime import datetime
from typing import Final

from app.contexts.conversas.api import MensagemRecebida, MotivoDaPendencia
from app.contexts.handoffs import textos
from app.contexts.handoffs.leitura import confirma
from app.contexts.handoffs.model import Status, Via
from app.contexts.handoffs.service import HANDOFF, Handoffs
from app.contexts.leitura_conversas.api import Classe
from app.contexts.mensagens.api import Desfecho, MensagemEncerrada, NovaMensagem, Tipo
from batuta.sql import Transaction

TIPOS: Final = (Tipo.HANDOFF, Tipo.LEMBRETE_HANDOFF, Tipo.CONFIRMACAO)
ASKS: Final = (Tipo.HANDOFF.value, Tipo.LEMBRETE_HANDOFF.value)


class Externos:
    def __init__(self, parts: Handoffs) -> None:
        self._handoffs = parts

    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Record that the first message or a reminder was sent to the person who posted the vacancy."""
        if mensagem.tipo == Tipo.HANDOFF.value:
            await self._handoffs.contatado(transaction, mensagem.id, em=mensagem.em)
        elif mensagem.tipo == Tipo.LEMBRETE_HANDOFF.value:
            await self._handoffs.lembrado(transaction, mensagem.id, em=mensagem.em)

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Ask a team member to help, because one of a hand-off's messages was not sent: a message to the person who
        posted the vacancy, or the message that tells the doctor the result.
        """
        id = mensagem.metadata.get(HANDOFF)
        if not isinstance(id, str) or mensagem.desfecho is Desfecho.DEDUPED:
            return
        if mensagem.tipo in ASKS:
            doctor = await self._handoffs.medico_a_espera(transaction, id)
            motivo = MotivoDaPendencia.CONFIRMAR_VAGA
        elif mensagem.tipo == Tipo.CONFIRMACAO.value:
            doctor, motivo = mensagem.cliente_id, MotivoDaPendencia.RESPOSTA_NAO_SAIU
        else:
            return
        if doctor is not None:
            await self._handoffs.pedir_pessoa(transaction, doctor, motivo, message_id=mensagem.id, em=mensagem.em)

    async def recebida(self, transaction: Transaction, mensagem: MensagemRecebida, *, now: datetime) -> str | None:
        """Decide a hand-off according to the reply from the poster (the person who posted the vacancy). If the reply is
        unclear, a person reads it.

        A reply decides a hand-off only under two conditions: the last message to the poster asked about a hand-off, and
        the poster has only one open hand-off.
        """
        if mensagem.feitos or mensagem.com_pessoa or mensagem.cliente_id is None or mensagem.telefone is None:
            return None
        open_now = await self._handoffs.abertos_de(transaction, mensagem.cliente_id)
        if not open_now or await self._handoffs.ultima(transaction, mensagem.cliente_id) not in ASKS:
            return None
        decided = None if mensagem.leitura.classe is Classe.HUMANO else confirma(mensagem.texto)
        if decided is None or len(open_now) > 1:
            return await self._leave_to_person(transaction, mensagem, mensagem.cliente_id)
        done = await self._handoffs.decidir_em(
            transaction,
            open_now[0],
            Status.CONFIRMED if decided else Status.NOT_CONFIRMED,
            via=Via.RESPOSTA,
            por="divulgador",
            motivo=f"resposta:{mensagem.message_id}",
        )
        if done.mudou and (done.status is Status.CONFIRMED) is decided:
            await self._thank(transaction, mensagem, done.status, now)
            return "handoff"
        return await self._leave_to_person(transaction, mensagem, mensagem.cliente_id)

    async def _leave_to_person(self, transaction: Transaction, mensagem: MensagemRecebida, cliente_id: str) -> str:
        motivo = MotivoDaPendencia.SEM_RESPOSTA
        await self._handoffs.pedir_pessoa(
            transaction, cliente_id, motivo, message_id=mensagem.message_id, em=mensagem.em
        )
        return "handoff_para_pessoa"

    async def _thank(self, transaction: Transaction, mensagem: MensagemRecebida, status: Status, now: datetime) -> None:
        assert mensagem.cliente_id is not None
        assert mensagem.telefone is not None
        item = NovaMensagem(
            tipo=Tipo.RESPOSTA,
            cliente_id=mensagem.cliente_id,
            telefone=mensagem.telefone,
            texto=textos.OBRIGADA[status],
            chave=f"{Tipo.RESPOSTA}:{mensagem.message_id}",
            conversa_id=mensagem.conversa_id,
            responde_a=mensagem.message_id,
        ).item(now=now)
        await self._handoffs.parts.fila.put([item], within=transaction)
