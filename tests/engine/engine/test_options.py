"""A misspelt option is an error at registration, and the error suggests the option that was probably meant."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from batuta import Batuta, Limits
from batuta.config import EngineSettings
from batuta.errors import BatutaError, InvalidLimit, InvalidSetting, TransactionMisuse
from batuta.pipelines import step
from batuta.queue.limits import parse_rate
from batuta.stores.sql.queries import in_dialect, query_of

work = Batuta("sqlite:///unused.db", timezone="UTC")
named: Any = work.task(name="named")(lambda n: n)


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


def anything(function: Any) -> Any:
    """Return the function as ``Any``, so that tests can make calls that a type checker would reject."""
    return function


def test_option_without_a_similar_one_is_refused_with_the_list() -> None:
    with pytest.raises(TypeError, match="it has every, finishes_tick, longest_call"):
        work.loop(colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("call", "step"),
    [
        (lambda: anything(work.task)(rate_limit="10/m"), 'write rate="10/minute"'),
        (lambda: anything(work.task)(time_limit=60), "write timeout="),
        (lambda: anything(work.task)(max_retries=3), r"write retry=\[10, 60\]"),
        (lambda: anything(work.task)(autoretry_for=(OSError,)), "write retry={ConnectionError"),
        (lambda: anything(work.task)(bind=True), "as TaskContext"),
        (lambda: named.options(countdown=3), "write delay="),
        (lambda: named.options(eta=3), "write at="),
        (lambda: named.delay(3), r"write await task\.enqueue"),
        (lambda: named.apply_async([3]), r"write await task\.options\(delay=60\)\.enqueue"),
        (lambda: named.options(delay="3"), "delay is a number of seconds, not str"),
        (lambda: named.options(delay=-3), "cannot be negative"),
        (lambda: anything(work.job)(every="5m", name="minutes")(beat), "'5m' is not a whole number of seconds"),
        (
            lambda: anything(work.job)(every=5, name="two")(lambda a, b: None),
            r"requires \(a, b\), but a job passes only the run",
        ),
        (lambda: work.task(rate="10/fortnight")(beat), r"\(second, minute, hour or day\)"),
    ],
)
def test_words_of_other_libraries_and_wrong_values_name_the_next_step(call: Callable[[], Any], step: str) -> None:
    with pytest.raises((TypeError, AttributeError, ValueError, BatutaError), match=step):
        call()


def test_units_of_a_rate_can_be_abbreviated() -> None:
    assert parse_rate("10/m") == parse_rate("10/minute")


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


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"concurrency": 0}, "concurrency=0 is not a valid limit: give a number of at least 1"),
        (
            {"rate": "3/2seconds"},
            "rate='3/2seconds' is not a valid limit: the period is one second, minute, hour or day",
        ),
        ({"rate": "3/min"}, "rate='3/min' is not a valid limit: write \"3/minute\""),
    ],
)
def test_invalid_limit_is_named_with_its_option(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidLimit, match=re.escape(sentence)):
        Batuta("sqlite:///limits.db").task(**options)(beat)


def test_limit_per_key_without_a_parameter_names_its_task() -> None:
    async def fetch(order: int) -> None: ...

    with pytest.raises(InvalidLimit, match="per_key of fetch is not a valid limit: name the parameter"):
        Batuta("sqlite:///limits.db").task(per_key=Limits(concurrency=1))(fetch)


def test_wrong_address_of_a_database_names_the_argument_or_the_setting() -> None:
    with pytest.raises(InvalidSetting, match="database_url has an invalid value"):
        Batuta("sqlite://")
    with pytest.raises(InvalidSetting, match="DATABASE_URL has an invalid value"):
        Batuta(settings=EngineSettings.model_validate({"database_url": "sqlite://"}))


async def test_call_inside_a_transaction_says_that_an_effect_runs_inside_one(database_url: str) -> None:
    work = Batuta(database_url, timezone="UTC")
    count = in_dialect(query_of("count_tasks", "SELECT count(*) AS n FROM tasks", writes=False), work.database.dialect)

    @work.task()
    async def send() -> None: ...

    async with work, work.database.transaction():
        for call, words in (
            (lambda: work.database.all(count), "statement count_tasks needs a transaction of its own"),
            (send.enqueue, r"enqueue\(\) needs"),
            (lambda: work.batches.create("b"), "another transaction needs"),
        ):
            with pytest.raises(TransactionMisuse, match=rf"{words}.*an effect runs inside a transaction.*within="):
                await call()
