"""Measure how fast appointments are accepted and read, using one SQLite file: ``python -m bench.agendamentos
[FILE.xlsx]``.
"""

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from app.composition.julia import julia_of
from app.contexts.agendamentos.normalizacao import lido_pelas_regras
from app.contexts.agendamentos.service import Agendamentos
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.engine.batuta import Batuta
from tests.julia.agendamentos.sheets import HEADER, patient, xlsx

ROWS = 10_000
TOKEN = "bench-0123456789abcdef"
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
        values = {
            "database_url": f"sqlite:///{folder}/a.db",
            "arq_max_jobs": 100,
            "api_token": TOKEN,
            "app_env": "development",
        }
        settings = Settings.model_validate(values)
        async with build(settings).work as work:
            agendamentos = julia_of(work).appointments.agendamentos
            row = await _uploaded(create_app(julia_of(work)), content)
            await _rules(work)
            began, cpu = time.perf_counter(), time.process_time()
            await _through_the_queue(work, agendamentos)
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
            _tell("queue", row["jobs_enqueued"], took)
            print(f"  (in processor time: {row['jobs_enqueued'] / cpu:,.0f} rows/s)")
            print(await agendamentos.contagem())


async def _uploaded(api: Any, content: bytes) -> dict[str, Any]:
    """Upload the file as a client does: as a multipart request with a token. Print how long it takes until every row is
    stored, and return the API's response.
    """
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=api), base_url="http://bench", timeout=60
    ) as client:
        began, cpu = time.perf_counter(), _processor()
        answer = await client.post(
            "/api/v1/appointments/import",
            files={"file": ("agenda.xlsx", content)},
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
        took, cpu = time.perf_counter() - began, _processor() - cpu
    answer.raise_for_status()
    row: dict[str, Any] = answer.json()
    _tell("upload", row["total_rows"], took, is_time=True)
    print(f"  (in processor time, with the child that reads: {cpu:.2f} s)")
    return row


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


def _processor() -> float:
    """Return the processor seconds of this process and of its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _tell(what: str, rows: int, took: float, *, is_time: bool = False) -> None:
    bar = BARS[what]
    is_met = took < bar if is_time else rows / took >= bar
    unit = "s" if is_time else "rows/s"
    met = "met" if is_met else "missed"
    print(f"{what:7} {rows:7,d} rows in {took:6.2f} s = {rows / took:8,.0f} rows/s (bar {bar:g} {unit}: {met})")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
