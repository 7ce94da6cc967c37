"""The Telegram client built on Telethon: one Telethon client per account. Messages are sent with raw requests, so that
the caller chooses the ``random_id`` of each message.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from telethon import errors
from telethon.errors.common import AuthKeyNotFound
from telethon.sessions import StringSession
from telethon.tl import functions, types

from app.contexts.telegram.porta import (
    DISCONNECTED,
    NO_ANSWER,
    AlreadySent,
    Arquivo,
    Atualizacao,
    Entidade,
    Entidades,
    Enviadas,
    Falha,
    Feito,
    Historico,
    Linha,
    MensagemVista,
    Metodo,
    Novidades,
    Peer,
    PeerUnknown,
    SendResult,
    Sent,
    SessionRevoked,
    TipoDeChat,
    Unavailable,
    Unknown,
    Vivo,
)
from app.contexts.telegram.sessoes import Sessoes
from app.integrations.telegram.conexao import Ok, Prazo, connect_line
from app.integrations.telethon.cliente import Cliente, Lote
from app.integrations.telethon.valores import REVOKED, Leitor, entity_of, failure, input_peer, peer_of
from batuta.errors import DeadlineExceeded
from batuta.kernel import Clock

PAGE: Final = 100
MOST_PAGES: Final = 20
# Maximum number of message ids and random ids that a connection remembers.
REMEMBERED: Final = 4096
# Maximum number of updates waiting for the worker. If there are more, the connection ends, and the next connection
# fetches them.
MOST_WAITING: Final = 10_000
STORE_WITHIN: Final = timedelta(seconds=10)
PICTURES: Final = frozenset({"image/jpeg", "image/png"})


class TelegramTelethon:
    def __init__(
        self,
        sessoes: Sessoes,
        entidades: Entidades,
        clock: Clock,
        make: Callable[[StringSession, str | None], Cliente],
    ) -> None:
        """Create the Telegram client. ``make`` builds a Telethon client from a session and a position in the stream of
        updates.
        """
        self._sessoes = sessoes
        self._entidades = entidades
        self._clock = clock
        self._make = make

    async def connect(self, conta: str, *, marca: str | None, limit: timedelta) -> Linha | Falha:
        def make(sessao: str) -> LinhaTelethon:
            client = self._make(StringSession(sessao), marca)
            return LinhaTelethon(conta, client, self._sessoes, self._entidades, self._clock)

        return await connect_line(self._sessoes, conta, Prazo(limit, self._clock), make)


class LinhaTelethon:
    def __init__(self, conta: str, client: Cliente, sessoes: Sessoes, entidades: Entidades, clock: Clock) -> None:
        self._conta = conta
        self._client = client
        self._sessoes = sessoes
        self._entidades = entidades
        self._clock = clock
        self._eu = 0
        self._marca = ""
        self._waiting: deque[Lote] = deque()
        self._count = 0
        self._woken = asyncio.Event()
        self._seen: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._random_ids: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._is_full = False
        self._is_closed = False

    @property
    def conta(self) -> str:
        return self._conta

    async def begin(self, prazo: Prazo) -> Falha | None:
        """Connect to Telegram, and check that the account is logged in."""
        self._client.taken = self._take
        try:
            await prazo.run(self._client.connect(), Metodo.CONNECT.value)
        except (errors.RPCError, AuthKeyNotFound) as error:
            return failure(error, Metodo.CONNECT)
        except (OSError, DeadlineExceeded) as error:
            return Unavailable(type(error).__name__)
        self._client.disconnected.add_done_callback(self._on_disconnected)
        found = await self._call(Metodo.CONNECT, functions.users.GetUsersRequest([types.InputUserSelf()]), prazo)
        if not isinstance(found, Ok):
            return Unavailable(found.why) if isinstance(found, Unknown) else found
        self._eu, self._marca = found.value[0].id, self._client.marca
        return None

    async def probe(self, *, limit: timedelta) -> Vivo | Falha:
        prazo = self._prazo(limit)
        lost = await prazo.store(self._sessoes.renew(self._conta))
        if lost is not None:
            return lost
        found = await self._call(Metodo.PROBE, functions.updates.GetStateRequest(), prazo)
        if not isinstance(found, Ok):
            return found
        if not self._client.receives:
            return self._explain_end()
        is_late = found.value.pts > self._client.pts
        if is_late:
            caught_up = await self._invoke(Metodo.PROBE, self._client.catch_up(), prazo)
            if not isinstance(caught_up, Ok):
                return caught_up
        return Vivo(eu=self._eu, atraso=is_late)

    async def send_text(
        self, peer: Peer, texto: str, *, random_id: int, resposta_a: int | None = None, limit: timedelta
    ) -> SendResult:
        request = functions.messages.SendMessageRequest(
            input_peer(peer),
            texto,
            random_id=random_id,
            reply_to=None if resposta_a is None else types.InputReplyToMessage(resposta_a),
        )
        return await self._send(Metodo.SEND_TEXT, peer, request, random_id, self._prazo(limit))

    async def send_file(
        self, peer: Peer, arquivo: Arquivo, legenda: str, *, random_id: int, limit: timedelta
    ) -> SendResult:
        prazo = self._prazo(limit)
        upload = self._client.upload_file(arquivo.conteudo, file_name=arquivo.nome)
        uploaded = await self._invoke(Metodo.SEND_FILE, upload, prazo)
        if not isinstance(uploaded, Ok):
            return Unavailable(uploaded.why) if isinstance(uploaded, Unknown) else uploaded
        media = (
            types.InputMediaUploadedPhoto(uploaded.value)
            if arquivo.mime in PICTURES
            else types.InputMediaUploadedDocument(
                uploaded.value, arquivo.mime, [types.DocumentAttributeFilename(arquivo.nome)]
            )
        )
        request = functions.messages.SendMediaRequest(input_peer(peer), media, legenda, random_id=random_id)
        return await self._send(Metodo.SEND_FILE, peer, request, random_id, prazo)

    async def forward(self, origem: Peer, id: int, destino: Peer, *, random_id: int, limit: timedelta) -> SendResult:
        request = functions.messages.ForwardMessagesRequest(
            from_peer=input_peer(origem), id=[id], to_peer=input_peer(destino), random_id=[random_id]
        )
        return await self._send(Metodo.FORWARD, destino, request, random_id, self._prazo(limit))

    async def edit(self, peer: Peer, id: int, texto: str, *, limit: timedelta) -> Feito | Falha:
        request = functions.messages.EditMessageRequest(input_peer(peer), id, message=texto)
        return await self._act(Metodo.EDIT, peer, request, limit)

    async def delete(self, peer: Peer, ids: Sequence[int], *, limit: timedelta) -> Feito | Falha:
        request = (
            functions.channels.DeleteMessagesRequest(input_peer(peer), list(ids))
            if peer.tipo is TipoDeChat.CANAL
            else functions.messages.DeleteMessagesRequest(list(ids), revoke=True)
        )
        return await self._act(Metodo.DELETE, peer, request, limit)

    async def mark_read(self, peer: Peer, ate: int, *, limit: timedelta) -> Feito | Falha:
        is_channel = peer.tipo is TipoDeChat.CANAL
        kind = functions.channels if is_channel else functions.messages
        return await self._act(Metodo.MARK_READ, peer, kind.ReadHistoryRequest(input_peer(peer), max_id=ate), limit)

    async def resolve(self, destino: str, *, limit: timedelta) -> Entidade | Falha:
        prazo = self._prazo(limit)
        known = await prazo.store(self._entidades.find(self._conta, destino))
        if known is not None:
            return known
        match destino[:1]:
            case "@":
                request = functions.contacts.ResolveUsernameRequest(destino[1:])
            case "+":
                request = functions.contacts.ResolvePhoneRequest(destino[1:])
            case _:
                return PeerUnknown("PeerIdInvalidError")
        found = await self._call(Metodo.RESOLVE, request, prazo)
        if not isinstance(found, Ok):
            return found
        self._client.learn(found.value.users, found.value.chats)
        wanted = peer_of(found.value.peer)
        entities = [each for each in map(entity_of, [*found.value.users, *found.value.chats]) if each is not None]
        await prazo.store(self._entidades.keep(self._conta, entities))
        return next((each for each in entities if each.peer == wanted), PeerUnknown("PeerIdInvalidError"))

    async def history(self, peer: Peer, *, after: int, most: int, limit: timedelta) -> Historico | Falha:
        count, prazo = min(most, PAGE), self._prazo(limit)
        # A negative offset from the next id returns the messages after that id.
        found = await self._page(
            Metodo.HISTORY, peer, prazo, offset_id=after + 1, add_offset=-count, limit=count, min_id=after
        )
        if not isinstance(found, Ok):
            return found
        newest_first = found.value
        reader = await self._reader(newest_first, prazo)
        read = [seen for each in reversed(newest_first.messages) for seen in reader.message(each)]
        ate = max((each.id for each in newest_first.messages), default=after)
        return Historico(mensagens=tuple(read), ate=ate, has_more=len(newest_first.messages) >= count)

    async def list_sent(self, peer: Peer, *, since: datetime, limit: timedelta) -> Enviadas | Falha:
        prazo = self._prazo(limit)
        sent: list[MensagemVista] = []
        before = 0
        for _ in range(MOST_PAGES):
            found = await self._page(
                Metodo.LIST_SENT, peer, prazo, offset_id=before, add_offset=0, limit=PAGE, min_id=0
            )
            if not isinstance(found, Ok):
                return found
            messages = found.value.messages
            reader = await self._reader(found.value, prazo)
            read = [seen for each in messages for seen in reader.message(each)]
            # Telegram's times have whole seconds.
            sent += [each for each in read if each.is_own and each.em >= since.replace(microsecond=0)]
            if len(messages) < PAGE or (read and read[-1].em < since):
                return Enviadas(mensagens=tuple(sent), is_complete=True)
            before = messages[-1].id
        return Enviadas(mensagens=tuple(sent), is_complete=False)

    async def receive(self, *, limit: timedelta) -> Novidades | Falha:
        prazo = self._prazo(limit)
        while True:
            received = await self._drain()
            if received:
                return Novidades(atualizacoes=tuple(received), marca=self._marca)
            if not self._client.is_connected():
                return self._explain_end()
            self._woken.clear()
            try:
                await prazo.run(self._woken.wait(), "receive")
            except DeadlineExceeded:
                return Novidades(atualizacoes=(), marca=self._marca)

    async def close(self, *, limit: timedelta) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        prazo = self._prazo(limit)
        await self._invoke(Metodo.CONNECT, self._client.disconnect(), prazo)
        await prazo.store(self._sessoes.release(self._conta))  # if this fails, the lease expires by itself

    def _take(self, lote: Lote) -> None:
        if self._is_full:
            return
        self._waiting.append(lote)
        self._count += len(lote.updates)
        self._woken.set()
        if self._count > MOST_WAITING:
            # From now on updates are dropped, so the stored position stays before them.
            self._is_full = True
            self._client.disconnect()

    async def _drain(self) -> list[Atualizacao]:
        received: list[Atualizacao] = []
        for _ in range(len(self._waiting)):
            lote = self._waiting.popleft()
            self._count -= len(lote.updates)
            received += await self._read(lote)
            self._marca = lote.marca
        return received

    async def _read(self, lote: Lote) -> list[Atualizacao]:
        for each in lote.updates:
            if isinstance(each, types.UpdateMessageID):
                self._random_ids_of_updates(each, lote)
        reader = Leitor(self._eu, lote.entities, self._random_ids)
        if reader.entities:
            await Prazo(STORE_WITHIN, self._clock).store(self._entidades.keep(self._conta, reader.entities))
        return [seen for each in lote.updates for seen in reader.update(each) if self._is_new(each, seen)]

    def _is_new(self, update: Any, seen: Atualizacao) -> bool:
        """Return whether an update must be passed on. Only a new message that was already received is dropped; edits of
        a message and all other updates are passed on.
        """
        if not isinstance(seen, MensagemVista) or isinstance(
            update, types.UpdateEditMessage | types.UpdateEditChannelMessage
        ):
            return True
        key = (seen.chat.peer.chave, seen.id)
        if key in self._seen:
            return False
        self._seen[key] = None
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return True

    def _random_ids_of_updates(self, update: Any, lote: Lote) -> None:
        for each in lote.updates:
            message = getattr(each, "message", None)
            if isinstance(message, types.Message) and message.id == update.id:
                self._remember(peer_of(message.peer_id).chave, update.id, update.random_id)

    def _remember(self, chave: str, id: int, random_id: int) -> None:
        self._random_ids[(chave, id)] = random_id
        while len(self._random_ids) > REMEMBERED:
            self._random_ids.popitem(last=False)

    async def _send(self, metodo: Metodo, peer: Peer, request: Any, random_id: int, prazo: Prazo) -> SendResult:
        found = await self._call(metodo, request, prazo, peer=peer)
        if isinstance(found, Unknown) and found.why == errors.RandomIdDuplicateError.__name__:
            return AlreadySent()
        if not isinstance(found, Ok):
            return found
        sent = _read_sent(found.value, random_id)
        if isinstance(sent, Sent):
            self._remember(peer.chave, sent.id, random_id)
        return sent

    async def _act(self, metodo: Metodo, peer: Peer, request: Any, limit: timedelta) -> Feito | Falha:
        found = await self._call(metodo, request, self._prazo(limit), peer=peer)
        if not isinstance(found, Ok) and getattr(found, "why", "") == errors.MessageNotModifiedError.__name__:
            return Feito()
        return Feito() if isinstance(found, Ok) else found

    async def _page(self, metodo: Metodo, peer: Peer, prazo: Prazo, **where: int) -> Ok | Falha:
        request = functions.messages.GetHistoryRequest(input_peer(peer), offset_date=None, max_id=0, hash=0, **where)
        return await self._call(metodo, request, prazo, peer=peer)

    async def _reader(self, page: Any, prazo: Prazo) -> Leitor:
        self._client.learn(page.users, page.chats)
        reader = Leitor(self._eu, [*page.users, *page.chats], self._random_ids)
        await prazo.store(self._entidades.keep(self._conta, reader.entities))
        return reader

    async def _call(self, metodo: Metodo, request: Any, prazo: Prazo, *, peer: Peer | None = None) -> Ok | Falha:
        found = await self._invoke(metodo, self._client(request), prazo)
        if isinstance(found, PeerUnknown) and peer is not None:
            await prazo.store(self._entidades.forget(self._conta, peer))
        return found

    async def _invoke(self, metodo: Metodo, call: Any, prazo: Prazo) -> Ok | Falha:
        if not self._client.is_connected():
            if asyncio.iscoroutine(call):
                call.close()
            return self._explain_end()
        try:
            return Ok(await prazo.run(_without_cancel(call), metodo.value))
        except (errors.RPCError, AuthKeyNotFound) as error:
            return failure(error, metodo)
        except DeadlineExceeded:
            return Unknown(NO_ANSWER(limit=prazo.limit))
        except OSError as error:
            return Unknown(type(error).__name__)

    def _explain_end(self) -> SessionRevoked | Unavailable:
        error = self._client.updates_error
        if isinstance(error, REVOKED):
            found = failure(error, Metodo.PROBE)
            assert isinstance(found, SessionRevoked)
            return found
        return Unavailable(DISCONNECTED() if error is None else type(error).__name__)

    def _on_disconnected(self, done: "asyncio.Future[None]") -> None:
        if not done.cancelled():
            done.exception()  # read the exception, so that asyncio does not print it
        self._woken.set()

    def _prazo(self, limit: timedelta) -> Prazo:
        return Prazo(limit, self._clock)


async def _without_cancel(call: Any) -> Any:
    """Await a call. When the connection ends, Telethon cancels the calls in progress. Such a cancellation is reported
    as a lost connection.
    """
    try:
        return await call
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ConnectionError(DISCONNECTED()) from None


def _read_sent(answer: Any, random_id: int) -> Sent | Unknown:
    """Read the id of a sent message from Telegram's answer."""
    if isinstance(answer, types.UpdateShortSentMessage):
        return Sent(id=answer.id, em=answer.date)
    updates = getattr(answer, "updates", [])
    ids = {each.random_id: each.id for each in updates if isinstance(each, types.UpdateMessageID)}
    messages = {each.message.id: each.message for each in updates if hasattr(each, "message")}
    id = ids.get(random_id)
    if id is None:
        return Unknown(type(answer).__name__)
    return Sent(id=id, em=messages[id].date if id in messages else answer.date)
