"""Measure how much processor time the server spends on one request: ``python -m bench.refusals``. Everything runs on
this machine and on loopback.

Each request uses a new connection. Until a client reaches the limit on refused requests, the server checks its wrong
credential and answers 401. After that, the server reads only the raw head of the request and refuses it. The client
runs in this process; only the server's processor time counts, because other programs use the machine too.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from bench.attacks import ACCEPTED, ask, processor_seconds, served
from bench.report import markdown

COUNT, CONCURRENT = 2_000, 400  # an answer above the limit is one to two seconds late
WRONG = f"Bearer bat_{'0' * 12}_{'0' * 48}"
UNLIMITED = {"BATUTA_REFUSALS_PER_MINUTE": "1000000000"}
CASES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("an accepted token", ACCEPTED, UNLIMITED),
    ("no credential, below the limit", "", UNLIMITED),
    ("a wrong token, below the limit", WRONG, UNLIMITED),
    ("no credential, above the limit", "", {}),
    ("a wrong token, above the limit", WRONG, {}),
)


def main() -> int:
    rows = [["a request with", "answers", "processor time"]]
    for title, credential, settings in CASES:
        with tempfile.TemporaryDirectory(prefix="batuta-bench-") as folder, served(Path(folder), **settings) as it:
            rows.append([title, *asyncio.run(measure(*it, credential))])
    print(markdown(rows))
    return 0


async def measure(pid: int, port: int, credential: str) -> tuple[str, str]:
    numbers, answers = iter(range(COUNT)), Counter[int]()

    async def request() -> None:
        for _ in numbers:
            answers[await ask(port, "/jobs", credential)] += 1

    # Start every part of the server, and bring the client above its limit.
    await asyncio.gather(*(ask(port, "/jobs", credential) for _ in range(100)))
    before = processor_seconds(pid)
    await asyncio.gather(*(request() for _ in range(CONCURRENT)))
    used = processor_seconds(pid) - before
    by_status = ", ".join(f"{count:,} × {status}" for status, count in sorted(answers.items()))
    return by_status, f"{1000 * used / COUNT:.2f} ms"


if __name__ == "__main__":
    sys.exit(main())
