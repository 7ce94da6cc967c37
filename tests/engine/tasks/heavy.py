"""Functions of tasks with ``process=True``, which a child process imports."""

import logging
import os
import signal
import threading
from pathlib import Path

from batuta import TaskContext

LOG = logging.getLogger("heavy")


def square(context: TaskContext, n: int) -> list[int]:
    LOG.warning("squaring %d", n)
    return [n * n, os.getpid()]


async def greet(context: TaskContext, to: str) -> str:
    await context.report({"to": to})
    return f"hi {to}"


def need(megabytes: int) -> int:
    return len(bytearray(megabytes * 1024 * 1024))


def fail(kind: str) -> None:
    match kind:
        case "value":
            raise ValueError(kind)
        case "exit":
            raise SystemExit(3)
        case "gone":
            os._exit(4)
        case _:
            os.kill(os.getpid(), signal.SIGKILL)


def hang(file: str) -> None:
    Path(file).write_text(str(os.getpid()))
    threading.Event().wait(600)
