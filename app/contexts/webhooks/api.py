"""The facts that a messenger can tell us, free of any gateway's spelling."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from app.contexts.comum.telefone import Address
from app.contexts.comum.whatsapp import Conexao, Entrega
from batuta.kernel import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Recebida:
    """Somebody wrote to one of our chips. ``texto`` is empty where only ``midia`` came."""

    message_id: str
    instance: str
    de: Address
    nome: str | None
    texto: str
    midia: str | None
    em: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeGrupo:
    """Somebody said something in a group that one of our chips is in. ``citada``: the message it answers."""

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
    """A message left by one of our chips, whoever sent it."""

    message_id: str
    instance: str
    para: Address
    texto: str | None
    entrega: Entrega
    em: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Recibo:
    """How far a message of ours got."""

    message_id: str
    instance: str
    entrega: Entrega


@dataclass(frozen=True, slots=True, kw_only=True)
class Ligacao:
    """A chip's connection changed. ``code``: why it was cut off; ``em``: by the gateway's own clock."""

    instance: str
    state: Conexao
    code: int | None
    telefone: str | None
    em: datetime | None


@dataclass(frozen=True, slots=True)
class Ignorado:
    why: str


Fato: TypeAlias = Recebida | DeGrupo | Eco | Recibo | Ligacao | Ignorado


@dataclass(frozen=True, slots=True, kw_only=True)
class Entregue:
    """One delivery of a webhook. ``chave`` is the same for a repeat of it."""

    canal: str
    chave: str
    instance: str
    evento: str
    payload: dict[str, Json]
