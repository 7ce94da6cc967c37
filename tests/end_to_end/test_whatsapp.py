"""The round trip from a sent message to the doctor's answer. The client, the simulated WhatsApp, the webhook, the inbox
and the worker communicate over real sockets, with simulated faults.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from app.composition.envio import whatsapp
from app.composition.julia import julia_of
from app.contexts.comum.conteudo import hash_do_texto
from app.contexts.comum.whatsapp import Sent, Unknown
from app.integrations.evolution.client import SECRET_HEADER
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.config import load_settings
from batuta.engine.batuta import Batuta
from batuta.kernel.clock import Clock, SystemClock
from batuta.processes.address import listen
from batuta.web.api import serve
from simulador.comportamento import Comportamento
from simulador.evolution.gateway import DEFAULT_INSTANCE, KEY
from simulador.main import create_app as create_world
from simulador.main import keeper
from tests.julia.tables import add_chip, add_doctor, rows

SECRET = "segredo-de-teste"
QUICK = Comportamento(sent_after=0.05, delivered_after=0.1, read_after=0.15, read_share=1, reply_after=0.2)
GRACE = timedelta(seconds=2)


@asynccontextmanager
async def everything(
    tmp_path: Path, how: Comportamento, clock: Clock | None = None
) -> AsyncIterator[tuple[Batuta, Settings, str]]:
    own_time, clock, stop = clock, clock or SystemClock(), asyncio.Event()
    outside, inside = listen("127.0.0.1", 0), listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{outside.getsockname()[1]}"
    hook = f"http://127.0.0.1:{inside.getsockname()[1]}/webhook/evolution"
    settings = load_settings(
        Settings,
        {
            "DATABASE_URL": f"sqlite:///{tmp_path}/julia.db",
            "EVOLUTION_API_URL": f"{url}/evolution",
            "EVOLUTION_API_KEY": KEY,
            "WEBHOOK_SECRET": SECRET,
        },
    )
    world = create_world(
        clock, at_rest=how, webhook={"enabled": True, "url": hook, "headers": {SECRET_HEADER: SECRET}, "events": []}
    )
    work = build(settings, own_time).work
    async with work:
        tasks = [
            asyncio.create_task(each)
            for each in (
                serve(world, outside, stop, GRACE),
                keeper(world, clock).run(stop, GRACE),
                serve(create_app(julia_of(work)), inside, stop, GRACE),
                work.supervisor().run(stop, GRACE),
            )
        ]
        yield work, settings, url
        stop.set()
        await asyncio.gather(*tasks)


async def until(work: Batuta, question: str, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(120):
        while len(found := await rows(work.database, question)) < count:
            await SystemClock().sleep(0.05)
    return found


async def test_doctor_gets_a_message_and_opts_out_despite_doubled_and_late_webhooks(
    tmp_path: Path,
) -> None:
    how = Comportamento(**{**_fields(QUICK), "opt_out_share": 1, "duplicated": 0.5})
    async with everything(tmp_path, how) as (work, settings, _):
        await add_chip(work.database, DEFAULT_INSTANCE)
        phones = [f"55119000{n:05d}" for n in range(5)]
        for phone in phones:
            await add_doctor(work.database, phone)
        line = whatsapp(settings, work.clock)
        assert line is not None
        sent = [await line.send_text(DEFAULT_INSTANCE, phone, "Olá, teste") for phone in phones]
        await line.close()
        assert all(isinstance(each, Sent) for each in sent)
        read = await until(
            work, "SELECT provider_message_id AS id FROM provedor_mensagens WHERE delivery_status = 'read'", 5
        )
        assert {each["id"] for each in read} == {each.id for each in sent if isinstance(each, Sent)}
        await until(work, "SELECT cliente_id FROM doctor_state WHERE permission_state = 'opted_out'", 5)
        assert len(await rows(work.database, "SELECT id FROM business_events WHERE event_type = 'medico_optout'")) == 5
        assert len(await rows(work.database, "SELECT id FROM interacoes WHERE tipo = 'entrada'")) == 5


async def test_send_with_a_lost_answer_is_found_by_its_echo(tmp_path: Path) -> None:
    async with everything(tmp_path, Comportamento(**{**_fields(QUICK), "lost_answers": 1})) as (work, settings, url):
        line = whatsapp(settings, work.clock)
        assert line is not None
        since = work.clock.now() - timedelta(seconds=5)
        assert isinstance(await line.send_text(DEFAULT_INSTANCE, "5511900000001", "Olá, teste"), Unknown)
        await line.close()
        await until(work, "SELECT conteudo_hash FROM provedor_mensagens WHERE conteudo_hash IS NOT NULL", 1)
        conversas = julia_of(work).messages.conversas
        (echo,) = await conversas.ecos(work.database, "5511900000001", hash_do_texto("Olá, teste"), since=since)
        async with httpx2.AsyncClient(trust_env=False) as http:
            (receipt,) = (await http.get(f"{url}/controle/evolution/recibos")).json()
        assert (echo.provider_message_id, receipt["answer"]) == (receipt["id"], "cut")


def _fields(how: Comportamento) -> dict[str, Any]:
    return dict(how.shown())
