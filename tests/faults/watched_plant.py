"""A Batuta application that monitors itself, configured by the environment: ``--app
tests.faults.watched_plant:work``.
"""

import os
from datetime import timedelta

from batuta import Batuta
from batuta.config import EngineSettings, environment, load_settings
from batuta.testing import FastClock

CLOCK = "FAULTS_CLOCK"


def build() -> Batuta:
    settings = load_settings(EngineSettings, {name: value for name, value in environment().items() if name != CLOCK})
    clock = FastClock.from_text(os.environ[CLOCK])
    work = Batuta(settings.database_url.get_secret_value(), clock=clock, settings=settings, lease=timedelta(seconds=30))

    @work.job("* * * * *", category="critico", critical=True)
    async def pulse() -> None: ...

    return work


def __getattr__(name: str) -> object:
    if name != "work":
        raise AttributeError(name)
    return build()
