"""How long a lease holder has been silent is measured without the wall clock. A holder that runs without a supervisor
still renews in time.
"""

import asyncio
from datetime import timedelta

from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.leases import SilenceDetector, renew_until_cancelled
from batuta.testing import FakeClock

SECOND = timedelta(seconds=1)


def test_time_between_two_looks_counts_up_to_a_limit() -> None:
    silence: SilenceDetector[str] = SilenceDetector(2 * SECOND)
    assert silence.look(["a"], 100.0) == {"a": timedelta(0)}
    assert silence.look(["a", "b"], 101.0) == {"a": SECOND, "b": timedelta(0)}
    assert silence.look(["a", "b"], 200.0) == {"a": 3 * SECOND, "b": 2 * SECOND}
    assert silence.look(["b"], 201.0) == {"b": 3 * SECOND}
    assert silence.look(["a"], 202.0) == {"a": timedelta(0)}


def test_forgotten_owner_is_watched_from_zero() -> None:
    silence: SilenceDetector[str] = SilenceDetector(2 * SECOND)
    silence.look(["a"], 100.0)
    silence.forget()
    assert silence.look(["a"], 102.0) == {"a": timedelta(0)}
    assert silence.look(["a"], 103.0) == {"a": SECOND}


async def test_lease_is_renewed_every_third_of_it_also_after_an_outage(clock: FakeClock) -> None:
    renewed: list[float] = []
    started = clock.monotonic()

    async def renew() -> None:
        renewed.append(clock.monotonic() - started)
        if len(renewed) == 1:
            raise StoreUnavailable(where="nowhere", why="it is away")

    renewing = asyncio.create_task(renew_until_cancelled(renew, 30 * SECOND, clock))
    for _ in range(40):
        await clock.advance(SECOND)
    renewing.cancel()
    first, retried, *later = renewed
    assert first == 10
    assert first < retried < 20
    assert len(later) == 2
