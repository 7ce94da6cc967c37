"""A test fixture with Julia's services for sending and a gateway that gives scripted answers."""

from datetime import UTC, datetime, timedelta
from typing import Any

from app.composition.julia import julia_of
from app.contexts.comum.telefone import Address
from app.contexts.comum.whatsapp import Entrega
from app.contexts.envio.envios_em_duvida import Reconciliador
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.webhooks.api import Eco
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import NewItem
from batuta.queue.worker.worker import Worker, WorkerPolicy
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle
from tests.julia.line import Receipt, ScriptedLine
from tests.julia.tables import one, sending_through, write

# A Wednesday, eleven o'clock in São Paulo.
OPEN = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PHONE = "5511900000001"
LIMITS = {"rate_limit_per_hour": 1000, "rate_limit_per_day": 1000, "rate_limit_per_doctor_hour": 100}
TRUSTED = (
    "UPDATE chips SET trust_score = 90, pode_prospectar = TRUE, pode_followup = TRUE, pode_responder = TRUE,"
    " limite_hora = 100, limite_dia = 100, delay_minimo_segundos = 1"
)


class Office:
    """Julia's services for sending, connected to a gateway that gives scripted answers."""

    def __init__(self, work: Batuta, clock: FakeClock, line: ScriptedLine, settings: Settings) -> None:
        self.work, self.clock, self.line, self.settings = work, clock, line, settings
        made = sending_through(work, settings, line)
        self.conversas = julia_of(work).messages.conversas
        self.events = EventRecorder()
        work.events.subscribe(self.events)
        handler = made.remetente.handler()
        lease_holder = LeaseHolder(owner="office", lease=timedelta(minutes=5))
        self.store = work.queues[FILA_MENSAGENS.name]
        self.worker = Worker(
            FILA_MENSAGENS.name,
            self.store,
            lambda _: handler,
            lease_holder,
            WorkerPolicy(limit=4),
            clock,
            EventRecorder(),
        )
        self.remetente, self.registro = made.remetente, made.registro
        self.reconciler: Reconciliador = made.reconciliador

    async def put(self, doctor: str, texto: str = "Bom dia", **values: Any) -> str:
        known = {"cliente_id": doctor, "telefone_destino": PHONE, "conteudo": texto, "tipo": "followup", **values}
        known.setdefault("devida_em", self.clock.now())
        options = {name: known.pop(name) for name in ("key", "priority", "available_at") if name in known}
        (id,) = await self.store.put([NewItem(values=known, **options)])
        assert id is not None
        return id

    async def works(self) -> None:
        await self.worker.once(100)
        await settle()

    async def echo(self, receipt: Receipt) -> None:
        """Deliver the event by which the gateway reports a message that it has sent."""
        fato = Eco(
            instance=receipt.instance,
            message_id=receipt.id,
            para=Address(f"{receipt.telefone}@s.whatsapp.net", receipt.telefone),
            em=receipt.em,
            texto=receipt.texto,
            entrega=Entrega.SENT,
        )
        async with self.work.database.transaction() as transaction:
            await self.conversas.eco(transaction, fato, now=self.clock.now())

    async def message(self, id: str) -> dict[str, Any]:
        return await one(self.work.database, "SELECT * FROM fila_mensagens WHERE id = :id", id=id)

    async def later(self, by: timedelta) -> None:
        await self.clock.advance(by)


async def doctor_writes(office: Office, doctor: str, message_id: str) -> None:
    now = office.clock.now()
    await write(
        office.work.database,
        "INSERT INTO interacoes (cliente_id, tipo, autor_tipo, conteudo, provider_message_id, created_at)"
        " VALUES (:doctor, 'entrada', 'medico', '-', :id, :now)",
        doctor=doctor,
        id=message_id,
        now=now,
    )
    await write(
        office.work.database,
        "INSERT INTO doctor_state (cliente_id, last_inbound_at, updated_at) VALUES (:doctor, :now, :now)",
        doctor=doctor,
        now=now,
    )
