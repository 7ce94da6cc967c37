"""How fast appointments are accepted and read, on one SQLite file: ``python -m bench.agendamentos [FILE.xlsx]``."""

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from app.contexts.agendamentos.normalizacao import lido_pelas_regras
from app.contexts.agendamentos.service import Agendamentos
from app.settings import Settings
from app.wiring import build
from app.wiring_agendamentos import appointments_of
from batuta.engine import Batuta
from tests.sheets import HEADER, patient, xlsx

ROWS = 10_000
BARS = {"rules": 3_000, "queue": 1_000, "upload": 3.0}


def main(arguments: Sequence[str]) -> int:
    content = Path(arguments[0]).read_bytes() if arguments else xlsx([HEADER, *(patient(n) for n in range(ROWS))])
    asyncio.run(_measure(content))
    children, own = (
        resource.getrusage(who).ru_maxrss // 1024 for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)
    )
    print(f"at most {own} MiB in this process, {children} MiB in the one that read the file")
    return 0


async def _measure(content: bytes) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        settings = Settings.model_validate({"database_url": f"sqlite:///{folder}/a.db", "arq_max_jobs": 100})
        async with build(settings) as work:
            agendamentos, importacao = appointments_of(work, settings)
            began = time.perf_counter()
            row = await importacao.importar(content, "agenda.xlsx", by="bench")
            _tell("upload", row["total_rows"], time.perf_counter() - began, is_time=True)
            await _rules(work)
            began = time.perf_counter()
            await _through_the_queue(work, agendamentos)
            _tell("queue", row["jobs_enqueued"], time.perf_counter() - began)
            print(await agendamentos.contagem())


async def _rules(work: Batuta) -> None:
    from batuta.stores.sql.queries import query_of

    query = query_of("texts", "SELECT endereco_completo, documento_completo, cep FROM appointments", writes=False)
    rows = [(row["endereco_completo"], row["documento_completo"], row["cep"]) for row in await work.database.all(query)]
    began, cpu = time.perf_counter(), time.process_time()
    for row in rows:
        lido_pelas_regras(*row)
    _tell("rules", len(rows), time.perf_counter() - began)
    print(f"  (in processor time: {len(rows) / (time.process_time() - cpu):,.0f} rows/s)")


async def _through_the_queue(work: Batuta, agendamentos: Agendamentos) -> None:
    stop = asyncio.Event()
    working = asyncio.create_task(work.supervisor().run(stop, timedelta(seconds=5)))
    counts = await agendamentos.contagem()
    while counts["pending"] + counts["processing"]:
        await asyncio.sleep(0.05)
        counts = await agendamentos.contagem()
    stop.set()
    await working


def _tell(what: str, rows: int, took: float, *, is_time: bool = False) -> None:
    bar = BARS[what]
    is_met = took < bar if is_time else rows / took >= bar
    unit = "s" if is_time else "rows/s"
    met = "met" if is_met else "missed"
    print(f"{what:7} {rows:7,d} rows in {took:6.2f} s = {rows / took:8,.0f} rows/s (bar {bar:g} {unit}: {met})")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
