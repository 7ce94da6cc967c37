"""A dashboard on a database file and a fake clock, with one job in each possible state."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
from fastapi import FastAPI

from batuta.config import EngineSettings, load_settings
from batuta.engine.batuta import Batuta
from batuta.extension import Board, Course, Extension, Figure, Tone
from batuta.kernel.reasons import encode
from batuta.runlog.execution import Registration
from batuta.runlog.reasons import MISSED_OLD, PARTIAL
from batuta.schedule.window import Window
from batuta.stores.sql.database import AsJson
from batuta.stores.sql.queries import query_of
from batuta.testing import FakeClock
from batuta.web import create_api
from tests.engine.dispatch.scheduling import Endpoint, register

HOSTILE = "<script>alert('5')</script><img src=x onerror=alert(1)>\"'"
BOARD_WORDS = """
title = "Envios"
waiting = "na fila"
oldest = "mais antiga"
doubt = "em dúvida"
name = "campanha"
state = "situação"
far = "enviadas"
answers = "respostas"
on = "ativa"
off = "pausada"
"""
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
STATES = {
    "pulse": "ok",
    "overdue": "stale",
    "broken": "failing",
    "partly": "degraded",
    "going": "running",
    "paused": "held",
    "to_come": "waiting",
    "planned_for_a_day_nobody_knows": "unfinished",
    "morning": "held",
}
_INSERT = query_of(
    "insert",
    """INSERT INTO job_executions (id, job_name, categoria, scheduled_for, trigger, attempt, owner, lease_until, started_at,
       finished_at, status, duration_ms, response_code, error, items_processed, reason, result)
       VALUES (:id, :job, :categoria, :due, :trigger, 1, 'box:1', :lease, :at, :ended, :status, :took, :code, :error, 7,
       :reason, :result)""",
    writes=True,
)


@dataclass
class Panel:
    work: Batuta
    api: FastAPI
    clock: FakeClock
    rows: int = 0

    async def ask(self, path: str, *, accept: str = "text/html", **headers: str) -> httpx2.Response:
        return await ask(self.api, path, accept=accept, **headers)

    async def keep(self, job: str, ago: timedelta, status: str = "success", **facts: Any) -> str:
        """Insert a row into the execution log and return its id."""
        self.rows += 1
        id, at = str(UUID(int=self.rows)), self.clock.now() - ago
        is_over = status != "running"
        await self.work.database.run(
            _INSERT,
            id=id,
            job=job,
            categoria=self.work.registry.find(job, await self.work.controls.read()).category,
            due=facts.get("due", at + self.rows * timedelta(microseconds=1)),
            trigger=facts.get("trigger", "schedule"),
            lease=None if is_over else self.clock.now() + MINUTE,
            at=at,
            ended=at + timedelta(milliseconds=1234) if is_over else None,
            status=status,
            took=1234 if is_over else None,
            code=200 if status == "success" else None,
            error=encode(facts.get("error")),
            reason=encode(facts.get("reason")),
            result=AsJson(facts.get("result")),
        )
        return id


async def board() -> Board:
    return Board(
        says="board.title",
        figures=[
            Figure(says="board.waiting", value=12345, of=20000, tone=Tone.RUNNING),
            Figure(says="board.oldest", value=12 * MINUTE, tone=Tone.DEGRADED),
            Figure(says="board.doubt", value=0),
        ],
        columns=["board.name", "board.state", "board.far", "board.answers"],
        courses=[
            Course(name=HOSTILE, state="board.on", tone=Tone.RUNNING, done=3, of=10, cells=[1]),
            Course(name="x" * 120, state="board.off", tone=Tone.HELD, done=0, of=0, cells=[0]),
        ],
    )


async def ask(api: FastAPI, path: str, *, accept: str = "text/html", **headers: str) -> httpx2.Response:
    """Send a request as a browser on this machine would."""
    transport = httpx2.ASGITransport(app=api, client=("127.0.0.1", 5000), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        return await client.get(path, headers={"Accept": accept, **headers})


async def open_panel(folder: Path, url: str) -> Panel:
    """Open the dashboard on Monday, 5 January, at 09:00 in São Paulo."""
    clock = FakeClock()
    windows = {"manha": Window(opens=time(10), lasts=timedelta(hours=2))}
    texts = folder / "texts"
    texts.mkdir()
    for language in ("en", "pt_BR"):
        (texts / f"{language}.toml").write_text("\n".join(f"[board]\n{BOARD_WORDS}".splitlines()))
    extension = Extension(windows=windows, texts=[texts], boards=[board])
    work = Batuta(url, clock=clock, extension=extension)
    settings = load_settings(EngineSettings, {"DATABASE_URL": url})
    panel = Panel(work, create_api(work, settings, service="casa"), clock)
    add = work.add_job
    add("pulse", "* * * * *", Endpoint(), "critico", critical=True)
    add("overdue", "*/5 8-19 * * *", Endpoint(), "report", critical=True)
    add("broken", "*/15 * * * *", Endpoint(), "sync")
    add("partly", "*/15 * * * *", Endpoint(), "sync")
    add("going", "0 * * * *", Endpoint(), "sync")
    add("paused", "0 6 * * 1-5", Endpoint(), "campanha")
    add("to_come", "20 4 1 * *", Endpoint(), "report")
    add("planned_for_a_day_nobody_knows", "0 2 * * 0", Endpoint(), "report", finished=False)
    add("morning", "0 10 * * 1-5", Endpoint(), "report", window="manha")
    await work.open()
    await _fill(panel)
    return panel


async def _fill(panel: Panel) -> None:
    work, clock = panel.work, panel.clock
    now: datetime = clock.now()
    clock.step(-48 * HOUR)
    old = [job for job in work.registry if job.name not in ("to_come", "morning")]
    await register(work.executions, [_registration(job) for job in old], work.scheduler().lease_holder)
    clock.step(48 * HOUR)
    await register(work.executions, [_registration(job) for job in work.registry], work.scheduler().lease_holder)
    for number in range(1, 31):
        await panel.keep("pulse", number * MINUTE, result={"status": "ok", "large": 12345678901234567890})
    await panel.keep("overdue", 50 * MINUTE)
    await panel.keep("broken", 30 * MINUTE)
    await panel.keep("broken", 15 * MINUTE, "error", error=f"HTTP 500: {HOSTILE}")
    await panel.keep("partly", 15 * MINUTE, reason=PARTIAL(why="3 of 5"))
    await panel.keep("going", HOUR)
    await panel.keep("going", MINUTE, "running")
    await panel.keep("paused", 3 * HOUR, "missed", reason=MISSED_OLD())
    await work.switches.set(
        "pause.category.campanha", True, by="ana", reason=HOSTILE, now=now, until=now + timedelta(minutes=30)
    )
    await work.switches.set("pause.job.paused", True, by="rui", reason="-", now=now)


def _registration(job: Any) -> Registration:
    return Registration(job=job.name, category=job.category, schedule=job.cron.text, zone=str(job.zone))
