"""Measure how an attack on the API affects a normal client: ``python -m bench.attacks``. Everything runs on this
machine and on loopback.

The server and the attacker run in separate processes. A normal client requests ``GET /jobs`` with a new connection each
time. Each attack is repeated ``ROUNDS`` times. In each round the client is measured first alone and then during the
attack, because other programs' load changes over time. The attacker sends wrong tokens with ``CONNECTIONS`` connections, or
keeps connections with unfinished headers open until the server has closed them all. An attack is noticeable if the
client's median is more than ``NOTICED`` times its median without the attack. The run ends by itself within ``LIMIT``
seconds.
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.report import markdown

ROOT = Path(__file__).parents[1]
TOKEN = "t" * 32
ROUNDS, ALONE = 3, 10.0  # seconds alone before each attack
PAUSE = 0.02  # seconds between two requests of the normal client
HALF_OPEN, WRONG, CONNECTIONS = 100, 10_000, 100
NOTICED = 1.5
LIMIT = 400.0
READY_WITHIN = 60.0
ACCEPTED = f"Bearer {TOKEN}"


def main(arguments: Sequence[str]) -> int:
    if arguments:
        return asyncio.run(attack(int(arguments[1]), arguments[0]))
    with tempfile.TemporaryDirectory(prefix="batuta-bench-") as folder, served(Path(folder)) as (pid, port):
        asyncio.run(asyncio.wait_for(measure(pid, port), LIMIT))
    return 0


@contextmanager
def served(folder: Path, **settings: str) -> Iterator[tuple[int, int]]:
    """Start the API of a program without jobs, in production mode. Yield its process id and its port."""
    port = free_port()
    env = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        "PYTHONPATH": f"{ROOT / 'src'}:{folder}",
        "APP_ENV": "production",
        "API_TOKEN": TOKEN,
        "SECRET_KEY": "k" * 32,
        "DATABASE_URL": f"sqlite:///{folder}/attacked.db",
        "PORT": str(port),
        "LOG_LEVEL": "ERROR",
        **settings,
    }
    (folder / "attacked.py").write_text("from batuta import Batuta\n\nwork = Batuta()\n", encoding="utf-8")
    command = [sys.executable, "-m", "batuta", "--app", "attacked:work"]
    subprocess.run([*command, "migrate"], env=env, cwd=folder, check=True, capture_output=True)
    server = subprocess.Popen([*command, "api"], env=env, cwd=folder)
    try:
        asyncio.run(ready(port))
        yield server.pid, port
    finally:
        server.terminate()
        server.wait(20)


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


async def ready(port: int) -> None:
    for _ in range(int(READY_WITHIN / 0.2)):
        try:
            if await ask(port, "/health") == 200:
                return
        except OSError:
            pass
        await asyncio.sleep(0.2)
    raise TimeoutError("the server did not start")


async def ask(port: int, path: str, credential: str = "") -> int:
    """Send one request on a new connection and return the status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await say(reader, writer, path, credential, last=True)
    finally:
        writer.close()


async def say(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, credential: str, *, last: bool = False
) -> int:
    given = f"Authorization: {credential}\r\n" if credential else ""
    end = "Connection: close\r\n" if last else ""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{given}{end}\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
    await reader.readexactly(length)
    return int(head.split()[1])


async def normal(port: int, ends: asyncio.Future[Any]) -> list[float]:
    """Act as a normal client until the future ``ends`` is done. Return how many seconds each response took."""
    took = []
    while not ends.done():
        began = time.monotonic()
        status = await ask(port, "/jobs", ACCEPTED)
        took.append(time.monotonic() - began)
        if status != 200:
            raise RuntimeError(f"a normal client got {status}")
        await asyncio.wait([ends], timeout=PAUSE)
    return took


async def measure(pid: int, port: int) -> None:
    await ask(port, "/jobs", ACCEPTED)
    rows, verdicts = [], []
    for title, kind in ((f"{HALF_OPEN} half-open connections", "half"), (f"{WRONG:,} wrong tokens", "wrong")):
        alone: list[float] = []
        during: list[float] = []
        used, reports = 0.0, []
        for _ in range(ROUNDS):
            alone += await normal(port, asyncio.ensure_future(asyncio.sleep(ALONE)))
            before = processor_seconds(pid)
            took, report = await attacked(port, kind)
            used += processor_seconds(pid) - before
            during += took
            reports.append(report)
        rows.append(["alone", *shown(alone), f"{len(alone):,} requests"])
        more = f"{len(during):,} requests; server {used:.1f} s of processor; attacks: {', '.join(reports)}"
        rows.append([f"during {title}", *shown(during), more])
        ratio = median(during) / median(alone)
        verdicts.append(f"{title}: p50 {ratio:.2f} times alone, {'NOTICED' if ratio > NOTICED else 'not noticed'}")
    print(markdown([["a normal client", "p50", "p99", "slowest", ""], *rows]))
    print(*verdicts, sep="\n")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


async def attacked(port: int, kind: str) -> tuple[list[float], str]:
    """Run one attack. Return how many seconds each response to the normal client took, and the attacker's report."""
    attacker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.attacks", kind, str(port), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert attacker.stdout is not None
    await attacker.stdout.readline()  # it has begun
    report = asyncio.ensure_future(attacker.stdout.read())
    took = await normal(port, report)
    await attacker.wait()
    return took, report.result().decode().strip()


def shown(took: Sequence[float]) -> list[str]:
    cuts = quantiles(took, n=100)
    return [f"{1000 * each:.1f} ms" for each in (cuts[49], cuts[98], max(took))]


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def attack(port: int, kind: str) -> int:
    return await (half_open(port) if kind == "half" else wrong_tokens(port))


async def half_open(port: int) -> int:
    """Open connections and send endless headers, one byte from time to time, until the server has closed all the
    connections.
    """
    print("begun", flush=True)
    began = time.monotonic()

    async def hold() -> float:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /jobs HTTP/1.1\r\nHost: x\r\nX-a: ")
        ended = asyncio.create_task(reader.read())
        while not ended.done():
            writer.write(b"a")
            await asyncio.wait([ended], timeout=1.0)
        ended.exception()
        writer.close()
        return time.monotonic() - began

    seconds = await asyncio.wait_for(asyncio.gather(*(hold() for _ in range(HALF_OPEN))), LIMIT / 2)
    print(f"all closed after {max(seconds):.0f} s")
    return 0


async def wrong_tokens(port: int) -> int:
    """Send one round's share of the wrong tokens over ``CONNECTIONS`` concurrent connections, each as fast as the server
    responds.
    """
    print("begun", flush=True)
    began, numbers, answers = time.monotonic(), iter(range(WRONG // ROUNDS)), Counter[int]()

    async def guess() -> None:
        for number in numbers:
            answers[await ask(port, "/jobs", f"Bearer bat_{'0' * 12}_{number:048x}")] += 1

    await asyncio.wait_for(asyncio.gather(*(guess() for _ in range(CONNECTIONS))), LIMIT / 2)
    by_status: Mapping[int, int] = dict(sorted(answers.items()))
    print(f"{sum(answers.values()):,} in {time.monotonic() - began:.0f} s: {by_status}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
