"""The interface to Telegram: one account's requests, and every possible answer.

A client that implements this interface never repeats a send, never waits out a flood wait and never raises an error.
Each request takes ``limit``, the time after which it is abandoned, and returns its own success value or one of these
failures:

    FloodWait        nothing was done. The account may call this method again after ``wait``
    SlowMode         nothing was sent. The chat accepts this account's next message after ``wait``
    PeerFlood        nothing was sent. Telegram limits the account as a whole: stop writing with it for hours
    PeerUnknown      nothing was sent. The account cannot find or address this person or chat
    PeerBlocked      nothing was sent. The person or the chat accepts no message from this account
    SessionRevoked   nothing was done. The account is logged out or banned: a person must log in again
    OwnedElsewhere   nothing was done. Another process owns the session
    Refused          nothing was done. permanent: a retry of the same request fails too
    Unavailable      nothing was done. The request was not sent: there is no connection
    Unknown          the answer is lost. The request may have been done

Each send has a ``random_id``. Telegram sends one message per account and ``random_id``: while the server remembers the
``random_id``, a repeated send returns the first message (``Sent``) or ``AlreadySent``. Later, ``list_sent`` finds the
message in the chat's history.
"""

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Protocol, TypeAlias

from batuta.kernel import dataclass, make_writable
from batuta.reasons import define

NO_ANSWER = define("telegram_sem_resposta", "the server did not answer within {limit}")
DISCONNECTED = define("telegram_sem_conexao", "the connection to the server has ended")


class Metodo(StrEnum):
    """The requests to Telegram that have a rate limit of their own for each account."""

    CONNECT = "connect"
    PROBE = "probe"
    SEND_TEXT = "send_text"
    SEND_FILE = "send_file"
    FORWARD = "forward"
    EDIT = "edit"
    DELETE = "delete"
    MARK_READ = "mark_read"
    RESOLVE = "resolve"
    HISTORY = "history"
    LIST_SENT = "list_sent"


@dataclass(frozen=True, slots=True)
class FloodWait:
    metodo: Metodo
    wait: timedelta


@dataclass(frozen=True, slots=True)
class SlowMode:
    wait: timedelta


@dataclass(frozen=True, slots=True)
class PeerFlood:
    pass


@dataclass(frozen=True, slots=True)
class PeerUnknown:
    why: str


@dataclass(frozen=True, slots=True)
class PeerBlocked:
    why: str


@dataclass(frozen=True, slots=True)
class SessionRevoked:
    """The account's session is no longer valid. ``banned`` means that Telegram closed the account, so logging in again
    does not help.
    """

    why: str
    banned: bool = False


@dataclass(frozen=True, slots=True)
class OwnedElsewhere:
    """Another process owns the account's session. ``until`` is the time at which that process's lease ends if it is not
    renewed.
    """

    until: datetime


@dataclass(frozen=True, slots=True)
class Refused:
    why: str  # shown to operators, so it contains no number, no name and no message text
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Unavailable:
    why: str


@dataclass(frozen=True, slots=True)
class Unknown:
    why: str


Falha: TypeAlias = (
    FloodWait
    | SlowMode
    | PeerFlood
    | PeerUnknown
    | PeerBlocked
    | SessionRevoked
    | OwnedElsewhere
    | Refused
    | Unavailable
    | Unknown
)


def reason_of(failure: object) -> str:
    """Return a failure's reason, or the name of its class if it has no reason."""
    why: str = getattr(failure, "why", type(failure).__name__)
    return why


class TipoDeChat(StrEnum):
    PESSOA = "pessoa"
    GRUPO = "grupo"
    CANAL = "canal"  # a channel or a supergroup


@dataclass(frozen=True, slots=True)
class Peer:
    """A person's or a chat's Telegram address. ``acesso`` is valid only for the account that obtained it."""

    tipo: TipoDeChat
    id: int
    acesso: int | None = field(default=None, compare=False)

    @property
    def chave(self) -> str:
        """The chat's key, which is the same for all accounts."""
        return f"{self.tipo.value}:{self.id}"


