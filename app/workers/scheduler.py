"""The scheduler, ``python -m app.workers.scheduler``. ``JOBS`` is the active timetable.

An operator chooses the profile with ``batuta schedule use``. Without a choice, the setting ``SCHEDULE_PROFILE``
applies.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, cast

from app.composition.jobs import Profile, timetable
from app.main import build
from app.settings import Settings
from batuta import Batuta, BatutaError
from batuta.config import environment, load_settings

if TYPE_CHECKING:
    JOBS: list[dict[str, str]]


def __getattr__(name: str) -> object:
    if name == "JOBS":  # computed on access, because it depends on the environment and the database
        return timetable(_profile(load_settings(Settings, environment(), Path(".env"))))
    raise AttributeError(name)


def _profile(settings: Settings) -> Profile:
    """Return the active profile. If the database cannot be read, return the profile from the settings."""
    work = build(settings).work
    try:
        # Runs in a separate thread, because the importing program may run an event loop.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, _read_profile(work)).result()
    except BatutaError:
        return settings.schedule_profile


async def _read_profile(work: Batuta) -> Profile:
    """Read the active profile from the database, without creating or migrating the database."""
    if not await work.database.exists():
        return cast("Profile", work.registry.first)
    await work.connections.open()
    try:
        return cast("Profile", work.registry.profile(await work.controls.read()))
    finally:
        await work.close()


if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.main:work", "scheduler", *sys.argv[1:]]))
