"""A server for Telethon's client that needs no MTProto. It replaces Telethon's sender, accepts TL requests, answers
with TL objects and Telethon's own errors, and pushes updates. Its state is the simulated Telegram (``simulador``).
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from telethon import errors
from telethon.crypto import AuthKey
from telethon.network import MTProtoSender
from telethon.sessions import StringSession
from telethon.tl import functions, types

from app.integrations.telethon.cliente import Cliente
from simulador.telegram.mundo import Mensagem, Mundo, RpcError, digest

f, t = functions, types
API_ID, API_HASH = 1, "synthetic"
METHODS = {
    f.InvokeWithLayerRequest: "connect",
    f.users.GetUsersRequest: "get_me",
    f.updates.GetStateRequest: "probe",
    f.updates.GetDifferenceRequest: "difference",
    f.updates.GetChannelDifferenceRequest: "difference",
    f.messages.SendMessageRequest: "send_text",
    f.messages.SendMediaRequest: "send_file",
    f.messages.ForwardMessagesRequest: "forward",
    f.messages.EditMessageRequest: "edit",
    f.messages.DeleteMessagesRequest: "delete",
    f.channels.DeleteMessagesRequest: "delete",
    f.messages.ReadHistoryRequest: "mark_read",
    f.channels.ReadHistoryRequest: "mark_read",
    f.contacts.ResolveUsernameRequest: "resolve",
    f.contacts.ResolvePhoneRequest: "resolve",
    f.messages.GetHistoryRequest: "history",
    f.upload.SaveFilePartRequest: "upload",
}


def session_of(token: str) -> str:
    """Return a Telethon session string that contains this session of the simulated Telegram."""
    session = StringSession()
    session.set_dc(2, "127.0.0.1", 443)
    session.auth_key = AuthKey(token.encode().ljust(256, b"\0"))
    return str(session.save())


def client_maker(mundo: Mundo) -> Callable[[StringSession, str | None], Cliente]:
    def make(session: StringSession, marca: str | None) -> Cliente:
        client = Cliente(session, API_ID, API_HASH, marca)
        client._sender = Sender(mundo, session, client._updates_queue)
        return client

    return make


def login_maker(mundo: Mundo) -> Callable[[StringSession], Cliente]:
    def make(session: StringSession) -> Cliente:
        client = Cliente(session, API_ID, API_HASH, repeats=1)
        client._sender = Sender(mundo, session, client._updates_queue)
        return client

    return make


class Sender:
    """Implements the subset of ``MTProtoSender`` that ``TelegramClient`` uses."""

    def __init__(self, mundo: Mundo, session: StringSession, updates_queue: "asyncio.Queue[Any]") -> None:
        self._mundo = mundo
        self._updates_queue = updates_queue
        self._is_connected = False
        self._is_sending = False
        self._connection = ""
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open: set[asyncio.Future[Any]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._uploads: dict[int, bytes] = {}
        self._phone = ""
        self._log = None
        self.auth_key = session.auth_key or AuthKey(f"tl-{id(self)}".encode().ljust(256, b"\0"))

    @property
    def _token(self) -> str:
        return bytes(self.auth_key.key).rstrip(b"\0").decode()

    # The interface of MTProtoSender

    async def connect(self, connection: Any) -> bool:
        conta = self._mundo.sessoes.get(self._token, 0)
        how = self._mundo.behaviour(conta)
        if how.hang:
            await asyncio.Event().wait()
        if how.down:
            raise ConnectionError
        self._connection = self._mundo.connect(conta, self._push)
        self._is_connected = True
        return True

    def is_connected(self) -> bool:
        return self._is_connected

    def _transport_connected(self) -> bool:
        return self._is_connected

    def _keepalive_ping(self, number: int) -> None:
        pass

    @property
    def disconnected(self) -> "asyncio.Future[None]":
        return asyncio.shield(self._ended)

    async def disconnect(self) -> None:
        self._end(None)

    def send(self, request: Any, ordered: bool = False) -> "asyncio.Future[Any]":
        if not self._is_connected:
            raise ConnectionError("Cannot send requests while disconnected")
        bytes(request)  # raises for a field of the wrong type, as the original does
        future = asyncio.get_running_loop().create_future()
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        task = asyncio.get_running_loop().create_task(self._answer(request, future))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return future

    def _end(self, error: Exception | None) -> None:
        self._is_connected = False
        self._mundo.disconnect(self._connection)
        for future in list(self._open):
            if error is not None and not future.done():
                future.set_exception(error)
            else:
                future.cancel()
        for task in self._tasks:
            task.cancel()
        if not self._ended.done():
            if error is None:
                self._ended.set_result(None)
            else:
                self._ended.set_exception(error)
                self._ended.exception()

    async def _answer(self, request: Any, future: "asyncio.Future[Any]") -> None:
        plan = self._mundo.plan(
            self._mundo.sessoes.get(self._token, 0),
            METHODS.get(type(request), "other"),
            getattr(request, "random_id", None),
        )
        if plan.hang:
            return
        if plan.cut_before:
            self._end(ConnectionResetError())
            return
        try:
            if plan.error is not None:
                raise plan.error
            self._is_sending = True
            try:
                result = Handler(self._mundo, self._token, self._uploads).handle(request)
            finally:
                self._is_sending = False
            await self._mundo._clock.sleep(plan.slow_seconds)
            if plan.cut_after:
                self._end(ConnectionResetError())
                return
            if plan.fail_after:
                raise RpcError(500, "RPC_CALL_FAIL")
        except RpcError as error:
            if not future.done():
                future.set_exception(errors.rpc_message_to_error(t.RpcError(error.code, error.name), request))
            return
        MTProtoSender._store_own_updates(self, result)
        if not future.done():
            future.set_result(result)

    def _push(self) -> None:
        """Push the account's updates, except those caused by a request on this connection, because the response to that
        request contains them.
        """
        conexao = self._mundo.conexoes.get(self._connection)
        if conexao is None:
            return
        if self._mundo.sessoes.get(self._token) is None:
            self._updates_queue.put_nowait(t.UpdatesTooLong())
            return
        pushed, conexao.pushed = conexao.pushed, []
        if self._is_sending:
            return
        handler = Handler(self._mundo, self._token, self._uploads)
        for each in pushed:
            self._updates_queue.put_nowait(handler.pushed(each))


class Handler:
    """The part of the simulated Telegram server that answers the requests of one account."""

    def __init__(self, mundo: Mundo, token: str, uploads: dict[int, bytes]) -> None:
        self._mundo = mundo
        self._token = token
        self._uploads = uploads

    def handle(self, request: Any) -> Any:
        match request:
            case f.InvokeWithLayerRequest():
                return None
            case f.auth.SendCodeRequest():
                self._mundo.person_by_phone(request.phone_number)
                return t.auth.SentCode(t.auth.SentCodeTypeApp(5), "synthetic-hash")
            case f.auth.SignInRequest():
                person = self._mundo.sign_in(request.phone_number, request.phone_code)
                if person.senha is not None:
                    self._uploads[-1] = request.phone_number.encode()
                    raise RpcError(401, "SESSION_PASSWORD_NEEDED")
                return self._log_in(person.id)
            case f.account.GetPasswordRequest():
                return password_question()
            case f.auth.CheckPasswordRequest():
                # The proof hides the password, so this server only checks that a proof was computed.
                person = self._mundo.person_by_phone(self._uploads[-1].decode())
                return self._log_in(person.id)
        self._conta = self._mundo.account(self._token)
        return self._handle(request)

    def _log_in(self, id: int) -> Any:
        self._mundo._record({"e": "sessao", "conta": id, "token": self._token})
        self._conta = id
        return t.auth.Authorization(self._user(id))

    def _handle(self, request: Any) -> Any:
        mundo, conta = self._mundo, self._conta
        match request:
            case f.users.GetUsersRequest():
                return [self._user(conta)]
            case f.updates.GetStateRequest():
                return self._state()
            case f.updates.GetDifferenceRequest():
                return self._difference(request.pts)
            case f.updates.GetChannelDifferenceRequest():
                return self._channel_difference(request)
            case f.messages.SendMessageRequest():
                chave, acesso = self._place(request.peer)
                reply = None if request.reply_to is None else request.reply_to.reply_to_msg_id
                sent = mundo.send(conta, chave, acesso, request.message, random_id=request.random_id, resposta_a=reply)
                if chave.startswith("pessoa:"):
                    return t.UpdateShortSentMessage(
                        id=sent.id, pts=self._pts_of(sent), pts_count=1, date=moment(sent.em), out=True
                    )
                return self._answer_of(sent, request.random_id)
            case f.messages.SendMediaRequest():
                chave, acesso = self._place(request.peer)
                sent = mundo.send(
                    conta,
                    chave,
                    acesso,
                    request.message,
                    random_id=request.random_id,
                    midia=self._uploaded(request.media),
                )
                return self._answer_of(sent, request.random_id)
            case f.messages.ForwardMessagesRequest():
                chave, acesso = self._place(request.to_peer)
                origem, _ = self._place(request.from_peer)
                random_id = request.random_id[0]
                sent = mundo.forward(conta, origem, request.id[0], chave, acesso, random_id=random_id)
                return self._answer_of(sent, random_id)
            case f.messages.EditMessageRequest():
                chave, acesso = self._place(request.peer)
                edited = mundo.edit(conta, chave, acesso, request.id, request.message)
                return self._updates([self._edit(edited, len(self._own()))], [edited])
            case f.messages.DeleteMessagesRequest():
                found = [
                    (chave, id)
                    for chave, box in mundo.caixas[conta].mensagens.items()
                    for id in request.id
                    if id in box and not chave.startswith("canal:")
                ]
                for chave, id in found:
                    mundo.delete(conta, chave, mundo.hash_for(conta, chave), [id])
                return t.messages.AffectedMessages(pts=len(self._own()) + 1, pts_count=len(found))
            case f.channels.DeleteMessagesRequest():
                chave, acesso = self._place(request.channel)
                mundo.delete(conta, chave, acesso, request.id)
                return t.messages.AffectedMessages(pts=len(self._own()) + 1, pts_count=0)
            case f.messages.ReadHistoryRequest():
                mundo.mark_read(conta, *self._place(request.peer), request.max_id)
                return t.messages.AffectedMessages(pts=len(self._own()) + 1, pts_count=0)
            case f.channels.ReadHistoryRequest():
                mundo.mark_read(conta, *self._place(request.channel), request.max_id)
                return True
            case f.contacts.ResolveUsernameRequest():
                return self._resolved(mundo.resolve(conta, f"@{request.username}"))
            case f.contacts.ResolvePhoneRequest():
                return self._resolved(mundo.resolve(conta, f"+{request.phone}"))
            case f.messages.GetHistoryRequest():
                return self._history(request)
            case f.upload.SaveFilePartRequest():
                self._uploads[request.file_id] = self._uploads.get(request.file_id, b"") + request.bytes
                return True
        raise AssertionError(f"the server does not know {type(request).__name__}")

    def pushed(self, update: Any) -> Any:
        """Convert an update of the simulated Telegram to the TL object that the server pushes to the client."""
        self._conta = self._mundo.account(self._token)
        own = self._own()
        position = own.index(update) + 1 if update in own else 0
        messages = (
            [self._mundo.message(self._conta, *key)] if (key := message_key(update, self._mundo, self._conta)) else []
        )
        return self._updates([self._update(update, position)], messages)

    # Updates. The position of an account is the number of its updates outside channels plus 1, because 0 means none.

    def _own(self) -> list[Any]:
        return [each for each in self._mundo.caixas[self._conta].updates if not in_channel(each)]

    def _state(self, pts: int | None = None) -> Any:
        at = len(self._own()) if pts is None else pts
        return t.updates.State(pts=at + 1, qts=0, date=datetime.now(UTC), seq=0, unread_count=0)

    def _difference(self, pts: int) -> Any:
        own = self._own()
        left = own[pts - 1 : pts - 1 + 100]
        if not left:
            return t.updates.DifferenceEmpty(date=datetime.now(UTC), seq=0)
        new = [
            self._mundo.message(self._conta, *key)
            for each in left
            if each["tipo"] == "mensagem" and (key := message_key(each, self._mundo, self._conta)) is not None
        ]
        other = [self._update(each, pts - 1 + n) for n, each in enumerate(left, 1) if each["tipo"] != "mensagem"]
        touched = [
            self._mundo.message(self._conta, *key)
            for each in left
            if (key := message_key(each, self._mundo, self._conta)) is not None
        ]
        parts = {
            "new_messages": [self._message(each) for each in new],
            "new_encrypted_messages": [],
            "other_updates": other,
            "chats": self._chats(touched),
            "users": self._users(touched),
        }
        end = pts - 1 + len(left)
        if end < len(own):
            return t.updates.DifferenceSlice(**parts, intermediate_state=self._state(end))
        return t.updates.Difference(**parts, state=self._state(end))

    def _channel_difference(self, request: Any) -> Any:
        chave = f"canal:{request.channel.channel_id}"
        found = self._mundo.history(
            self._conta, chave, request.channel.access_hash, after=request.pts, most=request.limit
        )
        if not found:
            return t.updates.ChannelDifferenceEmpty(pts=request.pts, final=True)
        return t.updates.ChannelDifference(
            pts=found[-1].id,
            new_messages=[self._message(each) for each in found],
            other_updates=[],
            chats=self._chats(found),
            users=self._users(found),
            final=len(found) < request.limit,
        )

    def _update(self, update: Any, position: int) -> Any:
        pts = position + 1
        match update["tipo"]:
            case "mensagem":
                key = message_key(update, self._mundo, self._conta)
                if key is None:
                    return t.UpdateDeleteMessages([], pts, 1)
                found = self._mundo.message(self._conta, *key)
                if in_channel(update):
                    return t.UpdateNewChannelMessage(self._message(found), pts=found.id, pts_count=1)
                return t.UpdateNewMessage(self._message(found), pts=pts, pts_count=1)
            case "editada":
                key = message_key(update, self._mundo, self._conta)
                if key is None:
                    return t.UpdateDeleteMessages([], pts, 1)
                return self._edit(self._mundo.message(self._conta, *key), position)
            case "apagadas":
                return t.UpdateDeleteMessages(update["ids"], pts, 1)
            case _:
                # In the original a read receipt has a position but no weight. Here every update has weight 1.
                return t.UpdateReadHistoryOutbox(peer(update["chat"]), update["ate"], pts, 1)

    def _edit(self, message: Mensagem, position: int) -> Any:
        return t.UpdateEditMessage(self._message(message), pts=position + 1, pts_count=1)

    def _answer_of(self, sent: Mensagem, random_id: int) -> Any:
        if sent.chat.startswith("canal:"):
            new = t.UpdateNewChannelMessage(self._message(sent), pts=sent.id, pts_count=1)
        else:
            new = t.UpdateNewMessage(self._message(sent), pts=self._pts_of(sent), pts_count=1)
        return self._updates([t.UpdateMessageID(sent.id, random_id), new], [sent])

    def _pts_of(self, sent: Mensagem) -> int:
        """Return the position (``pts``) of a message's update. For a repeated request, that is an earlier position than
        the current one.
        """
        for n, each in enumerate(self._own(), 1):
            if each["tipo"] == "mensagem" and each["mensagem"]["id"] == sent.id and not in_channel(each):
                return n + 1
        raise AssertionError("every message has an update")

    def _updates(self, updates: list[Any], messages: Sequence[Mensagem]) -> Any:
        return t.Updates(updates, self._users(messages), self._chats(messages), datetime.now(UTC), 0)

    # Values

    def _message(self, message: Mensagem) -> Any:
        return t.Message(
            id=message.id,
            peer_id=peer(message.chat),
            date=moment(message.em),
            message=message.texto,
            out=message.is_own,
            from_id=None if message.chat.startswith("pessoa:") else t.PeerUser(message.autor),
            fwd_from=t.MessageFwdHeader(moment(message.em)) if message.encaminhada else None,
            reply_to=None if message.resposta_a is None else t.MessageReplyHeader(reply_to_msg_id=message.resposta_a),
            media=None if message.midia is None else document(message.midia),
            edit_date=None if message.editada is None else moment(message.editada),
        )

    def _users(self, messages: Sequence[Mensagem]) -> list[Any]:
        people = {self._conta, *(each.autor for each in messages)}
        people |= {int(each.chat.partition(":")[2]) for each in messages if each.chat.startswith("pessoa:")}
        return [self._user(each) for each in sorted(people)]

    def _user(self, id: int) -> Any:
        pessoa = self._mundo.pessoas[id]
        return t.User(
            id=id,
            is_self=id == self._conta,
            access_hash=self._mundo.hash_for(self._conta, f"pessoa:{id}"),
            first_name=pessoa.nome,
            username=pessoa.username,
            phone=pessoa.telefone,
        )

    def _chats(self, messages: Sequence[Mensagem]) -> list[Any]:
        return [self._chat(each) for each in sorted({each.chat for each in messages} & set(self._mundo.chats))]

    def _chat(self, chave: str) -> Any:
        chat, now = self._mundo.chats[chave], datetime.now(UTC)
        if chat.tipo == "grupo":
            return t.Chat(chat.id, chat.titulo, t.ChatPhotoEmpty(), len(chat.membros), now, 1)
        return t.Channel(
            chat.id,
            chat.titulo,
            t.ChatPhotoEmpty(),
            now,
            megagroup=True,
            access_hash=self._mundo.hash_for(self._conta, chave),
            username=chat.username,
        )

    def _resolved(self, found: Any) -> Any:
        chave = f"{found['tipo']}:{found['id']}"
        users = [self._user(found["id"])] if found["tipo"] == "pessoa" else []
        chats = [] if users else [self._chat(chave)]
        return t.contacts.ResolvedPeer(peer(chave), chats, users)

    def _history(self, request: Any) -> Any:
        chave, acesso = self._place(request.peer)
        self._mundo.check_peer(self._conta, chave, acesso)
        rows = sorted(self._mundo._messages(self._conta, chave).values(), key=lambda each: -each.id)
        at = (
            next((n for n, each in enumerate(rows) if each.id < request.offset_id), len(rows))
            if request.offset_id
            else 0
        )
        begin = at + request.add_offset
        page = [each for each in rows[max(0, begin) : begin + request.limit] if each.id > request.min_id]
        return t.messages.Messages(
            messages=[self._message(each) for each in page],
            topics=[],
            chats=self._chats(page),
            users=self._users(page),
        )

    def _uploaded(self, media: Any) -> dict[str, Any]:
        content = self._uploads[media.file.id]
        nome = media.file.name
        mime = getattr(media, "mime_type", "image/jpeg")
        return {"tipo": "documento", "nome": nome, "mime": mime, "tamanho": len(content), "sha256": digest(content)}

    def _place(self, peer: Any) -> tuple[str, int | None]:
        match peer:
            case t.InputPeerUser(user_id=id, access_hash=acesso):
                return f"pessoa:{id}", acesso
            case t.InputPeerChat(chat_id=id):
                return f"grupo:{id}", None
            case (
                t.InputPeerChannel(channel_id=id, access_hash=acesso)
                | t.InputChannel(channel_id=id, access_hash=acesso)
            ):
                return f"canal:{id}", acesso
        raise AssertionError(type(peer).__name__)


def in_channel(update: Any) -> bool:
    return "mensagem" in update and update["mensagem"]["chat"]["tipo"] == "canal"


def message_key(update: Any, mundo: Mundo, conta: int) -> tuple[str, int] | None:
    """Return the chat and the id of the message in an update. Return None if the update has no message, or if the
    message no longer exists.
    """
    if "mensagem" not in update:
        return None
    chat, id = update["mensagem"]["chat"], update["mensagem"]["id"]
    chave = f"{chat['tipo']}:{chat['id']}"
    return (chave, id) if id in mundo._messages(conta, chave) else None


def peer(chave: str) -> Any:
    tipo, _, id = chave.partition(":")
    kinds = {"pessoa": t.PeerUser, "grupo": t.PeerChat, "canal": t.PeerChannel}
    return kinds[tipo](int(id))


def document(midia: Any) -> Any:
    return t.MessageMediaDocument(
        document=t.Document(
            id=int(midia["sha256"][:12], 16),
            access_hash=1,
            file_reference=b"",
            date=datetime.now(UTC),
            mime_type=midia["mime"],
            size=midia["tamanho"],
            dc_id=2,
            attributes=[t.DocumentAttributeFilename(midia["nome"])],
        )
    )


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def password_question() -> Any:
    # A known safe prime of Telegram (2048 bits), so that Telethon's checks pass.
    prime = bytes.fromhex(
        "c71caeb9c6b1c9048e6c522f70f13f73980d40238e3e21c14934d037563d930f48198a0aa7c14058229493d22530f4dbfa336f6e0ac925139543"
        "aed44cce7c3720fd51f69458705ac68cd4fe6b6b13abdc9746512969328454f18faf8c595f642477fe96bb2a941d5bcd1d4ac8cc49880708fa9b"
        "378e3c4f3a9060bee67cf9a4a4a695811051907e162753b56b0f6b410dba74d8a84b2a14b3144e0ef1284754fd17ed950d5965b4b9dd46582db1"
        "178d169c6bc465b0d6ff9ca3928fef5b9ae4e418fc15e83ebea0f87fa9ff5eed70050ded2849f47bf959d956850ce929851f0d8115f635b105ee"
        "2e4e15d04b2454bf6f4fadf034b10403119cd8e3b92fcc5b"
    )
    algo = t.PasswordKdfAlgoSHA256SHA256PBKDF2HMACSHA512iter100000SHA256ModPow(
        salt1=b"salt-one", salt2=b"salt-two", g=3, p=prime
    )
    return t.account.Password(
        new_algo=algo,
        new_secure_algo=t.SecurePasswordKdfAlgoUnknown(),
        secure_random=b"",
        has_password=True,
        current_algo=algo,
        srp_B=(7).to_bytes(256, "big"),
        srp_id=1,
    )
