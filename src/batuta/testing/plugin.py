"""Batuta's pytest plugin, which provides the fixture ``batuta_kit``. pytest loads the plugin if Batuta is installed."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from batuta.testing.kit import KitFactory

MEMORY = Path("/dev/shm")  # noqa: S108 - a folder in memory, if the machine has one


@pytest.fixture(scope="session")
def batuta_templates() -> Iterator[Path]:
    """A folder for this test session's databases, in memory if possible."""
    with tempfile.TemporaryDirectory(prefix="batuta-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def batuta_kit(batuta_templates: Path) -> "Iterator[KitFactory]":
    """Open programs under test with ``async with batuta_kit(program) as kit``. ``program`` is an unopened Batuta
    object, or a function ``build(url, clock)`` that returns such an object.
    """
    from batuta.testing.kit import KitFactory

    with tempfile.TemporaryDirectory(dir=batuta_templates) as folder:
        yield KitFactory(batuta_templates, Path(folder))
