import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.faults.figures import LONG
from tests.servers import postgres_binaries

# Tests that need the long form.
collect_ignore = [] if LONG else ["test_scheduler_long.py", "test_send_demo.py"]


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Path]:
    """One database of each available kind, and a folder for its files: url → folder."""
    urls = [f"sqlite:///{tmp_path}/sqlite/test.db"]
    if postgres_binaries() is not None:
        urls.append(request.getfixturevalue("postgres_url"))
    found = {url: tmp_path / url.partition(":")[0] for url in urls}
    for folder in found.values():
        folder.mkdir()
    return found


def one_of(places: dict[str, Path], kind: str) -> dict[str, Path]:
    """Keep one kind of database in the short form, when both keep the promise by the same means; keep all in the long
    form.
    """
    return places if LONG else {url: folder for url, folder in places.items() if url.startswith(kind)} or places


async def together(*runs: Coroutine[Any, Any, None]) -> None:
    """Run short runs concurrently, because they mostly wait; run long ones one after the other, so that figures are
    accurate.
    """
    if LONG:
        try:
            for run in runs:
                await run
        finally:
            for run in runs:
                run.close()
        return
    for ending in await asyncio.gather(*runs, return_exceptions=True):
        if ending is not None:
            raise ending
