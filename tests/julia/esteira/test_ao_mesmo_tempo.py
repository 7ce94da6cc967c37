"""Messages arrive in a group while the pipeline is processing that group. The transaction that stores a message and a
transaction of the pipeline can wait for each other only on PostgreSQL, because SQLite has one writer.
"""

import asyncio
from typing import Any

import pytest

from app.contexts.comum.telefone import address
from app.contexts.grupos.fila import Estagio
from app.contexts.webhooks.api import DeGrupo
from batuta.stores.sql.database import Query
from batuta.testing import FakeClock
from tests.julia.grupos.bancada import AUTOR, GRUPO, Bancada, bancada, vaga

WAITING = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


class Pausing:
    """A transaction that posts a message and pauses after one of its statements until the test releases it."""

    def __init__(self, mesa: Bancada, after: str) -> None:
        self._mesa, self._after = mesa, after
        self._inner: Any = None
        self.stands, self.goes_on = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def run(self, query: Query, **values: object) -> int:
        touched: int = await self._inner.run(query, **values)
        if query.name == self._after:
            self.stands.set()
            await self.goes_on.wait()
        return touched

    async def say(self, id: str, texto: str) -> None:
        now = self._mesa.clock.now()
        fato = DeGrupo(
            message_id=id, instance="escuta", grupo=GRUPO, autor=address(AUTOR, None), nome="Pessoa Teste", texto=texto,
            midia=None, encaminhada=False, em=now,
        )  # fmt: skip
        async with self._mesa.work.database.transaction() as self._inner:
            await self._mesa.grupos.ingerir(self, fato, now=now)


async def waits_or_is_over(mesa: Bancada, work: "asyncio.Task[int]") -> None:
    async with asyncio.timeout(60):
        while not work.done() and (await mesa.one(WAITING))["n"] == 0:
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("after", "id", "said"),
    [("upsert_contact", "3EB0A", 1), ("upsert_contact", "3EB0B", 2), ("count_on_group", "3EB0B", 2)],
    ids=["the same again", "something else", "something else, counted on its group"],
)
async def test_receiving_and_reading_messages_never_deadlock(
    postgres_url: str, clock: FakeClock, after: str, id: str, said: int
) -> None:
    async with bancada(postgres_url, clock) as mesa:
        await mesa.dizem("Plantão\n" + vaga(), id="3EB0A")
        for stage in (Estagio.PENDENTE, Estagio.CLASSIFICACAO):
            await mesa.work.work_once(stage, 10)
        sender = Pausing(mesa, after)
        saying = asyncio.create_task(sender.say(id, "bom dia"))
        await asyncio.wait_for(sender.stands.wait(), 60)
        reading = asyncio.create_task(mesa.work.work_once(Estagio.EXTRACAO, 10))
        await waits_or_is_over(mesa, reading)
        sender.goes_on.set()
        await saying
        assert await reading == 1
        contact = await mesa.one("SELECT total_mensagens, total_vagas_postadas FROM contatos_grupo")
        assert contact == {"total_mensagens": said, "total_vagas_postadas": 1}
        assert len(await mesa.rows("SELECT id FROM vagas_grupo")) == 1
