"""Each account's known people and chats, and the link between a person on Telegram and a telephone number.

``contatos_lid`` links a person's Telegram address (``<id>@telegram``) to a phone number, just as it links hidden
addresses on WhatsApp. The number identifies the row in ``clientes``, so opt-outs and limits apply to the person on both
channels.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from app.contexts.comum.telefone import Address, other_form, telefone_de
from app.contexts.telegram.porta import Entidade, Peer, TipoDeChat
from batuta.kernel import Clock, dataclass
from batuta.sql import Database, Query, Reading, Row, load_queries

SERVER: Final = "telegram"
NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


def quem(peer: Peer) -> str | None:
    """Return a person's Telegram address, or None for a group or a channel."""
    return f"{peer.id}@{SERVER}" if peer.tipo is TipoDeChat.PESSOA else None


def endereco(entidade: Entidade) -> Address:
    """Return a person's Telegram address, with the phone number if Telegram shows it."""
    address = f"{entidade.peer.id}@{SERVER}"
    return Address(address, telefone_de(entidade.telefone or ""), address)


def message_id(conta: str, chat: Peer, id: int) -> str:
    """Return a message id that is unique across all accounts. In a supergroup, a message has the same number for all
    accounts. In any other chat, a message's number differs from account to account, so the id also contains the
    account.
    """
    return f"tg:{chat.chave}:{id}" if chat.tipo is TipoDeChat.CANAL else f"tg:{conta}:{chat.chave}:{id}"


def peer_de(chave: str, acesso: int | None = None) -> Peer:
    tipo, _, id = chave.partition(":")
    return Peer(TipoDeChat(tipo), int(id), acesso)


@dataclass(frozen=True, slots=True)
class EntityQueries:
    find: Query
    keep: Query
    forget: Query
    of_person: Query
    account_of_person: Query


class EntidadesConhecidas:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._queries = load_queries(EntityQueries, "sql/entidades.sql", database.dialect)

    async def find(self, conta: str, destino: str) -> Entidade | None:
        """Find a person or a chat by ``@username``, ``+telephone``, ``Peer.chave`` or a person's id."""
        username = destino[1:].casefold() if destino.startswith("@") else None
        telefone = telefone_de(destino) if destino.startswith("+") else None
        chave = f"{TipoDeChat.PESSOA.value}:{destino}" if destino.isdecimal() else destino
        row = await self._database.one(
            self._queries.find, conta_id=conta, chave=chave, username=username, telefone=telefone
        )
        return None if row is None else _entity(row)

    async def keep(self, conta: str, entidades: Sequence[Entidade]) -> None:
        if not entidades:
            return
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            for each in sorted(entidades, key=lambda entidade: entidade.peer.chave):
                await transaction.run(
                    self._queries.keep,
                    conta_id=conta,
                    chave=each.peer.chave,
                    quem=quem(each.peer),
                    acesso=each.peer.acesso,
                    nome=each.nome,
                    username=None if each.username is None else each.username.casefold(),
                    telefone=telefone_de(each.telefone or ""),
                    is_bot=each.is_bot,
                    now=now,
                )

    async def forget(self, conta: str, peer: Peer) -> None:
        async with self._database.transaction() as transaction:
            await transaction.run(self._queries.forget, conta_id=conta, chave=peer.chave)

    async def destino(self, reading: Reading, conta: str, telefone: str) -> str:
        """Return a Telegram address for a phone number: the address of the person with this number, or the number
        itself if the account does not know the person.
        """
        row = await reading.one(
            self._queries.of_person, conta_id=conta, telefone=telefone, other_form=other_form(telefone)
        )
        return f"+{telefone}" if row is None else str(row["chave"])

    async def conta_para(self, reading: Reading, telefone: str) -> str | None:
        """Return the account that writes to a person. It is the account with the most recent contact, or else the least
        busy one. Return None if no account is active.
        """
        forms = {"telefone": telefone, "other_form": other_form(telefone)}
        rows = await reading.all(self._queries.account_of_person, **forms)
        if not rows:
            return None
        best = max(rows, key=lambda row: (row["visto_em"] or NEVER, -row["na_fila"]))
        return str(best["id"])


def _entity(row: Row) -> Entidade:
    return Entidade(
        peer=peer_de(row["chave"], row["acesso"]),
        nome=row["nome"],
        username=row["username"],
        telefone=row["telefone"],
        is_bot=row["is_bot"],
    )
