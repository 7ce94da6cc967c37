"""A worker process for the groups pipeline. At random, a stage fails, raises an exception or kills the process."""

import asyncio
import os
import random
import sys

from app.contexts.grupos.fila import Estagio
from batuta.queue.item import Lease
from batuta.queue.outcome import Failed, StageOutcome
from batuta.testing.clock import FastClock
from tests.julia.grupos.bancada import Around, Handler, bancada

FAILS, RAISES, DIES = 0.04, 0.03, 0.0005


def unlucky(chance: random.Random, dies: float = 0.0) -> Around:
    """At random, make a stage fail before or after its work, raise an exception or kill its process."""

    async def around(handler: Handler, lease: Lease) -> StageOutcome:
        lot = chance.random()
        if lot < dies:
            os._exit(9)
        if lot < dies + FAILS:
            return Failed("by chance")
        if lot < dies + FAILS + RAISES:
            raise RuntimeError("by chance")
        outcome = await handler(lease)
        return Failed("by chance, afterwards") if chance.random() < FAILS else outcome

    return around


async def run(url: str, clock: str, seed: int) -> None:
    around = unlucky(random.Random(seed), DIES)
    async with bancada(url, FastClock.from_text(clock), around=around) as mesa:
        print("up", flush=True)
        while True:
            worked = sum([await mesa.work.work_once(stage, 100) for stage in Estagio])
            await mesa.work.queues[Estagio.PENDENTE].rescue(500)
            await asyncio.sleep(0.0 if worked else 0.05)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], int(sys.argv[3])))
