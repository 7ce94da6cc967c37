"""Telegram as a channel of the send protocol.

All attempts to send a message have the same random_id, so the server sends the message only once. If it is unknown
whether a message was sent, the channel searches the chat's history, which works even after the server has forgotten the
random_id. A message that is missing from the complete history was not sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final, assert_never

from app.contexts.comum.conteudo import hash_do_texto
from app.contexts.conversas.service import Conversas
from app.contexts.envio.api import (
    BEFORE,
    ECHO_PENDING,
    OLDER_THAN_A_COPY,
    Achada,
    Ausente,
    Duvidosa,
    Enviada,
    EnvioEmDuvida,
    Fatos,
    Incerta,
    Lembrada,
    Mensagem,
    NaoEnviada,
    Recusada,
    Registro,
    Resposta,
    Suspensa,
    blind_since,
)
from app.contexts.mensagens.api import Desfecho, TipoDeMensagem
from app.contexts.telegram.arquivos import ANEXO, Arquivos
from app.contexts.telegram.conexoes import FLOOD, OFFLINE, OWNED, REVOKED, Conexoes
from app.contexts.telegram.contas import Contas, EstadoDaConta
from app.contexts.telegram.entidades import EntidadesConhecidas, endereco, message_id, quem
from app.contexts.telegram.porta import (
    AlreadySent,
    Entidade,
    Enviadas,
    FloodWait,
    Linha,
    MensagemVista,
    Metodo,
    OwnedElsewhere,
    Peer,
    PeerBlocked,
    PeerFlood,
    PeerUnknown,
    Refused,
    SendResult,
    Sent,
    SessionRevoked,
    SlowMode,
    Unavailable,
    Unknown,
    reason_of,
)
from app.contexts.telegram.prazo import Prazos, chamar
from batuta import Snooze
from batuta.guards import WORKED, Circuits, Effect, EffectReport, Hold, Limit, Ticket
from batuta.kernel import Clock, dataclass
from batuta.reasons import define
from batuta.sql import Database, Transaction

# Wait before a search counts as proof, because the account's updates and the chat's history may lag behind the
# send.
PROOF_AFTER: Final = timedelta(seconds=5)
INACTIVE: Final = timedelta(minutes=1)
PEER_FLOOD: Final = timedelta(hours=6)
# Metadata key of a message to forward: its chat and its number.
ENCAMINHA: Final = "encaminha"
ACCOUNT_INACTIVE = define("telegram_conta_inativa", "the Telegram account is {estado}")
NO_ACCOUNT = define("telegram_sem_conta", "the message's Telegram account no longer exists")
SPAM_LIMIT = define(
    "telegram_peer_flood", "Telegram has restricted this account because it sent many messages to strangers"
)
CANNOT_REACH = define("telegram_inalcancavel", "the account cannot write to this person: {why}")
BLOCKED = define("telegram_bloqueada", "the person accepts no message from this account: {why}")
SENT_BEFORE = define("telegram_ja_enviada", "the server already has a message with this random_id")
NO_PERSON = define("telegram_sem_pessoa", "the account does not know this person")
CANNOT_SEARCH = define("telegram_sem_busca", "the chat history cannot be read: {why}")
INCOMPLETE = define("telegram_incompleta", "the chat history is incomplete")
FILE_GONE = define("telegram_sem_arquivo", "the file to send no longer exists")
NO_CHAT = define("telegram_sem_chat", "the account does not know the chat that contains the message to forward")


def random_id_of(id: str) -> int:
    """Return the random_id of a queued message, by which Telegram recognises a repeated send. Its 63 bits are derived
    from the row's id, so every retry has the same random_id.
    """
    return int.from_bytes(blake2b(id.encode(), digest_size=8).digest()) >> 1


def texto_de(mensagem: MensagemVista) -> str:
    """Return the text under which a message is queued and recorded. For a message without text, this is the file type
    in brackets.
    """
    return mensagem.texto or f"[{'mensagem' if mensagem.midia is None else mensagem.midia.tipo}]"


def circuit_of(conta: str) -> str:
    return f"telegram:{conta}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CanalTelegram:
    """Sends each queued message through the Telegram account that is assigned to the message.

    ``since`` is the time at which this process opened its database. A message that was queued earlier may already have
    been sent before a restore of the database.
    """

    database: Database
    conexoes: Conexoes
    contas: Contas
    entidades: EntidadesConhecidas
    arquivos: Arquivos
    conversas: Conversas
    registro: Registro
    circuits: Circuits
    prazos: Prazos
    clock: Clock
    since: Callable[[], datetime]

    async def prepare(self, fatos: Fatos, tipo: TipoDeMensagem, hash: str) -> "PorConta | Lembrada | Recusada | Snooze":
        mensagem = fatos.mensagem
        if (conta := mensagem.conta_id) is None:
            return Recusada(Desfecho.FAILED_VALIDATION, NO_ACCOUNT())
        if (estado := await self.contas.estado(self.database, conta)) is not EstadoDaConta.ATIVA:
            return Snooze(INACTIVE, ACCOUNT_INACTIVE(estado=None if estado is None else estado.value))
        for metodo in (_method(mensagem), Metodo.RESOLVE):
            if (wait := await self.contas.espera(self.database, conta, metodo)) is not None:
                return Snooze(wait.ate, wait.motivo)
        if (linha := self.conexoes.linha(conta)) is None:
            return Snooze(self.conexoes.retry_at(conta), OFFLINE(why=self.conexoes.why(conta)))
        entidade = await self._resolve(linha, mensagem)
        if not isinstance(entidade, Entidade):
            return entidade
        origem = await self._origin(conta, mensagem)
        if isinstance(origem, Recusada):
            return origem
        if (found := await self._find_earlier_send(linha, fatos, hash, entidade.peer)) is not None:
            return found
        own = await self.circuits.breaker(circuit_of(conta)).admit(self.clock.now())
        if isinstance(own, Hold):
            return Snooze(own.until, own.reason)
        return PorConta(canal=self, conta=conta, linha=linha, peer=entidade.peer, origem=origem, ticket=own.ticket)

    async def _resolve(self, linha: Linha, mensagem: Mensagem) -> Entidade | Recusada | Snooze:
        """Find a message's recipient on Telegram, and link the recipient's Telegram address to the phone number."""
        destino = await self.entidades.destino(self.database, linha.conta, mensagem.telefone)
        found = await chamar(
            lambda limit: linha.resolve(destino, limit=limit), self.prazos.entity, self.clock, "resolve"
        )
        match found:
            case Entidade():
                await self.entidades.keep(linha.conta, [found])
                async with self.database.transaction() as transaction:
                    address = replace(endereco(found), telefone=mensagem.telefone)
                    await self.conversas.telefone_de(transaction, address, now=self.clock.now())
                return found
            case PeerUnknown(why=why) | PeerBlocked(why=why) | Refused(why=why, permanent=True):
                return Recusada(Desfecho.FAILED_VALIDATION, CANNOT_REACH(why=why))
            case FloodWait(metodo=metodo, wait=wait):
                return Snooze(await self.conexoes.esperar(linha.conta, metodo, wait), _flood_reason(metodo, wait))
            case _:
                await self.conexoes.handle_failure(linha, found)
                return Snooze(self.conexoes.retry_at(linha.conta), OFFLINE(why=reason_of(found)))

    async def _origin(self, conta: str, mensagem: Mensagem) -> "Origem | Recusada | None":
        """Return the original message of a queued forward, or None if the queued message is not a forward. Return
        ``Recusada`` if the account does not know the original's chat.
        """
        if not isinstance(asked := mensagem.metadata.get(ENCAMINHA), dict):
            return None
        chat = await self.entidades.find(conta, str(asked["chat"]))
        if chat is None:
            return Recusada(Desfecho.FAILED_VALIDATION, NO_CHAT())
        return Origem(chat.peer, int(asked["mensagem"]))

    async def _find_earlier_send(self, linha: Linha, fatos: Fatos, hash: str, peer: Peer) -> Lembrada | Snooze | None:
        """Search the chat for a queued message, which an earlier attempt may already have sent, or which may have been
        sent before the database was restored.
        """
        created_at, now = fatos.pedido.created_at, self.clock.now()
        blind = await blind_since(self.database, created_at, now)
        is_older = created_at < self.since() or blind is not None
        if not is_older and now - created_at < OLDER_THAN_A_COPY and fatos.tried_by is None:
            return None
        since = created_at if blind is None else min(created_at, blind.taken_at)
        match await self._search(linha, fatos.mensagem, hash, peer, since=since - BEFORE):
            case Achada() as found:
                return Lembrada(fatos.mensagem, found)
            case Ausente():
                return None
            case Incerta(why=why, until=until):
                return Snooze(until or self.conexoes.retry_at(linha.conta), why)

    async def look_up(self, doubt: EnvioEmDuvida) -> Achada | Ausente | Incerta:
        conta = doubt.mensagem.conta_id
        if self.clock.now() - doubt.since < PROOF_AFTER:
            return Incerta(ECHO_PENDING())
        if conta is None or (linha := self.conexoes.linha(conta)) is None:
            return Incerta(OFFLINE(why=NO_ACCOUNT() if conta is None else self.conexoes.why(conta)))
        destino = await self.entidades.destino(self.database, conta, doubt.mensagem.telefone)
        entidade = await self.entidades.find(conta, destino)
        if entidade is None:
            return Incerta(CANNOT_SEARCH(why=NO_PERSON()))
        return await self._search(linha, doubt.mensagem, doubt.hash, entidade.peer, since=doubt.since - BEFORE)

    async def _search(
        self, linha: Linha, mensagem: Mensagem, hash: str, peer: Peer, *, since: datetime
    ) -> Achada | Ausente | Incerta:
        if (wait := await self.contas.espera(self.database, linha.conta, Metodo.LIST_SENT)) is not None:
            return Incerta(wait.motivo, wait.ate)
        sent = await chamar(
            lambda limit: linha.list_sent(peer, since=since, limit=limit), self.prazos.send, self.clock, "list_sent"
        )
        if isinstance(sent, FloodWait):
            until = await self.conexoes.esperar(linha.conta, sent.metodo, sent.wait)
            return Incerta(_flood_reason(sent.metodo, sent.wait), until)
        if not isinstance(sent, Enviadas):
            await self.conexoes.handle_failure(linha, sent)
            return Incerta(CANNOT_SEARCH(why=reason_of(sent)))
        own, is_forward = random_id_of(mensagem.id), ENCAMINHA in mensagem.metadata
        for each in sent.mensagens:
            id = message_id(linha.conta, peer, each.id)
            is_same = each.encaminhada == is_forward and hash_do_texto(texto_de(each)) == hash
            if (each.random_id == own or is_same) and not await self.registro.is_taken(self.database, mensagem, id):
                return Achada(id, quem(peer) or peer.chave, each.em)
        return Ausente() if sent.is_complete else Incerta(INCOMPLETE())


@dataclass(frozen=True, slots=True)
class Origem:
    """The original of a forwarded message: its chat and its id in the chat."""

    chat: Peer
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PorConta:
    """One attempt to send a message with one Telegram account. ``origem`` is the message to forward, or None."""

    canal: CanalTelegram
    conta: str
    linha: Linha
    peer: Peer
    origem: Origem | None
    ticket: Ticket
    limits: Sequence[Limit] = ()

    async def still_may(self, transaction: Transaction, *, now: datetime) -> bool:
        return await self.canal.contas.estado(transaction, self.conta) is EstadoDaConta.ATIVA

    def assign(self, mensagem: Mensagem) -> Mensagem:
        return replace(mensagem, conta_id=self.conta)

    async def give_back(self) -> None:
        await self.ticket.give_back()

    async def send(self, mensagem: Mensagem) -> Resposta:
        result = await self._call(mensagem)
        if isinstance(result, Recusada):
            await self.ticket.give_back()
            return result
        await self.ticket.report(_report_of(result))
        if isinstance(result, Sent) and ANEXO in mensagem.metadata:
            await self.canal.arquivos.apagar(mensagem.id)
        return await self._answer(mensagem, result)

    async def _call(self, mensagem: Mensagem) -> SendResult | Recusada:
        linha, peer, origem, id, texto = self.linha, self.peer, self.origem, random_id_of(mensagem.id), mensagem.texto
        canal, metodo = self.canal, _method(mensagem)
        if origem is not None:
            return await chamar(
                lambda limit: linha.forward(origem.chat, origem.id, peer, random_id=id, limit=limit),
                canal.prazos.send,
                canal.clock,
                metodo.value,
            )
        if metodo is Metodo.SEND_TEXT:
            return await chamar(
                lambda limit: linha.send_text(peer, texto, random_id=id, limit=limit),
                canal.prazos.send,
                canal.clock,
                metodo.value,
            )
        if (arquivo := await canal.arquivos.ler(canal.database, mensagem.id)) is None:
            return Recusada(Desfecho.FAILED_VALIDATION, FILE_GONE())
        return await chamar(
            lambda limit: linha.send_file(peer, arquivo, texto, random_id=id, limit=limit),
            canal.prazos.media,
            canal.clock,
            metodo.value,
        )

    async def _answer(self, mensagem: Mensagem, result: SendResult) -> Resposta:
        canal, conta, now = self.canal, self.conta, self.canal.clock.now()
        match result:
            case Sent(id=id):
                return Enviada(message_id(conta, self.peer, id), quem(self.peer) or self.peer.chave)
            case AlreadySent():
                return Duvidosa(SENT_BEFORE())
            case FloodWait(metodo=metodo, wait=wait):
                until = await canal.conexoes.esperar(conta, metodo, wait)
                return Suspensa(until, _flood_reason(metodo, wait))
            case SlowMode(wait=wait):
                return Suspensa(now + wait, _flood_reason(_method(mensagem), wait))
            case PeerFlood():
                await canal.circuits.breaker(circuit_of(conta)).trip(SPAM_LIMIT())
                for metodo in (Metodo.SEND_TEXT, Metodo.SEND_FILE, Metodo.FORWARD):
                    await canal.contas.esperar(conta, metodo, now + PEER_FLOOD, SPAM_LIMIT())
                return Suspensa(now + PEER_FLOOD, SPAM_LIMIT())
            case PeerUnknown(why=why):
                await canal.entidades.forget(conta, self.peer)
                return NaoEnviada(Desfecho.FAILED_VALIDATION, CANNOT_REACH(why=why))
            case PeerBlocked(why=why):
                return Recusada(Desfecho.FAILED_VALIDATION, BLOCKED(why=why))
            case SessionRevoked(why=why):
                await canal.conexoes.handle_failure(self.linha, result)
                return Suspensa(INACTIVE, REVOKED(why=why))
            case OwnedElsewhere(until=until):
                await canal.conexoes.handle_failure(self.linha, result)
                return Suspensa(max(until, now), OWNED())
            case Refused(why=why, permanent=True):
                return Recusada(Desfecho.FAILED_PROVIDER, why)
            case Refused(why=why):
                return NaoEnviada(Desfecho.FAILED_PROVIDER, why)
            case Unavailable(why=why):
                await canal.conexoes.handle_failure(self.linha, result)
                return Suspensa(canal.conexoes.retry_at(conta), OFFLINE(why=why))
            case Unknown(why=why):
                return Duvidosa(why)
            case _:
                assert_never(result)


def _method(mensagem: Mensagem) -> Metodo:
    if ENCAMINHA in mensagem.metadata:
        return Metodo.FORWARD
    return Metodo.SEND_FILE if ANEXO in mensagem.metadata else Metodo.SEND_TEXT


def _flood_reason(metodo: Metodo, wait: timedelta) -> str:
    return FLOOD(metodo=metodo.value, seconds=round(wait.total_seconds()))


def _report_of(result: SendResult) -> EffectReport:
    """Translate an answer from Telegram into a report for the account's circuit breaker. A flood wait (a period in
    which Telegram accepts no request) is not a failure, because it is stored separately.
    """
    match result:
        case Sent() | AlreadySent() | PeerUnknown() | PeerBlocked() | FloodWait() | SlowMode():
            return WORKED
        case Unavailable() | OwnedElsewhere():
            return EffectReport(Effect.UNREACHED, "unavailable")
        case Unknown():
            return EffectReport(Effect.TIMED_OUT, "unknown")
        case PeerFlood():
            return EffectReport(Effect.BROKE, "peer_flood")
        case SessionRevoked() | Refused():
            return EffectReport(Effect.MISTAKE, "refused")
        case _:
            assert_never(result)
