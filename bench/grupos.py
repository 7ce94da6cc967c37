"""Measure how many group messages per second pass through all stages, using one SQLite file and only the rules:
``python -m bench.grupos``.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta

from app.composition.catalogue import migrations
from app.composition.conversas import build_messages
from app.composition.grupos import add_groups
from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.service import Grupos
from app.contexts.webhooks.api import DeGrupo
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.engine.extension import Extension
from batuta.kernel.clock import SystemClock

BAR = 300
# Six of ten messages are chatter, as in real groups. Each offer is new or repeats an earlier one.
CHATTER = (
    "Bom dia grupo!",
    "Alguém sabe se o pagamento já caiu?",
    "Ótimo plantão a todos",
    "Vendo estetoscópio seminovo, chama no pv",
)
AREAS = ("pediatria", "clínica médica", "ortopedia", "ginecologia")


def main(arguments: Sequence[str]) -> int:
    count = int(arguments[0]) if arguments else 3000
    asyncio.run(_measure(count))
    return 0


async def _measure(count: int) -> None:
    clock = SystemClock()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/grupos.db"
        settings = Settings(database_url=url)
        work = Batuta(url, clock=clock, extension=Extension(migrations=migrations()), settings=settings)
        groups = add_groups(work, settings, build_messages(work, settings).conversas)
        async with work:
            await _said(work, groups.grupos, count)
            began, rows = time.perf_counter(), 0
            for stage in Estagio:
                since = time.perf_counter()
                worked = await work.work_once(stage, 10_000_000)
                took = time.perf_counter() - since
                rows += worked
                print(
                    f"{stage.value:14} {worked:7d} rows  {worked / took if worked else 0:8,.0f} rows/s  {took:6.2f} s"
                )
            took = time.perf_counter() - began
            met = "met" if count / took >= BAR else "missed"
            print(
                f"through all stages: {count / took:,.0f} messages/s ({rows} rows in {took:.2f} s; bar {BAR}/s: {met})"
            )


async def _said(work: Batuta, grupos: Grupos, count: int) -> None:
    began = time.perf_counter()
    for first in range(0, count, 100):
        async with work.database.transaction() as transaction:
            for n in range(first, min(first + 100, count)):
                await grupos.ingerir(transaction, _message(work, n), now=work.clock.now())
    print(f"{'ingestion':14} {count:7d} rows  {count / (time.perf_counter() - began):8,.0f} rows/s")


def _message(work: Batuta, n: int) -> DeGrupo:
    now = work.clock.now()
    what = n % 500 if n % 3 else n
    days = [now + timedelta(days=1 + (what + each) % 28) for each in range(1 + what % 3)]
    lines = "\n".join(f"{day:%d/%m} {'SN' if what % 2 else 'SD'}" for day in days)
    place, price = f"Hospital Inventado {what % 40}", 1000 + 50 * (what % 20)
    offer = f"Plantão de {AREAS[what % 4]} no {place}\n{lines}\nR$ {price} PJ, falar com Fulana"
    return DeGrupo(
        message_id=f"bench-{n}", instance="bench", grupo=f"1203630000{n % 100:08d}@g.us", autor=None, nome=None,
        texto=offer if n % 10 >= 6 else CHATTER[n % len(CHATTER)], midia=None, encaminhada=False, em=now,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
