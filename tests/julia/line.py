"""A WhatsApp gateway with scripted answers, which keeps its own receipts."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.contexts.comum.conteudo import hash_do_texto
from app.contexts.comum.whatsapp import (
    Encontrada,
    Entrega,
    EstadoDaConexao,
    Instancia,
    Numero,
    SendResult,
    Sent,
    Unavailable,
)
from batuta.kernel.clock import Clock


@dataclass(frozen=True, slots=True)
class Receipt:
    id: str
    instance: str
    telefone: str
    texto: str
    em: datetime


@dataclass
class ScriptedLine:
    """A gateway for tests. Each entry in ``answers`` is used once, in order: the answer, and whether the message is
    sent despite that answer. After the last entry every send succeeds.
    """

    clock: Clock
    answers: list[tuple[SendResult, bool]] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    state: EstadoDaConexao | Unavailable = EstadoDaConexao.OPEN  # state of every instance that ``states`` does not name
    states: dict[str, EstadoDaConexao | Unavailable] = field(default_factory=dict)
    listed: Sequence[Instancia] | Unavailable = ()
    known: Sequence[Numero] | Unavailable = ()
    looked_up: list[tuple[str, list[str]]] = field(default_factory=list)
    before_answering: Callable[[], Awaitable[None]] | None = None
    remembers: bool = True  # whether its own store can be queried
    before_sending: Callable[[], Awaitable[None]] | None = None

    async def send_text(self, instance: str, telefone: str, texto: str) -> SendResult:
        if self.before_sending is not None:
            await self.before_sending()
        answer, leaves = self.answers.pop(0) if self.answers else (None, True)
        id = f"3EB0{len(self.receipts):08d}"
        if leaves:
            self.receipts.append(Receipt(id, instance, telefone, texto, self.clock.now()))
        return Sent(id, f"{telefone}@s.whatsapp.net") if answer is None else answer

    async def connection(self, instance: str) -> EstadoDaConexao | Unavailable:
        return self.states.get(instance, self.state)

    async def instances(self) -> Sequence[Instancia] | Unavailable:
        if self.before_answering is not None:
            await self.before_answering()
        return self.listed

    async def numbers(self, instance: str, telefones: Sequence[str]) -> Sequence[Numero] | Unavailable:
        self.looked_up.append((instance, list(telefones)))
        if self.before_answering is not None:
            await self.before_answering()
        return self.known

    async def list_sent(self, instance: str, telefone: str, *, since: datetime) -> Sequence[Encontrada] | Unavailable:
        if not self.remembers:
            return Unavailable("its store is away")
        return [
            Encontrada(
                id=each.id,
                jid=f"{telefone}@s.whatsapp.net",
                em=each.em.replace(microsecond=0),  # the gateway stores whole seconds
                conteudo_hash=hash_do_texto(each.texto),
                entrega=Entrega.SENT,
            )
            for each in self.receipts
            if each.instance == instance and each.telefone == telefone and each.em.replace(microsecond=0) >= since
        ]
