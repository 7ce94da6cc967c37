"""A misspelt option is an error at registration, and the error names the option that was probably meant."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from batuta import Batuta
from batuta.pipelines import step

work = Batuta("sqlite:///unused.db", timezone="UTC")


async def beat() -> None: ...


@pytest.mark.parametrize(
    ("register", "name", "meant"),
    [
        (work.job, {"timout": 5}, "timeout"),
        (work.job, {"catchup": "skip"}, "catch_up"),
        (work.job, {"circuits": "gateway"}, "circuit"),
        (work.http_job, {"tokens": "t"}, "token"),
        (work.add_job, {"max_ages": 5}, "max_age"),
        (work.task, {"retries": [1]}, "retry"),
        (work.task, {"keep_results": 5}, "keep_result"),
        (work.loop, {"stuckafter": 5}, "stuck_after"),
        (work.circuit, {"failure": 5}, "failures"),
        (work.add_queue, {"concurency": 5}, "concurrency"),
        (work.enqueue_many, {"keyes": []}, "keys"),
        (Batuta, {"time_zone": "UTC"}, "timezone"),
        (partial(step, print), {"retries": [1]}, "retry"),
    ],
)
def test_misspelt_option_is_refused_with_the_nearest(
    register: Callable[..., Any], name: dict[str, object], meant: str
) -> None:
    with pytest.raises(TypeError, match=rf"has no option '{next(iter(name))}': write {meant}=…"):
        register(**name)


def test_option_without_a_similar_one_is_refused_with_the_list() -> None:
    with pytest.raises(TypeError, match="it has every, finishes_tick, longest_call"):
        work.loop(colour="red")  # type: ignore[call-arg]


async def test_misspelt_option_of_enqueue_is_refused_by_name() -> None:
    tasks = Batuta("sqlite:///unused.db", timezone="UTC")

    @tasks.task()
    async def send(to: str, *, subject: str = "") -> None: ...

    with pytest.raises(TypeError, match=r"task send has no parameter 'subjet': write subject=…"):
        await tasks.enqueue(send, "a@example.com", subjet="hi")
    with pytest.raises(TypeError, match=r"task send has no parameter 'dealy': write delay=…"):
        await tasks.enqueue(send, "a@example.com", dealy=5)


def test_decorated_function_is_unchanged() -> None:
    assert work.loop(every=2)(beat) is beat
