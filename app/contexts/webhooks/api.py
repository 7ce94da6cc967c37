"""Types for the facts in a webhook delivery, independent of the gateway's format."""

from datetime import datetime
from typing import TypeAlias

from app.contexts.comum.telefone import Address
from app.contexts.comum.whatsapp import Entrega, EstadoDaConexao
from batuta.kernel import Json, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Recebida:
    """A private message to one of our chips. ``texto`` is empty if the message has only ``midia``."""

    message_id: str
    instance: str
    de: Address
    nome: str | None
    texto: str
    midia: str | None
    em: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeGrupo:
    """A message in a group to which one of our chips belongs. If the message is a reply, ``citada`` is the id of the
    message that it answers.
    """

    message_id: str
    instance: str
    grupo: str
    autor: Address | None
    nome: str | None
    texto: str
    midia: str | None
    encaminhada: bool
    em: datetime
    citada: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Eco:
    """A report that one of our chips sent a message, which either Julia or a person using the phone wrote."""

    message_id: str
    instance: str
    para: Address
    texto: str | None
    entrega: Entrega
    em: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Recibo:
    """A delivery receipt for one of our messages."""

    message_id: str
    instance: str
    entrega: Entrega


@dataclass(frozen=True, slots=True, kw_only=True)
class Ligacao:
    """A change in a chip's connection. ``code`` is the reason if the connection was lost. ``em`` is the time on the
    gateway's clock.
    """

    instance: str
    state: EstadoDaConexao
    code: int | None
    telefone: str | None
    em: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EscritaNaCentral:
    """A message to a doctor that a team member wrote in the help desk."""

    central_id: int  # id of the conversation in the help desk
    message_id: int
    autor: str
    texto: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MudancaNaCentral:
    """A change to a conversation in the help desk. ``mudou`` has the names of the attributes that changed."""

    central_id: int
    mudou: frozenset[str]
    resolvida: bool
    autor: str | None  # the person to whom the conversation is assigned
    etiquetas: frozenset[str]
    em: datetime | None  # time on the help desk's clock


@dataclass(frozen=True, slots=True)
class Ignorado:
    why: str


Fato: TypeAlias = Recebida | DeGrupo | Eco | Recibo | Ligacao | EscritaNaCentral | MudancaNaCentral | Ignorado


@dataclass(frozen=True, slots=True, kw_only=True)
class EntregaDoWebhook:
    """One webhook delivery. A repeated delivery has the same ``chave``."""

    canal: str
    chave: str
    instance: str
    evento: str
    payload: dict[str, Json]
