"""Measure how fast one ARQ worker reads appointments with a language model that takes two seconds per answer: ``python
-m bench.agendamentos_llm``.

Only the model is simulated: Redis, the database, the HTTP calls and ``arq app.workers.config.WorkerSettings`` are real
processes. Arguments: ``[ROWS] [sqlite|postgres]``.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path

import httpx2

from app.composition.julia import julia_of
from app.contexts.agendamentos.service import Agendamentos
from app.main import build
from app.settings import Settings
from batuta.kernel.clock import SystemClock
from batuta.processes.address import listen
from batuta.web.api import serve
from simulador.main import create_app
from tests.servers import free_port, postgres_server, redis_server

ROWS = 6_000
SECONDS = 2.0
BAR = 5_000
MAX_JOBS = 400
BATCH = 500
HERE = Path(__file__).parents[1]


def main(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] == "simulador":
        return asyncio.run(_simulate(int(arguments[1])))
    rows = int(arguments[0]) if arguments else ROWS
    wanted = arguments[1:] or ["sqlite", "postgres"]
    for name in wanted:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, redis_server() as redis:
            server = postgres_server(durable=True, within=Path("/var/tmp")) if name == "postgres" else nullcontext(None)
            with server as postgres:
                url = f"sqlite:///{folder}/a.db" if postgres is None else postgres.url(postgres.create())
                if redis is None or (name == "postgres" and postgres is None):
                    print(f"{name}: NOT MEASURED, this machine lacks a server")
                    continue
                asyncio.run(_measure(name, url, redis, rows, Path(folder)))
    return 0


async def _measure(name: str, url: str, redis: str, rows: int, folder: Path) -> None:
    with _simulator() as model:
        env = {
            "DATABASE_URL": url, "REDIS_URL": redis, "TASKS_BACKEND": "arq", "ARQ_MAX_JOBS": str(MAX_JOBS),
            "OPENAI_API_KEY": "simulador", "OPENAI_BASE_URL": f"{model}/openai/v1", "LLM_PER_MINUTE": "1000000",
            "LLM_DAILY_BUDGET_USD": "1000000",
        }  # fmt: skip
        settings = Settings.model_validate({key.lower(): value for key, value in env.items()})
        async with build(settings).work as work:
            agendamentos = julia_of(work).appointments.agendamentos
            for first in range(0, rows, BATCH):
                async with work.database.transaction() as transaction:
                    await agendamentos.gravar(
                        transaction, [_unclear(n) for n in range(first, min(first + BATCH, rows))]
                    )
            await _think(model)
            with _worker(env, folder) as worker:
                took = await _through(agendamentos, rows)
                memory, processor = _memory(worker.pid), _processor(worker.pid)
            counts = await agendamentos.contagem()
        rate = counts["completed"] / took * 60
        print(
            f"{name:8} {counts['completed']:6,d} of {rows:,d} in {took:6.1f} s = {rate:7,.0f} a minute"
            f" (bar {BAR:,d}: {'met' if rate >= BAR else 'missed'});"
            f" the worker's RSS {memory} MiB, its processor {1000 * processor / rows:.1f} ms a task,"
            f" {processor / took:.0%} of a core"
        )


def _unclear(n: int) -> dict[str, str | None]:
    """Return an appointment whose address has no street, so that the rules cannot read it."""
    return {"nome_paciente": f"Pessoa Fictícia {n:06d}", "endereco_completo": f"a casa verde {n} em Recife"}


async def _think(model: str) -> None:
    said = {"endereco": {"logradouro": "a casa verde", "cidade": "Recife"}}
    async with httpx2.AsyncClient() as client:
        body = {"respostas": [{"content": said, "seconds": SECONDS}]}
        (await client.put(f"{model}/openai/respostas", json=body)).raise_for_status()


async def _through(agendamentos: Agendamentos, rows: int) -> float:
    """Return the seconds from the moment when the worker begins the first row until all rows are finished. The worker's
    start-up time is not included.
    """
    began, counts = None, {"completed": 0, "failed": 0}
    while counts["completed"] + counts["failed"] < rows:
        await asyncio.sleep(0.25)
        counts = await agendamentos.contagem()
        if began is None and counts["processing"]:
            began = time.perf_counter()
    assert began is not None
    return time.perf_counter() - began


@contextmanager
def _worker(env: dict[str, str], folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    command = [sys.executable, "-m", "arq", "app.workers.config.WorkerSettings"]
    environment = {**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE}", **env}
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def _simulator() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.agendamentos_llm", "simulador", str(port)], cwd=HERE)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(200):
            try:
                httpx2.get(f"{address}/health")
            except httpx2.HTTPError:
                time.sleep(0.1)
            else:
                break
        yield address
    finally:
        process.kill()
        process.wait()


async def _simulate(port: int) -> int:
    listening = listen("127.0.0.1", port, "PORT")
    await serve(create_app(SystemClock()), listening, asyncio.Event(), timedelta(seconds=1))
    return 0


def _memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def _processor(pid: int) -> float:
    """Return the processor seconds (user and system) of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
