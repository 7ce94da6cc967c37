"""The batcher combines the requests of concurrent callers into one call. An invalid request fails only for its own
caller.
"""

import asyncio
import gc
from collections.abc import Mapping, Sequence

import pytest

from batuta.kernel.batcher import Batcher, BatchLoader, Gatherer
from batuta.kernel.errors import StatementRefused, StoreUnavailable


class Doubling:
    """Doubles numbers. It rejects a batch that contains a negative number, and returns no answer for zero."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.alone: list[int] = []
        self.batcher = Batcher(self._together, self._one)

    async def _together(self, asked: Sequence[int]) -> list[int | None]:
        self.calls.append([*asked])
        await asyncio.sleep(0)
        if min(asked) < 0:
            raise StatementRefused(why="one of them is negative")
        return [each * 2 or None for each in asked]

    async def _one(self, asked: int) -> int:
        self.alone.append(asked)
        if asked < 0:
            raise StatementRefused(why="it is negative")
        return asked * 2


async def test_concurrent_callers_share_one_call() -> None:
    doubling = Doubling()
    assert await asyncio.gather(*(doubling.batcher.ask(n) for n in (3, 1, 2))) == [6, 2, 4]
    assert await doubling.batcher.ask(5) == 10
    assert doubling.calls == [[3, 1, 2], [5]]


async def test_caller_that_arrives_during_a_call_joins_the_next_one() -> None:
    doubling = Doubling()
    first = asyncio.create_task(doubling.batcher.ask(1))
    while not doubling.calls:
        await asyncio.sleep(0)
    assert (await doubling.batcher.ask(2), await first) == (4, 2)
    assert doubling.calls == [[1], [2]]


async def test_request_that_fails_its_batch_is_repeated_alone() -> None:
    doubling = Doubling()
    answers = await asyncio.gather(*(doubling.batcher.ask(n) for n in (1, -1, 2)), return_exceptions=True)
    assert [answers[0], answers[2]] == [2, 4]
    assert isinstance(answers[1], StatementRefused)
    assert doubling.alone == [1, -1, 2]


async def test_request_without_an_answer_is_repeated_alone() -> None:
    doubling = Doubling()
    assert await asyncio.gather(*(doubling.batcher.ask(n) for n in (0, 4))) == [0, 8]
    assert doubling.alone == [0]


async def test_cancelled_caller_does_not_cancel_the_others() -> None:
    doubling = Doubling()
    one, other = (asyncio.create_task(doubling.batcher.ask(n)) for n in (1, 2))
    await asyncio.sleep(0)
    one.cancel()
    assert await other == 4
    with pytest.raises(asyncio.CancelledError):
        await one


async def test_failure_of_a_call_without_callers_is_not_logged() -> None:
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: errors.append(what))
    failing = asyncio.Event()

    async def closed(_: object) -> list[int | None]:
        await failing.wait()
        raise StoreUnavailable(where="nowhere", why="it was closed")

    asking = asyncio.create_task(Batcher(closed, closed).ask(1))
    for _ in range(3):
        await asyncio.sleep(0)
    asking.cancel()
    failing.set()
    for _ in range(3):
        await asyncio.sleep(0)
    del asking
    gc.collect()
    assert errors == []


async def test_unavailable_database_fails_every_caller() -> None:
    async def away(_: object) -> list[int | None]:
        raise StoreUnavailable(where="nowhere", why="it is not open")

    batcher = Batcher(away, away)
    answers = await asyncio.gather(*(batcher.ask(n) for n in (1, 2)), return_exceptions=True)
    assert [type(each) for each in answers] == [StoreUnavailable, StoreUnavailable]


class Doubles:
    """Doubles even numbers. Odd numbers have no value, and a batch that contains a negative number is rejected."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.loader: BatchLoader[int, int] = BatchLoader(self._load)

    async def _load(self, keys: Sequence[int]) -> Mapping[int, int]:
        self.calls.append([*keys])
        if min(keys) < 0:
            raise StatementRefused(why="a number is negative")
        return {key: 2 * key for key in keys if key % 2 == 0}


async def test_keys_requested_together_are_loaded_once_each_and_in_order() -> None:
    doubles = Doubles()
    assert await asyncio.gather(*(doubles.loader.get(n) for n in (4, 1, 2, 4))) == [8, None, 4, 8]
    assert doubles.calls == [[4, 1, 2]]


async def test_callers_answered_together_ask_the_next_loader_together() -> None:
    first, second = Doubles(), Doubles()

    async def both(key: int) -> int | None:
        return await second.loader.get(await first.loader.get(key) or 0)

    assert await asyncio.gather(*(both(n) for n in (6, 2, 4))) == [24, 8, 16]
    assert (first.calls, second.calls) == ([[6, 2, 4]], [[12, 4, 8]])


async def test_key_whose_batch_is_refused_is_loaded_alone() -> None:
    doubles = Doubles()
    answers = await asyncio.gather(*(doubles.loader.get(n) for n in (2, -1)), return_exceptions=True)
    assert answers[0] == 4
    assert isinstance(answers[1], StatementRefused)


class Gathered:
    """Doubles numbers, one batch at a time. No batch is answered until the test opens the gate."""

    def __init__(self, most: int = 500) -> None:
        self.calls: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gatherer = Gatherer(self._together, most)

    async def _together(self, asked: Sequence[int]) -> list[int]:
        self.calls.append([*asked])
        await self.gate.wait()
        if min(asked) < 0:
            raise StatementRefused(why="one of them is negative")
        if 13 in asked:
            raise StoreUnavailable(where="here", why="it is away")
        return [each * 2 for each in asked]

    async def ask(self, *numbers: int) -> "list[asyncio.Task[int]]":
        """Request each number in a separate task, and return the tasks once all of them are waiting."""
        tasks = [asyncio.create_task(self.gatherer.ask(number)) for number in numbers]
        await asyncio.sleep(0)
        return tasks


async def test_callers_that_arrive_during_a_call_share_the_next_one() -> None:
    gathered = Gathered(most=2)
    tasks = await gathered.ask(1, 2, 3, 4)
    assert gathered.calls == [[1]]  # a single caller does not wait for others
    gathered.gate.set()
    assert await asyncio.gather(*tasks) == [2, 4, 6, 8]
    assert await gathered.gatherer.ask(5) == 10
    assert gathered.calls == [[1], [2, 3], [4], [5]]


async def test_refused_caller_of_a_gathered_call_harms_no_other() -> None:
    gathered = Gathered()
    tasks = await gathered.ask(1, 2, -3)
    gathered.gate.set()
    first, second, refused = await asyncio.gather(*tasks, return_exceptions=True)
    assert (first, second, type(refused)) == (2, 4, StatementRefused)


async def test_gatherer_continues_after_an_outage_and_after_cancelled_callers() -> None:
    gathered = Gathered()
    first, second, third, fourth = await gathered.ask(1, 2, 13, 4)
    second.cancel()
    await asyncio.sleep(0)
    first.cancel()
    gathered.gate.set()
    results = await asyncio.gather(first, second, third, fourth, return_exceptions=True)
    assert [type(each) for each in results] == [asyncio.CancelledError] * 2 + [StoreUnavailable] * 2
    assert gathered.calls == [[1], [13, 4]]  # the cancelled caller that waited is left out
    assert await gathered.gatherer.ask(6) == 12