class _Writable:
    """Base class for values with texts that Telegram users wrote. ``WRITTEN`` names the fields with such texts. In
    these fields, characters that a database cannot store, such as NUL, are replaced.
    """

    __slots__ = ()
    WRITTEN: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self.WRITTEN:
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, make_writable(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entidade(_Writable):
    """A person or a chat. ``telefone`` has digits only. Telegram shows a number only to contacts."""

    peer: Peer
    nome: str | None = None
    username: str | None = None  # without @
    telefone: str | None = None
    is_bot: bool = False
    WRITTEN: ClassVar[tuple[str, ...]] = ("nome", "username")


@dataclass(frozen=True, slots=True, kw_only=True)
class Midia(_Writable):
    """A reference to an attachment. ``referencia`` identifies the file on Telegram; the file's content is not
    downloaded.
    """

    tipo: str  # imagem, video, audio, documento, figurinha, localizacao, contato, outro
    referencia: str
    nome: str | None = None
    mime: str | None = None
    tamanho: int | None = None
    WRITTEN: ClassVar[tuple[str, ...]] = ("referencia", "nome", "mime")


@dataclass(frozen=True, slots=True, kw_only=True)
class MensagemVista(_Writable):
    """A message in a chat, from an update or from the history.

    ``id`` is unique only within its chat (``chat.peer.chave``). ``random_id`` is known only for messages that this
    connection sent. ``editada`` is the time of the last edit.
    """

    chat: Entidade
    id: int
    em: datetime
    texto: str
    autor: Entidade | None = None
    is_own: bool = False
    random_id: int | None = None
    midia: Midia | None = None
    resposta_a: int | None = None
    encaminhada: bool = False
    editada: datetime | None = None
    WRITTEN: ClassVar[tuple[str, ...]] = ("texto",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apagadas:
    """Deleted messages. ``chat`` is None for private chats and small groups, whose message ids are unique within the
    account.
    """

    chat: Peer | None
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LidaPeloOutro:
    """An update: the other person in a private chat has read the account's messages up to ``ate``."""

    chat: Peer
    ate: int


Atualizacao: TypeAlias = MensagemVista | Apagadas | LidaPeloOutro


@dataclass(frozen=True, slots=True, kw_only=True)
class Novidades:
    """Updates in order of arrival. The sequence is empty if nothing arrived within the time limit.

    ``marca`` is the position after these updates. The caller stores it in the transaction that stores the updates, and
    passes it to the next ``connect``, which then delivers all later updates. After a reconnection, updates may be
    delivered twice.
    """

    atualizacoes: tuple[Atualizacao, ...]
    marca: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arquivo:
    """A file to send with a Telegram message."""

    conteudo: bytes = field(repr=False)
    nome: str
    mime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    id: int
    em: datetime


@dataclass(frozen=True, slots=True)
class AlreadySent:
    """Answer to a send: the server already knows this ``random_id``, so the message was sent earlier. ``list_sent``
    returns the message's id.
    """


@dataclass(frozen=True, slots=True)
class Feito:
    """Answer: the requested edit, deletion or read mark of a message was made. Repeating the request is harmless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vivo:
    """Answer to a probe: the account is connected. ``eu`` is the account's user id. ``atraso`` means that updates were
    missing and that the connection is fetching them.
    """

    eu: int
    atraso: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Historico:
    """A page of messages that follow the requested id, oldest first. The next page begins after ``ate``, even if this
    page contains no readable message.
    """

    mensagens: tuple[MensagemVista, ...]
    ate: int
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Enviadas:
    """Messages that the account sent in a chat, newest first. Only a complete list proves that a message
    was not sent.
    """

    mensagens: tuple[MensagemVista, ...]
    is_complete: bool


SendResult: TypeAlias = Sent | AlreadySent | Falha


class Linha(Protocol):
    """An account's connection. It can be used until ``close`` is called, or until a request returns ``SessionRevoked``
    or ``OwnedElsewhere``.
    """

    @property
    def conta(self) -> str: ...

    async def probe(self, *, limit: timedelta) -> Vivo | Falha:
        """Check that the server answers, renew the ownership of the session, and fetch missing updates. A failure means
        that the connection is dead, so the caller must close it and connect again.
        """
        ...

    async def send_text(
        self, peer: Peer, texto: str, *, random_id: int, resposta_a: int | None = None, limit: timedelta
    ) -> SendResult: ...

    async def send_file(
        self, peer: Peer, arquivo: Arquivo, legenda: str, *, random_id: int, limit: timedelta
    ) -> SendResult:
        """Upload and send a file. If the upload fails, return ``Unavailable``, because the message was not sent."""
        ...

    async def forward(
        self, origem: Peer, id: int, destino: Peer, *, random_id: int, limit: timedelta
    ) -> SendResult: ...

    async def edit(self, peer: Peer, id: int, texto: str, *, limit: timedelta) -> Feito | Falha: ...

    async def delete(self, peer: Peer, ids: Sequence[int], *, limit: timedelta) -> Feito | Falha:
        """Delete messages for both sides. Messages that no longer exist are reported as deleted."""
        ...

    async def mark_read(self, peer: Peer, ate: int, *, limit: timedelta) -> Feito | Falha: ...

    async def resolve(self, destino: str, *, limit: timedelta) -> Entidade | Falha:
        """Find a person or a chat by ``@username``, ``+telephone``, ``Peer.chave`` or a person's id. If the person or
        chat is already known, no request is made.
        """
        ...

    async def history(self, peer: Peer, *, after: int, most: int, limit: timedelta) -> Historico | Falha: ...

    async def list_sent(self, peer: Peer, *, since: datetime, limit: timedelta) -> Enviadas | Falha: ...

    async def receive(self, *, limit: timedelta) -> Novidades | Falha:
        """Wait until at least one update arrives, and return the updates. If no update arrives within ``limit``, the
        result is empty.
        """
        ...

    async def close(self, *, limit: timedelta) -> None:
        """End the connection and release the ownership of the session. The method never raises an error and may be
        called twice.
        """
        ...


class Telegram(Protocol):
    async def connect(self, conta: str, *, marca: str | None, limit: timedelta) -> Linha | Falha:
        """Take ownership of an account's session and connect. ``marca`` is the position of the last stored update; None
        means that only updates from now on are delivered. If the account has no session, return ``SessionRevoked``.
        """
        ...


class Entidades(Protocol):
    """Stores the people and chats that an account knows, so that Telegram is not queried for them again."""

    async def find(self, conta: str, destino: str) -> Entidade | None: ...

    async def keep(self, conta: str, entidades: Sequence[Entidade]) -> None: ...

    async def forget(self, conta: str, peer: Peer) -> None: ...


class MotivoDaRecusa(StrEnum):
    """Reasons why a login is refused."""

    TELEFONE = "telefone"  # no account has this number, or it is not a phone number
    CODIGO = "codigo"
    CODIGO_VENCIDO = "codigo_vencido"
    SENHA = "senha"
    SESSAO = "sessao"  # the text is not a session, or the session is no longer logged in
    BANIDA = "banida"


@dataclass(frozen=True, slots=True)
class LoginRecusado:
    motivo: MotivoDaRecusa


@dataclass(frozen=True, slots=True)
class PedeSenha:
    """Answer to a login: the account requires a password in addition to the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrou:
    """A successful login, with the account and the session to store. ``repr`` hides both, so that they never appear in
    logs and errors.
    """

    sessao: str = field(repr=False)
    eu: Entidade = field(repr=False)


class Login(Protocol):
    """One login to a Telegram account. Its calls share a connection, so all of them must be made on the same object."""

    async def ask_code(self, telefone: str, *, limit: timedelta) -> Feito | LoginRecusado | Falha: ...

    async def sign_in(self, codigo: str, *, limit: timedelta) -> Entrou | PedeSenha | LoginRecusado | Falha: ...

    async def check_password(self, senha: str, *, limit: timedelta) -> Entrou | LoginRecusado | Falha: ...

    async def import_session(self, sessao: str, *, limit: timedelta) -> Entrou | LoginRecusado | Falha:
        """Check that a session from another program is logged in. From then on, the other program must not use the
        session.
        """
        ...

    async def close(self, *, limit: timedelta) -> None: ...
