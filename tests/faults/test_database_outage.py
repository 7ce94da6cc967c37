"""The database goes away and comes back: loops wait for it and go on, and nobody has to restart anything."""

import asyncio
from datetime import timedelta

from batuta import Batuta
from batuta.kernel.events import LoopFailed, LoopRecovered
from batuta.testing import EventRecorder
from tests.conftest import lack
from tests.servers import postgres_server

GRACE = timedelta(seconds=2)


async def test_loops_survive_a_database_that_is_stopped_and_started() -> None:
    with postgres_server() as server:
        if server is None:
            lack("PostgreSQL", "set BATUTA_PG_BIN to the folder that holds initdb")
        work = Batuta(server.url())
        events = EventRecorder()
        work.events.subscribe(events)
        reads = 0

        @work.loop(every=0.05, stuck_after=60)
        async def reads_a_switch() -> None:
            nonlocal reads
            await work.switches.read("pausa")
            reads += 1

        async with work:
            stop = asyncio.Event()
            running = asyncio.create_task(work.supervisor().run(stop, GRACE))
            await asyncio.sleep(0.3)
            assert reads > 1
            await asyncio.to_thread(server.stop)
            await events.wait_for(LoopFailed, lambda fact: fact.loop == "reads_a_switch")
            before = reads
            await asyncio.to_thread(server.start)
            recovered = await events.wait_for(LoopRecovered, lambda fact: fact.loop == "reads_a_switch")
            assert recovered.failures >= 1
            await asyncio.sleep(0.3)
            assert reads > before
            stop.set()
            await running
