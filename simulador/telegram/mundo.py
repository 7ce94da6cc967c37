"""The state of the simulated Telegram: people, chats, sessions, messages, updates and configured faults.

For each call, a server such as ``simulador.telegram.api`` first asks ``plan`` which faults to apply, and then calls the
method of ``Mundo`` that implements the call. Every change is an event. With a ``journal``, each event is written to
that file before its answer, and a new process continues from it, so that a killed simulator loses no acknowledged
event. Errors have the names of the original (``FLOOD_WAIT_30``).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from math import ceil
from pathlib import Path
from typing import Any

from batuta.kernel import Clock, Json, dataclass, loads
from simulador.comportamento import Chance, ComportamentoTelegram

# The code that every person receives at login. Only a person with a password must also give the password.
LOGIN_CODE = "12345"
LONGEST_TEXT = 4096
MOST_AT_ONCE = 100
# A connection whose client has not asked for updates for this number of seconds is closed.
FORGOTTEN_AFTER = 120.0


class RpcError(Exception):
    """An error with the same code and name as in the real Telegram, for example 420 FLOOD_WAIT_30."""

    def __init__(self, code: int, name: str) -> None:
        super().__init__(name)
        self.code = code
        self.name = name


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of one call. If ``error`` is set, it is the answer, and the call is not executed."""

    hang: bool = False
    cut_before: bool = False
    cut_after: bool = False
    fail_after: bool = False
    slow_seconds: float = 0.0
    error: RpcError | None = None


@dataclass(slots=True)
class Pessoa:
    id: int
    nome: str
    username: str | None = None
    telefone: str | None = None
    senha: str | None = None
    is_blocked: bool = False  # whether the person accepts no message
    is_banned: bool = False


@dataclass(slots=True)
class Chat:
    """A group (``grupo``) or a supergroup (``canal``). A supergroup has its own message numbers."""

    tipo: str
    id: int
    titulo: str
    membros: list[int]
    username: str | None = None


