"""The scheduler, ``python -m app.workers.scheduler``. ``JOBS`` is the timetable of ``SCHEDULE_PROFILE``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from app.composition.jobs import timetable
from app.settings import Settings
from batuta.config import environment, load_settings

if TYPE_CHECKING:
    JOBS: list[dict[str, str]]


def __getattr__(name: str) -> object:
    if name == "JOBS":  # built on first access, because it depends on the environment
        return timetable(load_settings(Settings, environment(), Path(".env")).schedule_profile)
    raise AttributeError(name)


if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.main:work", "scheduler", *sys.argv[1:]]))
