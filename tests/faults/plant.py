"""A Batuta application configured by the environment: ``python -m batuta --app tests.faults.plant:work scheduler``."""

import json
import os
from datetime import timedelta
from typing import Any

from batuta import Batuta
from batuta.testing import FastClock

VARIABLE = "FAULTS_PLANT"


def build(plan: dict[str, Any]) -> Batuta:
    clock = FastClock.from_text(plan["clock"]) if plan["clock"] else None
    work = Batuta(plan["database"], timezone="UTC", clock=clock, lease=timedelta(seconds=plan["lease"]))
    for each in plan["jobs"]:
        options = {name: value for name, value in each.items() if name not in ("name", "schedule", "url", "max_age")}
        max_age = None if each["max_age"] is None else timedelta(seconds=each["max_age"])
        work.http_job(each["name"], each["schedule"], each["url"], max_age=max_age, **options)
    work.task(name="noted")(noted)
    return work


async def noted() -> None:
    """A task without work. A schedule that is stored in the database enqueues it."""


def __getattr__(name: str) -> object:
    if name != "work":
        raise AttributeError(name)
    return build(json.loads(os.environ[VARIABLE]))
