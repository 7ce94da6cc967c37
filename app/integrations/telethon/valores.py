"""Translate Telethon's objects and errors into the types of ``app.contexts.telegram.porta``, the Telegram interface."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from telethon import errors, utils
from telethon.errors.common import AuthKeyNotFound
from telethon.tl import types

from app.contexts.telegram.porta import (
    Apagadas,
    Atualizacao,
    Entidade,
    Falha,
    FloodWait,
    LidaPeloOutro,
    MensagemVista,
    Metodo,
    Midia,
    Peer,
    PeerBlocked,
    PeerFlood,
    PeerUnknown,
    Refused,
    SessionRevoked,
    SlowMode,
    TipoDeChat,
    Unknown,
)

BANNED: Final = (errors.UserDeactivatedBanError, errors.UserDeactivatedError, errors.PhoneNumberBannedError)
REVOKED: Final = (errors.UnauthorizedError, errors.AuthKeyDuplicatedError, AuthKeyNotFound, *BANNED)
# A frozen account may not send until its owner appeals.
FROZEN: Final = (errors.FrozenMethodInvalidError, errors.FrozenParticipantMissingError)
UNKNOWN_PEER: Final = (
    errors.PeerIdInvalidError,
    errors.UserIdInvalidError,
    errors.ChatIdInvalidError,
    errors.ChannelInvalidError,
    errors.UsernameNotOccupiedError,
    errors.UsernameInvalidError,
    errors.PhoneNotOccupiedError,
    errors.PhoneNumberInvalidError,
    errors.InputUserDeactivatedError,
)
BLOCKED: Final = (
    errors.ForbiddenError,
    errors.UserIsBlockedError,
    errors.YouBlockedUserError,
    errors.UserBannedInChannelError,
    errors.ChannelPrivateError,
    errors.UserPrivacyRestrictedError,
    errors.ChatRestrictedError,
    errors.ChatAdminRequiredError,
)
# Errors after which the server may still have carried out the request.
UNSURE: Final = (errors.ServerError, errors.TimedOutError, errors.RpcCallFailError, errors.MsgWaitFailedError)


def failure(error: errors.RPCError | AuthKeyNotFound, metodo: Metodo) -> Falha:
    """Translate an error from the server. Only the error's name is kept, because its text may contain a
    phone number.
    """
    name = type(error).__name__
    match error:
        case errors.SlowModeWaitError():
            return SlowMode(timedelta(seconds=error.seconds))
        case errors.FloodWaitError() | errors.FloodPremiumWaitError():
            return FloodWait(metodo, timedelta(seconds=error.seconds))
        case errors.PeerFloodError():
            return PeerFlood()
    if isinstance(error, FROZEN):
        return PeerFlood()
    if isinstance(error, REVOKED):
        return SessionRevoked(name, banned=isinstance(error, BANNED))
    if isinstance(error, UNKNOWN_PEER):
        return PeerUnknown(name)
    if isinstance(error, BLOCKED):
        return PeerBlocked(name)
    if isinstance(error, UNSURE):
        return Unknown(name)
    return Refused(name, permanent=True)


def peer_of(peer: Any, acesso: int | None = None) -> Peer:
    match peer:
        case types.PeerUser(user_id=id):
            return Peer(TipoDeChat.PESSOA, id, acesso)
        case types.PeerChat(chat_id=id):
            return Peer(TipoDeChat.GRUPO, id, acesso)
        case _:
            return Peer(TipoDeChat.CANAL, peer.channel_id, acesso)


def input_peer(peer: Peer) -> Any:
    match peer.tipo:
        case TipoDeChat.PESSOA:
            return types.InputPeerUser(peer.id, peer.acesso or 0)
        case TipoDeChat.GRUPO:
            return types.InputPeerChat(peer.id)
        case TipoDeChat.CANAL:
            return types.InputPeerChannel(peer.id, peer.acesso or 0)


def entity_of(entity: Any) -> Entidade | None:
    """Translate a Telethon object that describes a person or a chat. Returns None for an abridged object, whose access
    hash is not valid.
    """
    if getattr(entity, "min", False):
        return None
    match entity:
        case types.User():
            return Entidade(
                peer=Peer(TipoDeChat.PESSOA, entity.id, entity.access_hash),
                nome=utils.get_display_name(entity) or None,
                username=entity.username,
                telefone=entity.phone,
                is_bot=bool(entity.bot),
            )
        case types.Chat():
            return Entidade(peer=Peer(TipoDeChat.GRUPO, entity.id), nome=entity.title)
        case types.Channel():
            peer = Peer(TipoDeChat.CANAL, entity.id, entity.access_hash)
            return Entidade(peer=peer, nome=entity.title, username=entity.username)
        case _:
            return None


class Leitor:
    """Converts Telethon's messages and updates to the types of ``app.contexts.telegram.porta``. ``entities`` are the
    people and chats that arrived in the same answer.
    """

    def __init__(self, eu: int, entities: Sequence[Any], random_ids: Mapping[tuple[str, int], int]) -> None:
        known = (entity_of(each) for each in entities)
        self._eu = eu
        self._known = {each.peer.chave: each for each in known if each is not None}
        self._random_ids = random_ids

    @property
    def entities(self) -> list[Entidade]:
        return list(self._known.values())

    def update(self, update: Any) -> Iterator[Atualizacao]:
        match update:
            case types.UpdateNewMessage() | types.UpdateNewChannelMessage():
                yield from self.message(update.message)
            case types.UpdateEditMessage() | types.UpdateEditChannelMessage():
                yield from self.message(update.message)
            case types.UpdateShortMessage():
                other = types.PeerUser(update.user_id)
                yield self._short(update, other, types.PeerUser(self._eu) if update.out else other)
            case types.UpdateShortChatMessage():
                yield self._short(update, types.PeerChat(update.chat_id), types.PeerUser(update.from_id))
            case types.UpdateDeleteMessages() if update.messages:
                yield Apagadas(chat=None, ids=tuple(update.messages))
            case types.UpdateDeleteChannelMessages():
                yield Apagadas(chat=Peer(TipoDeChat.CANAL, update.channel_id), ids=tuple(update.messages))
            case types.UpdateReadHistoryOutbox():
                yield LidaPeloOutro(chat=peer_of(update.peer), ate=update.max_id)
            case types.UpdateReadChannelOutbox():
                yield LidaPeloOutro(chat=Peer(TipoDeChat.CANAL, update.channel_id), ate=update.max_id)

    def message(self, message: Any) -> Iterator[MensagemVista]:
        """Translate one message, and yield the result. For a service message or a deleted message, yield nothing."""
        if not isinstance(message, types.Message):
            return
        author = message.from_id or (types.PeerUser(self._eu) if message.out else message.peer_id)
        yield self._build(message, message.peer_id, author, message.media, message.edit_date)

    def _short(self, update: Any, chat: Any, author: Any) -> MensagemVista:
        return self._build(update, chat, author, None, None)

    def _build(self, message: Any, chat: Any, author: Any, media: Any, edited: Any) -> MensagemVista:
        place, is_own = self._entity(chat), bool(message.out)
        reply = message.reply_to
        return MensagemVista(
            chat=place,
            id=message.id,
            em=message.date,
            texto=message.message or "",
            autor=self._entity(author) if isinstance(author, types.PeerUser) else None,
            is_own=is_own,
            random_id=self._random_ids.get((place.peer.chave, message.id)) if is_own else None,
            midia=media_of(media),
            resposta_a=getattr(reply, "reply_to_msg_id", None),
            encaminhada=message.fwd_from is not None,
            editada=edited,
        )

    def _entity(self, peer: Any) -> Entidade:
        found = peer_of(peer)
        return self._known.get(found.chave) or Entidade(peer=found)


def media_of(media: Any) -> Midia | None:
    match media:
        case None | types.MessageMediaEmpty() | types.MessageMediaWebPage():
            return None
        case types.MessageMediaPhoto(photo=types.Photo(id=id)):
            return Midia(tipo="imagem", referencia=f"photo:{id}", mime="image/jpeg")
        case types.MessageMediaDocument(document=types.Document() as document):
            return Midia(
                tipo=_kind(document.attributes),
                referencia=f"document:{document.id}",
                nome=next(
                    (
                        each.file_name
                        for each in document.attributes
                        if isinstance(each, types.DocumentAttributeFilename)
                    ),
                    None,
                ),
                mime=document.mime_type,
                tamanho=document.size,
            )
        case types.MessageMediaGeo() | types.MessageMediaGeoLive() | types.MessageMediaVenue():
            return Midia(tipo="localizacao", referencia="geo")
        case types.MessageMediaContact():
            return Midia(tipo="contato", referencia="contact")
        case _:
            return Midia(tipo="outro", referencia=type(media).__name__)


def _kind(attributes: Sequence[Any]) -> str:
    kinds = {
        types.DocumentAttributeSticker: "figurinha",
        types.DocumentAttributeAudio: "audio",
        types.DocumentAttributeVideo: "video",
    }
    return next((kinds[type(each)] for each in attributes if type(each) in kinds), "documento")