@dataclass(slots=True)
class Mensagem:
    id: int
    chat: str  # "pessoa:7", "grupo:3" or "canal:4", from the point of view of the owner of the message box
    autor: int
    em: int
    texto: str
    is_own: bool = False
    random_id: int | None = None
    midia: dict[str, Json] | None = None
    resposta_a: int | None = None
    encaminhada: bool = False
    editada: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of a message that an account actually sent. Tests use it to check the sender."""

    n: int
    at: str
    conta: int
    chat: str
    id: int
    random_id: int
    texto: str
    midia: str | None


@dataclass(slots=True)
class Caixa:
    """The messages and the updates of one account at the server. The position of an update in the list is its number,
    ``pts``.
    """

    mensagens: dict[str, dict[int, Mensagem]] = field(default_factory=dict)
    last_id: int = 0
    updates: list[dict[str, Json]] = field(default_factory=list)
    random_ids: dict[int, tuple[str, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Conexao:
    """A connection of an account, with the pushed updates that its client has not fetched yet."""

    conta: int
    woken: Callable[[], None]
    polled: float
    pushed: list[dict[str, Json]] = field(default_factory=list)


class Mundo:
    def __init__(
        self,
        clock: Clock,
        *,
        seed: int = 0,
        at_rest: ComportamentoTelegram | None = None,
        journal: Path | None = None,
    ) -> None:
        self._clock = clock
        self.chance = Chance(seed)
        self._at_rest = at_rest or ComportamentoTelegram()
        self._behaviour = self._at_rest
        self._of_account: dict[int, Mapping[str, Json]] = {}
        self.pessoas: dict[int, Pessoa] = {}
        self.chats: dict[str, Chat] = {}
        self.sessoes: dict[str, int] = {}
        self.caixas: dict[int, Caixa] = {}
        self._channels: dict[str, dict[int, Mensagem]] = {}
        self.conexoes: dict[str, Conexao] = {}
        self.receipts: list[Receipt] = []
        self.calls: Counter[tuple[int, str]] = Counter()
        self.calls_during_flood = 0
        self._flooded: dict[tuple[int, str], float] = {}
        self._connected = 0
        self._journal = None
        if journal is not None:
            for line in journal.read_bytes().splitlines() if journal.exists() else ():
                self._apply(loads(line))
            journal.parent.mkdir(parents=True, exist_ok=True)
            self._journal = journal.open("ab", buffering=0)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    # Behaviour

    def behaviour(self, conta: int | None = None) -> ComportamentoTelegram:
        own = {} if conta is None else self._of_account.get(conta, {})
        return self._behaviour.changed(own) if own else self._behaviour

    def change(self, wanted: Mapping[str, Json], conta: int | None = None) -> ComportamentoTelegram:
        if "flood_wait" in wanted:  # a new flood begins, or the current one ends
            self._flooded = {key: until for key, until in self._flooded.items() if conta not in (None, key[0])}
        if conta is None:
            self._behaviour = self._behaviour.changed(wanted)
        else:
            self.behaviour(conta).changed(wanted)  # rejects an unknown setting
            self._of_account[conta] = {**self._of_account.get(conta, {}), **wanted}
        return self.behaviour(conta)

    def restore(self) -> None:
        self._behaviour = self._at_rest
        self._of_account.clear()
        self._flooded.clear()

    def plan(self, conta: int, metodo: str, *what: object) -> Plan:
        """Decide at random which faults affect one call. A repeated call gets a new decision, so it may turn out
        differently.
        """
        how, key = self.behaviour(conta), (conta, metodo)
        self.calls[key] += 1
        if self._clock.monotonic() < self._flooded.get(key, 0.0):
            self.calls_during_flood += 1
        n = self.calls[key]
        if how.hang:
            return Plan(hang=True)
        if how.down or self.chance.of("dropped", *key, *what, n) < how.dropped:
            return Plan(cut_before=True)
        if (error := self._limit(how, conta, metodo)) is not None:
            return Plan(error=error)
        may_lose = not how.lost_methods or metodo in how.lost_methods
        return Plan(
            cut_after=may_lose and self.chance.of("lost", *key, *what, n) < how.lost_answers,
            fail_after=self.chance.of("failed", *key, *what, n) < how.server_error,
            slow_seconds=how.slow_seconds,
        )

    def _limit(self, how: ComportamentoTelegram, conta: int, metodo: str) -> RpcError | None:
        if how.flood_wait and (not how.flood_methods or metodo in how.flood_methods):
            now = self._clock.monotonic()
            until = self._flooded.setdefault((conta, metodo), now + how.flood_wait)
            if now < until:
                return RpcError(420, f"FLOOD_WAIT_{ceil(round(until - now, 3))}")
        if metodo in SENDS and how.peer_flood:
            return RpcError(400, "PEER_FLOOD")
        if metodo in SENDS and how.slow_mode:
            return RpcError(420, f"SLOWMODE_WAIT_{how.slow_mode}")
        return None

    # People, chats and sessions

    def add_person(
        self, nome: str, *, username: str | None = None, telefone: str | None = None, senha: str | None = None
    ) -> int:
        id = 1000 + len(self.pessoas) + 1
        self._record(
            {"e": "pessoa", "id": id, "nome": nome, "username": username, "telefone": telefone, "senha": senha}
        )
        return id

    def add_chat(self, titulo: str, membros: Sequence[int], *, tipo: str = "grupo", username: str | None = None) -> str:
        id = 5000 + len(self.chats) + 1
        self._record(
            {"e": "chat", "tipo": tipo, "id": id, "titulo": titulo, "membros": list(membros), "username": username}
        )
        return f"{tipo}:{id}"

    def block(self, id: int, is_blocked: bool = True) -> None:
        self._record({"e": "bloqueio", "id": id, "valor": is_blocked})

    def open_session(self, conta: int) -> str:
        """Create a session and return its secret. A client imports this secret, or receives it when it logs in."""
        token = f"sim-{self.chance.bits(96, 'session', conta, len(self.sessoes)):024x}"
        self._record({"e": "sessao", "conta": conta, "token": token})
        return token

    def revoke(self, conta: int, *, banned: bool = False) -> None:
        """Revoke an account's sessions or, with ``banned``, ban the account. Both end all connections of the account."""
        self._record({"e": "revogada", "conta": conta, "banida": banned})
        for conexao in [each for each in self.conexoes.values() if each.conta == conta]:
            conexao.woken()

    def account(self, token: str) -> int:
        conta = self.sessoes.get(token)
        if conta is None:
            raise RpcError(401, "AUTH_KEY_UNREGISTERED")
        if self.pessoas[conta].is_banned:
            raise RpcError(401, "USER_DEACTIVATED_BAN")
        return conta

    def person_by_phone(self, telefone: str) -> Pessoa:
        for each in self.pessoas.values():
            if each.telefone is not None and each.telefone == telefone.lstrip("+"):
                return each
        raise RpcError(400, "PHONE_NUMBER_INVALID")

    def sign_in(self, telefone: str, code: str) -> Pessoa:
        """Check a login code, and return the person. If the person has a password, check it with ``check_password``."""
        pessoa = self.person_by_phone(telefone)
        if code != LOGIN_CODE:
            raise RpcError(400, "PHONE_CODE_INVALID")
        return pessoa

    def check_password(self, telefone: str, senha: str) -> Pessoa:
        pessoa = self.person_by_phone(telefone)
        if pessoa.senha != senha:
            raise RpcError(400, "PASSWORD_HASH_INVALID")
        return pessoa

    # Connections and updates

    def connect(self, conta: int, woken: Callable[[], None] = lambda: None) -> str:
        now = self._clock.monotonic()
        for name in [name for name, each in self.conexoes.items() if each.polled < now - FORGOTTEN_AFTER]:
            del self.conexoes[name]
        self._connected += 1
        name = f"c{self._connected}-{self.chance.bits(32, now, self._connected):08x}"
        self.conexoes[name] = Conexao(conta, woken, now)
        return name

    def disconnect(self, name: str) -> None:
        self.conexoes.pop(name, None)

    def connection(self, name: str) -> Conexao:
        found = self.conexoes.get(name)
        if found is None:
            raise RpcError(400, "CONNECTION_NOT_INITED")
        found.polled = self._clock.monotonic()
        return found

    def pts(self, conta: int) -> int:
        return len(self._box(conta).updates)

    def difference(self, conta: int, pts: int, most: int = MOST_AT_ONCE) -> list[dict[str, Json]]:
        """Return at most ``most`` updates of an account after the position ``pts``, oldest first."""
        return self._box(conta).updates[pts : pts + most]

    # Requests of an account

    def hash_for(self, conta: int, chave: str) -> int:
        """Return the access hash with which an account addresses a person or a chat. It differs for each account."""
        return self.chance.bits(62, "access", conta, chave)

    def entity(self, conta: int, chave: str) -> dict[str, Json]:
        tipo, _, id = chave.partition(":")
        pessoa = self.pessoas[int(id)] if tipo == "pessoa" else None
        found = self.chats[chave] if pessoa is None else pessoa
        return {
            "tipo": tipo,
            "id": found.id,
            "acesso": self.hash_for(conta, chave),
            "nome": found.titulo if isinstance(found, Chat) else found.nome,
            "username": found.username,
            "telefone": None if pessoa is None else pessoa.telefone,
        }

    def resolve(self, conta: int, destino: str) -> dict[str, Json]:
        if destino.startswith("@"):
            names = {each.username: f"pessoa:{each.id}" for each in self.pessoas.values()}
            names |= {each.username: chave for chave, each in self.chats.items()}
            if (chave := names.get(destino[1:])) is None:
                raise RpcError(400, "USERNAME_NOT_OCCUPIED")
        elif destino.startswith("+"):
            chave = f"pessoa:{self.person_by_phone(destino).id}"
        else:
            raise RpcError(400, "PEER_ID_INVALID")
        return self.entity(conta, chave)

    def send(
        self,
        conta: int,
        chave: str,
        acesso: int | None,
        texto: str,
        *,
        random_id: int,
        midia: Mapping[str, Json] | None = None,
        resposta_a: int | None = None,
        encaminhada: bool = False,
    ) -> Mensagem:
        self.check_peer(conta, chave, acesso)
        if not texto and midia is None:
            raise RpcError(400, "MESSAGE_EMPTY")
        if len(texto) > LONGEST_TEXT:
            raise RpcError(400, "MESSAGE_TOO_LONG")
        how, box = self.behaviour(conta), self._box(conta)
        first = None if how.forgets_random_ids else box.random_ids.get(random_id)
        if first is not None:
            if how.duplicate_error:
                raise RpcError(500, "RANDOM_ID_DUPLICATE")
            return self.message(conta, *first)
        tipo, _, id = chave.partition(":")
        if tipo == "pessoa" and self.pessoas[int(id)].is_blocked:
            raise RpcError(400, "USER_IS_BLOCKED")
        if tipo != "pessoa" and conta not in self.chats[chave].membros:
            raise RpcError(403, "CHAT_WRITE_FORBIDDEN")
        sent = self._write(
            chave,
            conta,
            texto,
            random_id=random_id,
            midia=None if midia is None else dict(midia),
            resposta_a=resposta_a,
            encaminhada=encaminhada,
        )
        if tipo == "pessoa" and self.chance.of("reply", random_id) < how.reply_share:
            self.says(int(id), conta, "Pode sim, obrigado")
        return self.message(conta, chave, sent)

    def forward(self, conta: int, origem: str, id: int, chave: str, acesso: int | None, *, random_id: int) -> Mensagem:
        found = self.message(conta, origem, id)
        return self.send(conta, chave, acesso, found.texto, random_id=random_id, midia=found.midia, encaminhada=True)

    def edit(self, conta: int, chave: str, acesso: int | None, id: int, texto: str) -> Mensagem:
        self.check_peer(conta, chave, acesso)
        found = self.message(conta, chave, id)
        if not found.is_own:
            raise RpcError(403, "MESSAGE_AUTHOR_REQUIRED")
        if found.texto == texto:
            raise RpcError(400, "MESSAGE_NOT_MODIFIED")
        self._record({"e": "editada", "conta": conta, "chat": chave, "id": id, "texto": texto, "em": self._now()})
        return self.message(conta, chave, id)

    def delete(self, conta: int, chave: str, acesso: int | None, ids: Sequence[int]) -> None:
        self.check_peer(conta, chave, acesso)
        self._record({"e": "apagadas", "conta": conta, "chat": chave, "ids": list(ids)})

    def mark_read(self, conta: int, chave: str, acesso: int | None, ate: int) -> None:
        self.check_peer(conta, chave, acesso)

    def history(self, conta: int, chave: str, acesso: int | None, *, after: int, most: int) -> list[Mensagem]:
        """Return the messages of a chat with an id above ``after``, oldest first."""
        self.check_peer(conta, chave, acesso)
        box = self._messages(conta, chave)
        return [box[id] for id in sorted(box) if id > after][: min(most, MOST_AT_ONCE)]

    def latest(
        self, conta: int, chave: str, acesso: int | None, *, before: int = 0, most: int = MOST_AT_ONCE
    ) -> list[Mensagem]:
        """Return the newest messages of a chat, newest first; if ``before`` is not 0, only those with a smaller id."""
        self.check_peer(conta, chave, acesso)
        box = self._messages(conta, chave)
        return [box[id] for id in sorted(box, reverse=True) if not before or id < before][: min(most, MOST_AT_ONCE)]

    def message(self, conta: int, chave: str, id: int) -> Mensagem:
        found = self._messages(conta, chave).get(id)
        if found is None:
            raise RpcError(400, "MESSAGE_ID_INVALID")
        return found

    def check_peer(self, conta: int, chave: str, acesso: int | None) -> None:
        tipo, _, id = chave.partition(":")
        known = int(id) in self.pessoas if tipo == "pessoa" else chave in self.chats
        if not known or (tipo != "grupo" and acesso != self.hash_for(conta, chave)):
            raise RpcError(400, "PEER_ID_INVALID")

    # Actions of people

    def says(self, autor: int, conta: int, texto: str, *, midia: Mapping[str, Json] | None = None) -> int:
        """Send an account a message from a person. Return the id of the message in the account's message box."""
        chave = f"pessoa:{autor}"
        self._write(f"pessoa:{conta}", autor, texto, midia=None if midia is None else dict(midia))
        return max(self._messages(conta, chave))

    def says_in_chat(self, autor: int, chave: str, texto: str) -> None:
        self._write(chave, autor, texto)

    def reads(self, pessoa: int, conta: int) -> None:
        """Record that a person has read all the messages that they received from the account."""
        own = [id for id, each in self._messages(conta, f"pessoa:{pessoa}").items() if each.is_own]
        if own:
            self._record({"e": "lida", "conta": conta, "chat": f"pessoa:{pessoa}", "ate": max(own)})

    # Events

    def _write(
        self,
        chave: str,
        autor: int,
        texto: str,
        *,
        random_id: int | None = None,
        midia: dict[str, Json] | None = None,
        resposta_a: int | None = None,
        encaminhada: bool = False,
    ) -> int:
        event: dict[str, Json] = {
            "e": "mensagem",
            "chat": chave,
            "autor": autor,
            "em": self._now(),
            "texto": texto,
            "random_id": random_id,
            "midia": midia,
            "resposta_a": resposta_a,
            "encaminhada": encaminhada,
            "at": self._clock.now().isoformat(),
        }
        self._record(event)
        # The author of the event sees the message in this chat.
        return max(self._messages(autor, chave), default=0)

    def _record(self, event: dict[str, Json]) -> None:
        if self._journal is not None:
            self._journal.write(json.dumps(event).encode() + b"\n")
        self._apply(event)

    def _apply(self, event: Any) -> None:
        match event["e"]:
            case "pessoa":
                fields = {name: event[name] for name in ("id", "nome", "username", "telefone", "senha")}
                self.pessoas[event["id"]] = Pessoa(**fields)
            case "chat":
                chave = f"{event['tipo']}:{event['id']}"
                self.chats[chave] = Chat(**{name: value for name, value in event.items() if name != "e"})
            case "bloqueio":
                self.pessoas[event["id"]].is_blocked = event["valor"]
            case "sessao":
                self.sessoes[event["token"]] = event["conta"]
                self._box(event["conta"])
            case "revogada":
                # A closed account keeps its sessions, so that its calls learn that the account is closed.
                if not event["banida"]:
                    self.sessoes = {token: conta for token, conta in self.sessoes.items() if conta != event["conta"]}
                self.pessoas[event["conta"]].is_banned = event["banida"]
            case "mensagem":
                self._apply_message(event)
            case "editada":
                for conta, chave, id in list(self._copies(event["conta"], event["chat"], event["id"])):
                    found = self._messages(conta, chave)[id]
                    found.texto, found.editada = event["texto"], event["em"]
                    self._push(conta, {"tipo": "editada", "mensagem": self.shown(conta, found)})
            case "apagadas":
                for n in event["ids"]:
                    for conta, chave, id in list(self._copies(event["conta"], event["chat"], n)):
                        self._messages(conta, chave).pop(id, None)
                        self._push(conta, {"tipo": "apagadas", "chat": chave, "ids": [id]})
            case "lida":
                self._push(event["conta"], {"tipo": "lida", "chat": event["chat"], "ate": event["ate"]})

    def _apply_message(self, event: Any) -> None:
        chave, autor = event["chat"], event["autor"]
        tipo, _, id = chave.partition(":")
        if tipo == "canal":
            number = max(self._messages(autor, chave), default=0) + 1
        readers = {autor, int(id)} if tipo == "pessoa" else set(self.chats[chave].membros)
        for reader in sorted(readers):
            if reader not in self.caixas and reader != autor:
                continue  # not an account: its box is not simulated
            box = self._box(reader)
            seen = chave if tipo != "pessoa" or reader == autor else f"pessoa:{autor}"
            if tipo != "canal":
                box.last_id += 1
                number = box.last_id
            is_own = reader == autor
            mensagem = Mensagem(
                id=number,
                chat=seen,
                autor=autor,
                em=event["em"],
                texto=event["texto"],
                is_own=is_own,
                random_id=event["random_id"] if is_own else None,
                midia=event["midia"],
                resposta_a=event["resposta_a"],
                encaminhada=event["encaminhada"],
            )
            if tipo != "canal" or is_own:
                box.mensagens.setdefault(seen, {})[number] = mensagem
            if tipo == "canal":
                self._channel(seen)[number] = replace(mensagem, is_own=False, random_id=None)
            if is_own and event["random_id"] is not None:
                box.random_ids.setdefault(event["random_id"], (seen, number))
                midia = None if event["midia"] is None else str(event["midia"]["nome"])
                n = len(self.receipts) + 1
                self.receipts.append(
                    Receipt(n, event["at"], autor, seen, number, event["random_id"], event["texto"], midia)
                )
            self._push(reader, {"tipo": "mensagem", "mensagem": self.shown(reader, mensagem)})

    def _push(self, conta: int, update: dict[str, Json]) -> None:
        if conta not in self.caixas:
            return
        updates = self._box(conta).updates
        updates.append({**update, "pts": len(updates) + 1})
        how, n = self.behaviour(conta), len(updates)
        if how.silent or self.chance.of("skipped", conta, n) < how.skipped_updates:
            return
        times = 2 if self.chance.of("repeated", conta, n) < how.repeated_updates else 1
        for each in [each for each in self.conexoes.values() if each.conta == conta]:
            each.pushed += [updates[-1]] * times
            each.woken()

    def shown(self, conta: int, mensagem: Mensagem) -> dict[str, Json]:
        """Return a message together with its chat and its author, as the account sees them."""
        return {
            **asdict(mensagem),
            "chat": self.entity(conta, mensagem.chat),
            "autor": self.entity(conta, f"pessoa:{mensagem.autor}"),
        }

    def _copies(self, conta: int, chave: str, id: int) -> Iterator[tuple[int, str, int]]:
        """Yield one tuple for each copy of a message: the account that has the copy, the account's key for the chat,
        and the account's id for the message.
        """
        mine = self._messages(conta, chave).get(id)
        if mine is None:
            return
        yield conta, chave, id
        tipo, _, other = chave.partition(":")
        if tipo == "pessoa" and int(other) in self.caixas and int(other) != conta:
            name = f"pessoa:{conta}"
            for each in list(self._messages(int(other), name).values()):
                if (each.em, each.texto, each.autor) == (mine.em, mine.texto, mine.autor):
                    yield int(other), name, each.id

    def _messages(self, conta: int, chave: str) -> dict[int, Mensagem]:
        own = self._box(conta).mensagens.get(chave, {})
        return self._channel(chave) | own if chave.startswith("canal:") else own

    def _channel(self, chave: str) -> dict[int, Mensagem]:
        return self._channels.setdefault(chave, {})

    def _box(self, conta: int) -> Caixa:
        return self.caixas.setdefault(conta, Caixa())

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


SENDS = frozenset({"send_text", "send_file", "forward"})


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
