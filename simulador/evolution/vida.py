"""Simulate the people behind the gateway: messages are delivered and read, people reply, groups talk, connections
break. All people are fictitious.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Literal

from batuta import Idle
from batuta.kernel import Clock, Json, dataclass
from batuta.loops import Pace, Wakeup
from simulador.comportamento import Chance, Comportamento
from simulador.evolution.carteiro import Carteiro
from simulador.evolution.falas import fala
from simulador.evolution.jid import HIDDEN, PERSON, jid_of
from simulador.evolution.respostas import Reply, reply_to
from simulador.evolution.rows import Instance
from simulador.recebidos import KEPT

RECEIPTS_KEPT = 200_000
OWN_NAME = "Você"
# A connection closed with one of these codes stays closed: logged out, temporarily banned, forbidden, banned.
FINAL_CODES = frozenset({401, 402, 403, 406})
REPLIES = (
    "[SIMULADO] Tenho interesse, pode explicar?",
    "[SIMULADO] Quanto paga?",
    "[SIMULADO] Hoje não consigo.",
    "[SIMULADO] Bom dia!",
)
OPT_OUTS = ("PARAR", "Não quero mais receber mensagens", "me tira da lista por favor")
GROUPS = tuple(f"12036300000000000{n}@g.us" for n in range(1, 4))
TOWNS = ("Salvador", "Recife", "Santos")
GROUP_NAMES = {jid: f"[SIMULADO] Plantões {town}" for jid, town in zip(GROUPS, TOWNS, strict=True)}
Answer = Literal["answered", "cut", "500"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A message that was actually sent. ``answer`` is the response that its sender received."""

    n: int
    at: str
    id: str
    instance: str
    number: str
    jid: str
    text: str
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A send that was rejected or failed."""

    at: str
    instance: str
    status: int


class Vida:
    def __init__(self, clock: Clock, chance: Chance, carteiro: Carteiro, how: Callable[[], Comportamento]) -> None:
        self.receipts: deque[Receipt] = deque(maxlen=RECEIPTS_KEPT)
        self.refusals: deque[Refusal] = deque(maxlen=KEPT)
        self._clock = clock
        self._chance = chance
        self._carteiro = carteiro
        self._how = how
        self._counts: Counter[str] = Counter()

    def left(self, instance: Instance, number: str, message: Mapping[str, Json], answer: Answer) -> None:
        """Record a message as sent. The response to its sender may claim otherwise."""
        instance.messages.append(message)
        id, jid = key_of(message)
        text = str(_mapping(message["message"]).get("conversation", ""))
        self.receipts.append(
            Receipt(
                n=self._next("receipts"),
                at=self._clock.now().isoformat(),
                id=id,
                instance=instance.name,
                number=number,
                jid=jid,
                text=text,
                answer=answer,
            )
        )
        self._carteiro.tell(instance, "send.message", message)
        self._happens_to(instance, message)

    def refused(self, instance: str, status: int) -> None:
        self.refusals.append(Refusal(at=self._clock.now().isoformat(), instance=instance, status=status))

    def writes(self, instance: Instance, number: str, text: str, *, hidden: bool = False) -> str:
        """Deliver a message from a simulated person to one of our numbers, and return the id of the message."""
        jid = hidden_jid(number) if hidden else jid_of(number)
        message = self._message(instance, jid, text, name="Pessoa Simulada")
        instance.messages.append(message)
        self._carteiro.tell(instance, "messages.upsert", message)
        return key_of(message)[0]

    def group_talks(self, instance: Instance, text: str | None = None, group: str = GROUPS[0]) -> str:
        """Deliver a group message from a simulated member, and return the id of the message."""
        n = self._next("group")
        hidden = self._chance.of("hidden author", n) < self._how().hidden_share
        number = f"55119000{self._chance.bits(16, 'author', n) % 100:05d}"
        author = hidden_jid(number) if hidden else number + PERSON
        said = text if text is not None else fala(self._chance, n)
        message = self._message(instance, group, said, name="Pessoa Simulada - Empresa Fictícia", participant=author)
        self._carteiro.tell(instance, "messages.upsert", message)
        return key_of(message)[0]

    def connection(
        self, instance: Instance, state: Literal["open", "connecting", "close"], code: int | None = None
    ) -> None:
        """Change the connection state. A temporary close posts no event of its own; the next event is the one for the
        reconnection.
        """
        instance.state = state
        if state == "close":
            instance.code, instance.cut_off_at = code, self._clock.now()
        is_final = code in FINAL_CODES
        if state != "close" or is_final:
            data: dict[str, Json] = {"instance": instance.name, "state": state, "statusReason": code or 200}
            if state == "open" and instance.number:
                data["wuid"] = jid_of(instance.number)
            self._carteiro.tell(instance, "connection.update", data)
        if state == "close" and is_final:
            at = self._clock.now().isoformat()
            closed: dict[str, Json] = {
                "instance": instance.name,
                "status": "closed",
                "disconnectionAt": at,
                "disconnectionReasonCode": code,
                "disconnectionObject": None,
            }
            self._carteiro.tell(instance, "status.instance", closed)

    def flap(self, instance: Instance, times: int, every: float) -> None:
        """Alternate an instance's connection between connecting and open, and leave it open."""
        for n in range(times):
            self._carteiro.later(2 * n * every, lambda: self.connection(instance, "connecting"))
            self._carteiro.later((2 * n + 1) * every, lambda: self.connection(instance, "open"))

    def new_id(self, instance: Instance, jid: str) -> str:
        """Return the id of the next message between an instance and a person. The id depends only on the seed, the two
        parties and the number of messages between them so far.
        """
        whose = f"{instance.name} {jid}"
        return f"3EB0{self._chance.bits(64, 'id', whose, self._next(whose)):016X}"

    def _happens_to(self, instance: Instance, message: Mapping[str, Json]) -> None:
        how, (id, jid) = self._how(), key_of(message)
        steps = [(how.sent_after, "SERVER_ACK"), (how.delivered_after, "DELIVERY_ACK")]
        if self._chance.of("read", id) < how.read_share:
            steps.append((how.read_after, "READ"))
        for seconds, word in steps:
            self._carteiro.later(seconds, lambda word=word: self._gets(instance, message, word))  # type: ignore[misc]
        hidden = self._chance.of("hidden", id) < how.hidden_share
        number, text = jid.partition("@")[0], str(_mapping(message["message"]).get("conversation", ""))
        if jid.endswith(PERSON) and (reply := self._reply(id, text)) is not None:
            self._carteiro.later(reply.after, lambda: self._answers(instance, number, reply.text, hidden))

    def _reply(self, id: str, text: str) -> Reply | None:
        how, lot = self._how(), self._chance.of("reply", id)
        if how.conversation:
            return reply_to(text, self._chance, id)
        if lot >= how.opt_out_share + how.reply_share:
            return None
        words = OPT_OUTS if lot < how.opt_out_share else REPLIES
        return Reply(words[self._chance.bits(8, "words", id) % len(words)], how.reply_after)

    def _gets(self, instance: Instance, message: Mapping[str, Json], word: str) -> None:
        id, jid = key_of(message)
        instance.updates.setdefault(id, []).append(word)
        if len(instance.updates) > KEPT:
            del instance.updates[next(iter(instance.updates))]
        data: Mapping[str, Json] = {
            "keyId": id,
            "remoteJid": jid,
            "fromMe": True,
            "status": word,
            "instanceId": instance.id,
            "messageId": id,
        }
        self._carteiro.tell(instance, "messages.update", data)

    def _answers(self, instance: Instance, number: str, text: str, hidden: bool) -> None:
        self.writes(instance, number, text, hidden=hidden)

    def _message(
        self, instance: Instance, jid: str, text: str, *, name: str, participant: str | None = None
    ) -> Mapping[str, Json]:
        key: dict[str, Json] = {"remoteJid": jid, "fromMe": False, "id": self.new_id(instance, jid)}
        if participant is not None:
            key["participant"] = participant
        return {
            "key": key,
            "pushName": name,
            "status": "DELIVERY_ACK",
            "message": {"conversation": text},
            "messageType": "conversation",
            "messageTimestamp": int(self._clock.now().timestamp()),
            "instanceId": instance.id,
            "source": "android",
        }

    def _next(self, what: str) -> int:
        self._counts[what] += 1
        return self._counts[what]


class Falatorio:
    """Loop that posts group messages at the configured rate. They arrive through the second connected instance. If only
    one instance is connected, they arrive through that instance.
    """

    name = "falatorio"

    def __init__(
        self, vida: Vida, clock: Clock, how: Callable[[], Comportamento], instances: Callable[[], list[Instance]]
    ) -> None:
        self.wakeup = Wakeup()
        self._vida = vida
        self._clock = clock
        self._how = how
        self._instances = instances
        self._said = 0

    async def tick(self) -> Pace:
        rate = self._how().group_messages_per_minute
        connected = [each for each in self._instances() if each.state == "open"]
        if rate <= 0 or not connected:
            return Idle()
        self._said += 1
        self._vida.group_talks(connected[:2][-1], group=GROUPS[self._said % len(GROUPS)])
        return Idle(self._clock.now() + timedelta(seconds=60 / rate))


def hidden_jid(number: str) -> str:
    """Return the address that hides a number. The same person always has the same address."""
    return f"{999_000_000_000_000 + int(number[-9:] or 0)}{HIDDEN}"


def key_of(message: Mapping[str, Json]) -> tuple[str, str]:
    key = _mapping(message["key"])
    return str(key["id"]), str(key["remoteJid"])


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
