"""Whoever asks at the same moment is answered by one question."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from app.contexts.comum.juntos import Juntos


class Shelf:
    """Answers whatever is asked with its double, and keeps who asked together."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.is_away = False
        self.together: Juntos[int, int] = Juntos(self._answer)

    async def _answer(self, keys: Sequence[int]) -> Mapping[int, int]:
        self.asked.append([*keys])
        await asyncio.sleep(0)
        if self.is_away:
            raise RuntimeError("away")
        return {key: 2 * key for key in keys}


async def test_many_who_ask_at_once_are_one_question_in_their_order() -> None:
    shelf = Shelf()
    assert await asyncio.gather(*(shelf.together.get(n) for n in (3, 1, 2, 1))) == [6, 2, 4, 2]
    assert shelf.asked == [[3, 1, 2]]


async def test_those_who_were_answered_together_ask_the_next_together_too_in_their_order() -> None:
    first, second = Shelf(), Shelf()

    async def both(key: int) -> int | None:
        return await second.together.get(await first.together.get(key) or 0)

    assert await asyncio.gather(*(both(n) for n in (3, 1, 2))) == [12, 4, 8]
    assert (first.asked, second.asked) == ([[3, 1, 2]], [[6, 2, 4]])


async def test_whoever_leaves_takes_nobodys_answer_with_him() -> None:
    shelf = Shelf()
    tasks = [asyncio.create_task(shelf.together.get(n)) for n in (1, 2, 2)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    assert await tasks[0] == 2
    assert await tasks[2] == 4
    assert tasks[1].cancelled()


async def test_a_question_that_fails_fails_for_all_and_the_next_is_asked_anew() -> None:
    shelf = Shelf()
    shelf.is_away = True
    ended = await asyncio.gather(*(shelf.together.get(n) for n in (1, 2)), return_exceptions=True)
    assert [type(each) for each in ended] == [RuntimeError, RuntimeError]
    shelf.is_away = False
    assert await shelf.together.get(1) == 2


async def test_one_who_asks_for_others_and_is_stopped_leaves_nobody_waiting() -> None:
    shelf = Shelf()
    tasks = [asyncio.create_task(shelf.together.get(n)) for n in (1, 2)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    with pytest.raises(asyncio.InvalidStateError):
        await tasks[1]
    assert await shelf.together.get(1) == 2
