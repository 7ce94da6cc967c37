"""Records whether the triggers' messages are sent, and how doctors answer them.

    a message is sent, or will not be sent      ──▶ recorded on the contact
    speciality in the answer to a first contact ──▶ stored on the doctor; Julia thanks the doctor
    answer to a request for feedback            ──▶ class and score recorded; Julia thanks the doctor, unless the answer
                                                    is unclear; a person reads a bad or unclear answer
    interest after a reactivation               ──▶ recorded; Julia thanks the doctor
    any other answer                            ──▶ class recorded; another listener answers the doctor

An inbound message counts as an answer only to Julia's last message to the doctor, and only within seven days.
"""

from datetime import datetime, timedelta
from typing import Final

from app.contexts.comum.fila import Fila
from app.contexts.comum.texto import chamado
from app.contexts.conversas.api import MensagemRecebida, MotivoDaPendencia, Pendencias
from app.contexts.gatilhos import textos
from app.contexts.gatilhos.avaliacao import Avaliacao, AvaliacaoLida, avaliar
from app.contexts.gatilhos.especialidade import especialidade_dita
from app.contexts.gatilhos.model import Gatilho
from app.contexts.gatilhos.service import TriggerQueries
from app.contexts.leitura_conversas.api import Classe, OptOut
from app.contexts.mensagens.api import MensagemEncerrada, NovaMensagem, Tipo
from app.contexts.operacao.service import Eventos
from batuta.kernel import dataclass
from batuta.sql import Row, Transaction

ANSWER_WITHIN: Final = timedelta(days=7)
# Julia's thanks are treated as an answer if they are sent within this time after the inbound message.
LIVE: Final = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contatos:
    queries: TriggerQueries
    fila: Fila
    pendencias: Pendencias
    eventos: Eventos

    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        await transaction.run(self.queries.sent, mensagem_id=mensagem.id, em=mensagem.em)

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        await transaction.run(self.queries.ended, mensagem_id=mensagem.id, em=mensagem.em)

    async def recebida(self, transaction: Transaction, mensagem: MensagemRecebida, *, now: datetime) -> str | None:
        """Record the answer to a trigger's message, and thank the doctor if the answer is clear. Return None if another
        listener or a person has to answer.
        """
        if mensagem.cliente_id is None or mensagem.tipo_cliente != "medico" or not mensagem.texto.strip():
            return None
        since = now - ANSWER_WITHIN
        asked = await transaction.one(self.queries.asked, cliente_id=mensagem.cliente_id, since=since)
        if asked is None:
            return None
        is_feedback = asked["gatilho"] == Gatilho.FEEDBACK.value and mensagem.leitura.opt_out is OptOut.NAO
        lida = avaliar(mensagem.texto) if is_feedback else None
        await self._record(transaction, asked, mensagem, lida)
        if mensagem.feitos or mensagem.com_pessoa or mensagem.leitura.opt_out is not OptOut.NAO:
            return None
        if lida is not None:
            return await self._thank(transaction, mensagem, lida, now)
        if asked["gatilho"] == Gatilho.DISCOVERY.value:
            return await self._learn(transaction, mensagem, now)
        is_interest = mensagem.leitura.classe in (Classe.ACEITE, Classe.CONFIRMACAO)
        if not is_interest or now - mensagem.em > LIVE:
            return None
        await self._answer(transaction, mensagem, textos.INTERESSE, now)
        return "interesse"

    async def _record(
        self, transaction: Transaction, asked: Row, mensagem: MensagemRecebida, lida: AvaliacaoLida | None
    ) -> None:
        await transaction.run(
            self.queries.answered,
            mensagem_id=asked["mensagem_id"],
            em=mensagem.em,
            classe=mensagem.leitura.classe.value,
            avaliacao=None if lida is None else lida.avaliacao.value,
            nota=None if lida is None else lida.nota,
        )

    async def _learn(self, transaction: Transaction, mensagem: MensagemRecebida, now: datetime) -> str | None:
        """Store the speciality that the doctor names. Return None if the answer does not clearly name a speciality."""
        said = especialidade_dita(mensagem.texto)
        if said is None or not await transaction.run(
            self.queries.learn, cliente_id=mensagem.cliente_id, especialidade=said
        ):
            return None
        await self.eventos.record(
            transaction,
            "especialidade_informada",
            now=now,
            dedupe_key=f"especialidade_informada:{mensagem.message_id}",
            cliente_id=mensagem.cliente_id,
            props={"especialidade": said},
        )
        if now - mensagem.em <= LIVE:
            await self._answer(transaction, mensagem, textos.ESPECIALIDADE, now, especialidade=said)
        return "especialidade"

    async def _thank(
        self, transaction: Transaction, mensagem: MensagemRecebida, lida: AvaliacaoLida, now: datetime
    ) -> str | None:
        if lida.avaliacao is Avaliacao.INDEFINIDA:
            return None
        is_bad = lida.avaliacao is Avaliacao.NEGATIVA
        if is_bad:
            await self._call_person(transaction, mensagem, now)
        if now - mensagem.em <= LIVE:
            await self._answer(transaction, mensagem, textos.AVALIADO_MAL if is_bad else textos.AVALIADO, now)
        return "avaliacao"

    async def _call_person(self, transaction: Transaction, mensagem: MensagemRecebida, now: datetime) -> None:
        assert mensagem.telefone is not None
        await self.pendencias.abrir(
            transaction,
            MotivoDaPendencia.AVALIACAO_NEGATIVA,
            message_id=mensagem.message_id,
            telefone=mensagem.telefone,
            endereco=mensagem.telefone,
            cliente_id=mensagem.cliente_id,
            conversa_id=mensagem.conversa_id,
            em=mensagem.em,
            now=now,
        )

    async def _answer(
        self, transaction: Transaction, mensagem: MensagemRecebida, texto: str, now: datetime, **facts: str
    ) -> None:
        assert mensagem.cliente_id is not None
        assert mensagem.telefone is not None
        doctor = await transaction.one(self.queries.doctor, cliente_id=mensagem.cliente_id)
        item = NovaMensagem(
            tipo=Tipo.RESPOSTA,
            cliente_id=mensagem.cliente_id,
            telefone=mensagem.telefone,
            texto=texto.format(nome=chamado(None if doctor is None else doctor["primeiro_nome"]), **facts),
            chave=f"{Tipo.RESPOSTA}:{mensagem.message_id}",
            conversa_id=mensagem.conversa_id,
            responde_a=mensagem.message_id,
        ).item(now=now)
        await self.fila.put([item], within=transaction)
