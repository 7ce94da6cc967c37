"""Jobs also process stored deliveries, so that an installation without a worker, with only an api and a scheduler,
loses none. The tests run on both databases.
"""

from datetime import timedelta

import pytest

from app.composition.julia import READ_INBOX_FIRST, Julia
from app.contexts.webhooks.api import EntregaDoWebhook
from app.main import build
from app.settings import Settings
from batuta.kernel import Json
from batuta.queue.outcome import Done
from batuta.receive.endpoints import JobCall
from batuta.testing import FakeClock
from tests.julia.tables import PHONE, add_chip, add_doctor, one, rows


async def deliver(julia: Julia, text: str, chave: str = "1") -> None:
    payload: dict[str, Json] = {
        "event": "messages.upsert",
        "instance": "julia-sim",
        "data": {
            "key": {"id": f"3EB0{chave}", "remoteJid": f"{PHONE}@s.whatsapp.net", "fromMe": False},
            "pushName": "Pessoa Teste",
            "message": {"conversation": text},
            "messageType": "conversation",
            "messageTimestamp": int(julia.work.clock.now().timestamp()),
        },
    }
    kept = EntregaDoWebhook(
        canal="evolution", chave=chave, instance="julia-sim", evento="messages.upsert", payload=payload
    )
    assert await julia.inbox.keep(kept)


@pytest.mark.parametrize("name", READ_INBOX_FIRST)
async def test_job_reads_stored_deliveries_first(name: str, database_url: str, clock: FakeClock) -> None:
    julia = build(Settings(database_url=database_url), clock=clock)
    async with julia.work:
        await add_chip(julia.work.database, "julia-sim")
        await add_doctor(julia.work.database)
        await deliver(julia, "PARAR")
        endpoint = julia.work.endpoints.find(name)
        assert endpoint is not None
        now = clock.now()
        call = JobCall(key="test", params={}, started_at=now, deadline=now + timedelta(minutes=5))
        answer = await endpoint.handler(call)
        assert isinstance(answer, Done)
        assert isinstance(answer.result, dict)
        assert answer.result["webhooks"] == 1
        assert [row["status"] for row in await rows(julia.work.database, "SELECT status FROM webhook_inbox")] == [
            "processada"
        ]
        assert (await one(julia.work.database, "SELECT opted_out FROM clientes"))["opted_out"]
