"""Pages read the database through separate connections, and each of their statements has a time limit."""

from datetime import timedelta

import pytest

from batuta.kernel.errors import StoreTimeout
from batuta.stores.connections import Connections, PoolSizes
from batuta.stores.sql.queries import query_of

LEASE = timedelta(seconds=30)
ONE = query_of("one", "SELECT 1 AS n", writes=False)
ENDLESS = query_of(
    "endless",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS n FROM c",
    writes=False,
)


async def test_a_page_waits_for_no_handler_and_its_statements_end_in_time(empty_url: str) -> None:
    limit = timedelta(milliseconds=100)
    connections = Connections(
        empty_url, PoolSizes(1, 1, 1), queue_lease=lambda: LEASE, run_lease=LEASE, page_limit=limit
    )
    await connections.open()
    try:
        async with connections.database.transaction() as busy:
            await busy.all(ONE)  # the only connection of the handlers is in use
            with connections.reading_for_pages():
                assert [row["n"] for row in await connections.database.all(ONE)] == [1]
                async with connections.liveness.snapshot() as reading:
                    assert [row["n"] for row in await reading.all(ONE)] == [1]
                with pytest.raises(StoreTimeout):
                    await connections.database.all(ENDLESS)
                assert await connections.database.all(ONE)  # the connection is still usable
    finally:
        await connections.close()
