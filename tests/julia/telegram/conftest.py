from collections.abc import AsyncIterator

import pytest

from batuta.kernel import SystemClock
from batuta.stores import connect
from tests.julia.telegram.ambiente import Ambiente, opened
from tests.stored import opened as opened_database


@pytest.fixture(params=["simulador", "telethon"])
async def ambiente(request: pytest.FixtureRequest, julia_url: str) -> AsyncIterator[Ambiente]:
    """One implementation of the Telegram interface, with its own simulated Telegram. Each test runs once for each
    implementation.
    """
    async with opened_database(connect(julia_url, SystemClock())) as database, opened(request.param, database) as made:
        yield made
