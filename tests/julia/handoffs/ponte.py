"""Helpers that prepare hand-offs for tests. In the application of an ``Office`` they create a doctor, a vacancy from a
group, and the person who posted the vacancy.
"""

from datetime import timedelta
from typing import Any

from app.composition.julia import julia_of
from app.contexts.comum.telefone import Address
from app.contexts.handoffs.model import SWITCH
from app.contexts.handoffs.service import Handoffs
from app.contexts.webhooks.api import Recebida
from batuta.jobs import JobCall
from batuta.queue.outcome import Done
from tests.julia.envio.sending import MINUTE, Office
from tests.julia.plantoes.mesa import add_vaga
from tests.julia.tables import one, rows, write

HOUR = timedelta(hours=1)
POSTER = "5511900000088"


def handoffs(office: Office) -> Handoffs:
    return julia_of(office.work).handoffs.handoffs


async def group_vaga(office: Office, poster: str | None = POSTER, **values: Any) -> str:
    id = await add_vaga(office, **values)
    await write(
        office.work.database,
        "UPDATE vagas SET origem = 'grupo_whatsapp', contato_whatsapp = :poster, contato_nome = 'Rute' WHERE id = :id",
        poster=poster,
        id=id,
    )
    return id


async def turn_on(office: Office, on: bool = True) -> None:
    """Turn on the switch for hand-offs. Let the chips send without pauses, so that one run of the worker sends every
    due message.
    """
    await write(office.work.database, "UPDATE chips SET delay_minimo_segundos = 0")
    await office.work.switches.set(SWITCH.key, on, by="gestora", reason="teste", now=office.clock.now())


async def open_handoff(office: Office, doctor: str, **values: Any) -> str:
    """Turn on the switch for hand-offs, open a hand-off, and send its first message."""
    await turn_on(office)
    opened = await handoffs(office).abrir(await group_vaga(office, **values), doctor, por="gestora", motivo="pedido")
    await office.works()
    assert (await handoff(office, opened.id))["status"] == "contacted"
    return opened.id


async def handoff(office: Office, id: str) -> dict[str, Any]:
    return await one(office.work.database, "SELECT * FROM external_handoffs WHERE id = :id", id=id)


async def messages(office: Office, tipo: str) -> list[dict[str, Any]]:
    return await rows(
        office.work.database, "SELECT * FROM fila_mensagens WHERE tipo = :tipo ORDER BY created_at, id", tipo=tipo
    )


async def process(office: Office) -> dict[str, Any]:
    now = office.clock.now()
    call = JobCall(key="test", params={}, started_at=now, deadline=now + 5 * MINUTE)
    outcome = await julia_of(office.work).handoffs.jobs.processar_handoffs(call)
    assert isinstance(outcome, Done)
    assert isinstance(outcome.result, dict)
    return dict(outcome.result)


async def poster_writes(office: Office, texto: str, message_id: str = "p1", phone: str = POSTER) -> None:
    now = office.clock.now()
    fato = Recebida(
        message_id=message_id, instance="julia-sim", de=Address(f"{phone}@s.whatsapp.net", phone), nome=None,
        texto=texto, midia=None, em=now,
    )  # fmt: skip
    async with office.work.database.transaction() as transaction:
        await office.conversas.recebida(transaction, fato, now=now)


async def pending(office: Office) -> list[str]:
    return [each.motivo for each in await julia_of(office.work).messages.pendencias.listar(limite=10)]
