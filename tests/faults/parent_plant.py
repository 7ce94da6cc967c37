"""A small application for `batuta up`: ``--app tests.faults.parent_plant:work``.

The application writes these files to its working directory: ``marks`` with a line for each task, ``grandchild`` with
the id of a process that the worker started, and ``struck`` when a task blocks the whole process for the first time. If
the folder ``words`` exists, the application has an additional role, and the folder contains the message texts about this
role. While a file ``broken`` exists, this role exits as soon as it starts.
"""

import asyncio
import os
import re
import subprocess
import time
from datetime import timedelta
from pathlib import Path

from batuta import Batuta
from batuta.config import EngineSettings, environment, load_settings
from batuta.engine.extension import Extension, Role
from batuta.sql import Mark
from tests.faults.figures import LONG

MARKS, GRANDCHILD, BROKEN, WORDS = Path("marks"), Path("grandchild"), Path("broken"), Path("words")
STRUCK = Path("struck")
PROJECT = "PLANT_PROJECT"  # the setting that names the project to which the database belongs


def build() -> Batuta:
    settings = load_settings(EngineSettings, environment())
    roles = [Role("flaky", _flaky)] if WORDS.exists() else []
    project = Mark(key="plant_project", setting=PROJECT, project=os.environ.get(PROJECT))
    extension = Extension(service="plant", roles=roles, texts=[WORDS] if roles else [], mark=project)
    work = Batuta(settings.database_url.get_secret_value(), settings=settings, extension=extension)

    work.queue_lease = timedelta(seconds=30 if LONG else 3)

    @work.job("* * * * *", category="critico")
    async def pulse() -> None: ...

    @work.task(retry=[0.1] * 20, timeout=30)
    async def mark(number: int) -> None:
        await asyncio.sleep(0.05)
        with MARKS.open("a") as marks:
            marks.write(f"{number}\n")

    @work.task(retry=[0.1] * 20)
    async def sleeps() -> None:
        if not STRUCK.exists():
            STRUCK.touch()
            time.sleep(600)

    @work.task(retry=[0.1] * 20)
    async def matches() -> None:
        if not STRUCK.exists():
            STRUCK.touch()
            re.match(r"(a+)+$", "a" * 40 + "b")

    @work.loop(every=3600)
    async def begets() -> None:
        started = subprocess.Popen(["sleep", "600"])
        GRANDCHILD.write_text(str(started.pid))

    return work


async def _flaky(stop: asyncio.Event) -> None:
    if BROKEN.exists():
        raise SystemExit(3)
    await stop.wait()


def __getattr__(name: str) -> object:
    if name != "work":
        raise AttributeError(name)
    return build()
