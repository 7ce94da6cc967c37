"""Record each inbound and outbound message once, apply opt-outs and removals immediately, and call the listeners.

All writes happen in the caller's transaction.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from app.contexts.campanhas.api import Alcance
from app.contexts.comum.conteudo import hash_do_texto
from app.contexts.comum.telefone import Address, chave, other_form
from app.contexts.comum.whatsapp import Entrega
from app.contexts.conversas.api import AoReceber, MensagemRecebida
from app.contexts.conversas.chamados import Chamados
from app.contexts.conversas.diario import Diario, Kind
from app.contexts.conversas.pendencias import MotivoDaPendencia, Pendencias
from app.contexts.conversas.repository import conversation_queries
from app.contexts.leitura_conversas.api import OptOut, ler
from app.contexts.mensagens.service import Mensagens
from app.contexts.operacao.service import Eventos
from app.contexts.webhooks.api import Eco, Recebida, Recibo
from batuta.kernel import Ids, dataclass
from batuta.sql import Dialect, Reading, Row, Transaction

OPT_OUT = "opt_out"
PROBABLE_OPT_OUT = "opt_out_provavel"
BLOCKED = "BLOCKED_OPTED_OUT"
REMOVED = "BLOCKED_OPTED_OUT"
SISTEMA = "sistema"
LONGEST_MOTIVO = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class EcoVisto:
    """An echo: a sent message that the gateway reported. ``fila_id`` is the id of its row in the send queue, or None."""

    provider_message_id: str
    instance: str
    jid: str | None
    em: datetime
    entrega: Entrega
    fila_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saida:
    """A message that Julia or a team member sent."""

    message_id: str
    jid: str
    telefone: str
    cliente_id: str
    conversation_id: str | None
    chip_id: str | None
    campaign_id: int | None
    texto: str
    autor: str  # julia or humano
    em: datetime


class Conversas:
    def __init__(
        self, dialect: Dialect, ids: Ids, mensagens: Mensagens, eventos: Eventos, diario: Diario | None = None
    ) -> None:
        """Build the service. ``diario`` is the journal that records opt-outs and removals outside the database; None
        means that there is no journal.
        """
        self.chamados = Chamados()
        self.pendencias = Pendencias(dialect, ids, self.chamados)
        self._listeners: list[AoReceber] = []
        self._diario = diario
        self._queries = conversation_queries(dialect)
        self._alcance = Alcance(dialect)
        self._ids = ids
        self._mensagens = mensagens
        self._eventos = eventos

    def ao_receber(self, ouvinte: AoReceber) -> None:
        """Register a listener for inbound messages. Listeners are called in the order of registration."""
        self._listeners.append(ouvinte)

    async def recebida(self, transaction: Transaction, fato: Recebida, *, now: datetime) -> None:
        """Record an inbound message once, apply an opt-out, and call the listeners. If no listener acts, the message
        enters the pending list.
        """
        mensagem = await self._identify(transaction, fato, now)
        if not await self._record_inbound(transaction, fato, mensagem):
            return
        # An opt-out locks the queued messages, so it comes first: see Mensagens.
        if (done := await self._obey(transaction, fato, mensagem, now)) is not None:
            mensagem = replace(mensagem, feitos=(done,))
        if mensagem.cliente_id is not None and mensagem.conversa_id is not None:
            await self._count_inbound(transaction, mensagem.cliente_id, mensagem.conversa_id, fato.em, now)
        await transaction.run(self._queries.count_on_chip, chip_id=mensagem.chip_id)
        for each in self._listeners:
            if (done := await each.recebida(transaction, mensagem, now=now)) is not None:
                mensagem = replace(mensagem, feitos=(*mensagem.feitos, done))
        if not mensagem.feitos:
            await self._leave_to_person(transaction, fato, mensagem, now)

    async def historica(self, transaction: Transaction, fato: Recebida, *, now: datetime) -> None:
        """Apply an opt-out that an old message contains, and link the author's address to the author's phone number. A
        message without an opt-out is not recorded. Listeners are not called, because an old message needs no answer.
        """
        await self.telefone_de(transaction, fato.de, now=now)
        if not fato.texto or ler(fato.texto).opt_out is OptOut.NAO:
            return
        mensagem = await self._identify(transaction, fato, now, opens=False)
        if await self._record_inbound(transaction, fato, mensagem):
            await self._obey(transaction, fato, mensagem, now)

    async def _identify(
        self, transaction: Transaction, fato: Recebida, now: datetime, *, opens: bool = True
    ) -> MensagemRecebida:
        """Find the person, the conversation and the meaning of an inbound message. If ``opens`` is true and a known
        person has no open conversation, open one.
        """
        telefone = await self.telefone_de(transaction, fato.de, now=now)
        person = None if telefone is None else await self._person(transaction, telefone)
        chip_id = await self._chip(transaction, fato.instance)
        talk = (
            await self._open_conversation(transaction, person["id"], chip_id, now)
            if opens and person is not None
            else None
        )
        return MensagemRecebida(
            message_id=fato.message_id,
            cliente_id=None if person is None else str(person["id"]),
            tipo_cliente=None if person is None else person["tipo"],
            conversa_id=None if talk is None else str(talk["id"]),
            chip_id=chip_id,
            telefone=telefone,
            texto=fato.texto,
            midia=fato.midia,
            leitura=ler(fato.texto),
            com_pessoa=talk is not None and talk["controlled_by"] == "human",
            em=fato.em,
        )

    async def _record_inbound(self, transaction: Transaction, fato: Recebida, mensagem: MensagemRecebida) -> bool:
        """Store an inbound message. Returns False if the message is already stored."""
        leitura = mensagem.leitura
        return bool(
            await transaction.run(
                self._queries.came,
                conversation_id=mensagem.conversa_id,
                cliente_id=mensagem.cliente_id,
                autor="medico" if mensagem.cliente_id else "externo",
                conteudo=fato.texto or f"[{fato.midia}]",
                chip_id=mensagem.chip_id,
                telefone=mensagem.telefone,
                jid=_address(fato, mensagem.telefone),
                message_id=fato.message_id,
                pedido=OPT_OUT if leitura.opt_out is OptOut.CERTO else None,
                classe=leitura.classe.value if fato.texto else None,
                opt_out=leitura.opt_out.value if fato.texto else None,
                em=fato.em,
            )
        )

    async def _obey(
        self, transaction: Transaction, fato: Recebida, mensagem: MensagemRecebida, now: datetime
    ) -> str | None:
        """Apply an opt-out that an inbound message contains, or record a probable opt-out about which an operator must
        decide. Return None if the message contains neither.
        """
        leitura, cliente_id, telefone = mensagem.leitura, mensagem.cliente_id, mensagem.telefone
        if telefone is None or leitura.opt_out is OptOut.NAO:
            return None
        if leitura.opt_out is OptOut.CERTO:
            origem = f"mensagem:{fato.message_id}"
            await self._stop(transaction, cliente_id, telefone, origem=origem, nome=fato.nome, now=now)
            return OPT_OUT
        await self._doubt(transaction, cliente_id, telefone, fato.message_id, leitura.regra, now)
        return PROBABLE_OPT_OUT

    async def _leave_to_person(
        self, transaction: Transaction, fato: Recebida, mensagem: MensagemRecebida, now: datetime
    ) -> None:
        await self.pendencias.abrir(
            transaction,
            MotivoDaPendencia.COM_PESSOA if mensagem.com_pessoa else MotivoDaPendencia.SEM_RESPOSTA,
            message_id=fato.message_id,
            telefone=mensagem.telefone,
            endereco=_address(fato, mensagem.telefone),
            cliente_id=mensagem.cliente_id,
            conversa_id=mensagem.conversa_id,
            em=fato.em,
            now=now,
        )

    async def eco(self, transaction: Transaction, fato: Eco, *, now: datetime) -> None:
        if fato.para.is_group:
            return
        telefone = await self.telefone_de(transaction, fato.para, now=now)
        await transaction.run(
            self._queries.record_outgoing,
            message_id=fato.message_id,
            instance=fato.instance,
            jid=fato.para.jid,
            chave=None if telefone is None else chave(telefone),
            hash=None if fato.texto is None else hash_do_texto(fato.texto),
            em=fato.em,
            status=fato.entrega.value,
            rank=fato.entrega.rank,
            now=now,
        )
        await self._further(transaction, fato.message_id, fato.entrega, now)

    async def recibo(self, transaction: Transaction, fato: Recibo, *, now: datetime) -> None:
        await transaction.run(
            self._queries.record_outgoing,
            message_id=fato.message_id,
            instance=fato.instance,
            jid=None,
            chave=None,
            hash=None,
            em=None,
            status=fato.entrega.value,
            rank=fato.entrega.rank,
            now=now,
        )
        await self._further(transaction, fato.message_id, fato.entrega, now)

    async def saiu(self, transaction: Transaction, saida: Saida) -> bool:
        """Record a sent message. Returns False if the message is already recorded."""
        return bool(
            await transaction.run(
                self._queries.went,
                conversation_id=saida.conversation_id,
                cliente_id=saida.cliente_id,
                autor=saida.autor,
                conteudo=saida.texto,
                chip_id=saida.chip_id,
                telefone=saida.telefone,
                jid=saida.jid,
                message_id=saida.message_id,
                campaign_id=saida.campaign_id,
                em=saida.em,
            )
        )

    async def ecos(self, reading: Reading, telefone: str, conteudo_hash: str, *, since: datetime) -> Sequence[EcoVisto]:
        """Return the gateway's reports that a message with the given text hash was sent to a phone number. Such a
        report proves that a send succeeded even though its answer was lost.
        """
        rows = await reading.all(self._queries.echoes, chave=chave(telefone), hash=conteudo_hash, since=since)
        return [
            EcoVisto(
                provider_message_id=row["provider_message_id"],
                instance=row["instance_name"],
                jid=row["remote_jid"],
                em=row["enviada_em"],
                entrega=Entrega(row["delivery_status"]),
                fila_id=row["fila_id"],
            )
            for row in rows
        ]

    async def conversa(self, transaction: Transaction, cliente_id: str, chip_id: str | None, *, now: datetime) -> str:
        """Return the open conversation with a doctor. If the doctor has none, open one."""
        return str((await self._open_conversation(transaction, cliente_id, chip_id, now))["id"])

    async def telefone_de(self, transaction: Transaction, quem: Address, *, now: datetime) -> str | None:
        """Return the phone number for an address, or None if the number is unknown. If an event contains both a hidden
        address and the phone number, store the number for later events.
        """
        if quem.lid is None:
            return quem.telefone
        row = await transaction.one(self._queries.phone_of_lid, lid=quem.lid)
        known = None if row is None else str(row["telefone"])
        if quem.telefone in (None, known):
            return known
        await self._learn(transaction, quem.lid, quem.telefone, now)
        return quem.telefone

    async def parar(self, transaction: Transaction, cliente_id: str, *, origem: str, now: datetime) -> int:
        """Record a doctor's opt-out, after which Julia starts no conversation with this doctor. Return the number of
        queued messages that were cancelled.
        """
        cancelled = await self._mensagens.cancelar(transaction, cliente_id, outcome=BLOCKED, reason=origem, now=now)
        await transaction.run(self._queries.opt_out_doctor, cliente_id=cliente_id, now=now)
        await transaction.run(self._queries.opt_out_state, cliente_id=cliente_id, now=now)
        await transaction.run(self._queries.opt_out_conversation, cliente_id=cliente_id, now=now)
        await self._eventos.record(
            transaction,
            "medico_optout",
            now=now,
            dedupe_key=f"optout:{origem}",
            cliente_id=cliente_id,
            props={"canceladas": cancelled},
        )
        return cancelled

    async def parar_numero(
        self, transaction: Transaction, telefone: str, *, origem: str, now: datetime
    ) -> tuple[str | None, int]:
        """Record the opt-out of a phone number. Return the id of the doctor who has this number, if any, and the number
        of queued messages that were cancelled.
        """
        cliente_id = await self._doctor(transaction, telefone)
        return cliente_id, await self._stop(transaction, cliente_id, telefone, origem=origem, nome=None, now=now)

    async def parar_de_novo(self, transaction: Transaction, telefone: str, *, origem: str, now: datetime) -> bool:
        """Apply an opt-out again after a restore. Returns False if the restored database already has the opt-out."""
        cliente_id = await self._doctor(transaction, telefone)
        known = await transaction.one(
            self._queries.has_stopped, cliente_id=cliente_id, telefone=telefone, other_form=other_form(telefone)
        )
        if known is not None:
            return False
        source = f"{origem}:{cliente_id or self._ids.new()}"
        await self._stop_here(transaction, cliente_id, telefone, origem=source, nome=None, now=now)
        return True

    async def remover_numero(
        self, transaction: Transaction, telefone: str, *, origem: str, now: datetime
    ) -> tuple[str | None, int]:
        """Delete the personal data of the doctor with a given phone number, and block the number permanently."""
        await self._note(transaction, "removal", telefone, now)
        cliente_id = await self._doctor(transaction, telefone)
        cancelled = await self._stop_here(transaction, cliente_id, telefone, origem=origem, nome=None, now=now)
        if cliente_id is not None:
            await transaction.run(self._queries.opt_out_external, telefone=telefone, nome=None, now=now)
            await self.remover(transaction, cliente_id, now=now)
        return cliente_id, cancelled

    async def remover(self, transaction: Transaction, cliente_id: str, *, now: datetime) -> bool:
        """Delete a doctor's name, documents and texts. The phone number is kept, so that the number stays blocked."""
        if not await transaction.run(self._queries.remove_doctor, cliente_id=cliente_id, now=now):
            return False
        await self._mensagens.cancelar(transaction, cliente_id, outcome=REMOVED, reason="removal", now=now)
        await transaction.run(self._queries.remove_words, cliente_id=cliente_id)
        await transaction.run(self._queries.remove_queued_words, cliente_id=cliente_id)
        await transaction.run(self._queries.remove_dead_words, cliente_id=cliente_id)
        return True

    async def _note(self, transaction: Transaction, kind: Kind, telefone: str, now: datetime) -> None:
        """Write an opt-out or a removal to the journal before the database commits it. If the commit then fails, the
        extra journal line is harmless. If the database committed first, a crash could lose the journal line, and the
        opt-out would be missing from a restored backup.
        """
        if self._diario is None or await self._diario.note(transaction, kind, telefone, now=now):
            return
        await self._eventos.record(transaction, "optout_fora_do_diario", now=now, dedupe_key=None)

    async def _learn(self, transaction: Transaction, lid: str, telefone: str, now: datetime) -> None:
        await transaction.run(self._queries.learn_lid, lid=lid, telefone=telefone, now=now)
        asked = await transaction.all(self._queries.asked_hidden, lid=lid)
        cliente_id = await self._doctor(transaction, telefone)
        await transaction.run(
            self._queries.resolve_hidden,
            lid=lid,
            telefone=telefone,
            cliente_id=cliente_id,
            autor="medico" if cliente_id else "externo",
        )
        for row in asked:
            message_id = row["provider_message_id"]
            if row["pedido"] != OPT_OUT:
                await self._doubt(transaction, cliente_id, telefone, message_id, "", now)
                continue
            await self._stop(transaction, cliente_id, telefone, origem=f"mensagem:{message_id}", nome=None, now=now)

    async def _stop(
        self,
        transaction: Transaction,
        cliente_id: str | None,
        telefone: str,
        *,
        origem: str,
        nome: str | None,
        now: datetime,
    ) -> int:
        """Record an opt-out in the journal and the database. Return the number of queued messages that were cancelled."""
        await self._note(transaction, "optout", telefone, now)
        return await self._stop_here(transaction, cliente_id, telefone, origem=origem, nome=nome, now=now)

    async def _doubt(
        self,
        transaction: Transaction,
        cliente_id: str | None,
        telefone: str,
        message_id: str,
        regra: str,
        now: datetime,
    ) -> None:
        """Record a probable opt-out. Until an operator decides about it, the messages that Julia would send to the
        person on its own initiative are held back.
        """
        stopped = await transaction.one(
            self._queries.has_stopped, cliente_id=cliente_id, telefone=telefone, other_form=other_form(telefone)
        )
        if stopped is not None:
            return
        is_new = await transaction.run(
            self._queries.open_doubt,
            id=self._ids.new(),
            telefone=telefone,
            chave=chave(telefone),
            cliente_id=cliente_id,
            message_id=message_id,
            regra=regra,
            now=now,
        )
        if is_new:
            await self._eventos.record(
                transaction,
                "optout_provavel",
                now=now,
                dedupe_key=f"optout_provavel:{message_id}",
                cliente_id=cliente_id,
                props={"regra": regra},
            )

    async def _stop_here(
        self,
        transaction: Transaction,
        cliente_id: str | None,
        telefone: str,
        *,
        origem: str,
        nome: str | None,
        now: datetime,
    ) -> int:
        await transaction.run(
            self._queries.close_doubts, chave=chave(telefone), por=SISTEMA, motivo=origem[:LONGEST_MOTIVO], now=now
        )
        if cliente_id is not None:
            return await self.parar(transaction, cliente_id, origem=origem, now=now)
        await transaction.run(self._queries.opt_out_external, telefone=telefone, nome=nome, now=now)
        await self._eventos.record(transaction, "externo_optout", now=now, dedupe_key=f"optout:{origem}")
        return 0

    async def _count_inbound(
        self, transaction: Transaction, cliente_id: str, conversation_id: str, em: datetime, now: datetime
    ) -> None:
        await transaction.run(self._queries.count_on_doctor, cliente_id=cliente_id, em=em)
        await transaction.run(self._queries.doctor_spoke, cliente_id=cliente_id, em=em, now=now)
        await transaction.run(self._queries.count_on_conversation, id=conversation_id, em=em, now=now)
        await self._alcance.respondeu(transaction, cliente_id, em=em, now=now)

    async def _further(self, transaction: Transaction, message_id: str, entrega: Entrega, now: datetime) -> None:
        if await transaction.run(
            self._queries.got_further, message_id=message_id, status=entrega.value, rank=entrega.rank
        ):
            await self._alcance.entregue(transaction, message_id, now=now)

    async def _open_conversation(
        self, transaction: Transaction, cliente_id: str, chip_id: str | None, now: datetime
    ) -> Row:
        await transaction.run(
            self._queries.open_conversation, id=self._ids.new(), cliente_id=cliente_id, chip_id=chip_id, now=now
        )
        row = await transaction.one(self._queries.conversation, cliente_id=cliente_id)
        assert row is not None
        return row

    async def _doctor(self, transaction: Transaction, telefone: str) -> str | None:
        row = await self._person(transaction, telefone)
        return None if row is None else str(row["id"])

    async def _person(self, transaction: Transaction, telefone: str) -> Row | None:
        return await transaction.one(self._queries.doctor, chave=chave(telefone))

    async def _chip(self, transaction: Transaction, instance: str) -> str | None:
        row = await transaction.one(self._queries.chip, instance=instance)
        return None if row is None else str(row["id"])


def _address(fato: Recebida, telefone: str | None) -> str:
    return fato.de.lid if telefone is None and fato.de.lid else fato.de.jid
