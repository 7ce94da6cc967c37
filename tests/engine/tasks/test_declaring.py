"""Declaring tasks, and enqueueing calls through the task object."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from batuta import Batuta, Handle, TaskContext
from batuta.kernel.errors import InvalidTask, UnknownWord
from batuta.testing import FakeClock


@pytest.fixture
def work(work_url: str, clock: FakeClock) -> Batuta:
    return Batuta(work_url, timezone="UTC", clock=clock)


def test_application_without_arguments_uses_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert Batuta().database.where == str(tmp_path / "batuta.db")
    monkeypatch.setenv("DATABASE_URL", "sqlite:///elsewhere.db")
    assert Batuta().database.where == str(tmp_path / "elsewhere.db")
    assert Batuta("sqlite:///program.db").database.where == str(tmp_path / "program.db")


async def test_decorated_function_stays_callable(work: Batuta) -> None:
    @work.task()
    async def greet(to: str, *, greeting: str = "hi") -> str:
        """Greet a person."""
        return f"{greeting} {to}"

    @work.task()
    def double(n: int) -> int:
        return 2 * n

    assert await greet("Ana", greeting="oi") == "oi Ana"
    assert double(4) == 8
    assert (greet.__name__, greet.__doc__, greet.name) == ("greet", "Greet a person.", "greet")


async def test_task_enqueues_its_calls_with_options(work: Batuta, clock: FakeClock) -> None:
    got: list[Any] = []

    @work.task(keep_result=86_400)
    async def note(*arguments: str, **named: str) -> None:
        got.append((arguments, named))

    async with work:
        first = await note.enqueue("a", b="c")
        later = await note.options(delay=60).enqueue("later")
        dated = await note.options(at=clock.now() + timedelta(hours=1), key="k", priority=3).enqueue("dated")
        assert await note.options(key="k").enqueue("dated again") == dated
        await note.enqueue_many([["x"], {"y": "z"}])
        assert await work.work_once("default", 10) == 3
        assert sorted(got, key=str) == [(("a",), {"b": "c"}), (("x",), {}), ((), {"y": "z"})]
        await clock.advance(61)
        assert await work.work_once("default", 10) == 1
        await clock.advance(3600)
        assert await work.work_once("default", 10) == 1
        for handle in (first, later, dated):
            status = await handle.status()
            assert status is not None
            assert status.status == "complete"
        assert (await work.handle(first.id).status()) == await work.status(first.id)


async def test_context_is_passed_only_to_an_annotated_first_parameter(work: Batuta) -> None:
    got: list[Any] = []

    @work.task()
    async def with_context(run: TaskContext, n: int) -> None:
        got.append((run.attempt, n))

    @work.task()
    async def without(n: int) -> None:
        got.append(n)

    @work.task()
    async def in_text(run: "TaskContext", n: int) -> None:
        got.append((run.attempt, n))

    async with work:
        await with_context.enqueue(1)
        await without.enqueue(2)
        await in_text.enqueue(3)
        await work.work_once("default", 10)
    assert sorted(got, key=str) == [(1, 1), (1, 3), 2]


def test_unclear_or_misplaced_context_is_rejected_at_registration(work: Batuta) -> None:
    async def unannotated(ctx, n): ...  # type: ignore[no-untyped-def]

    async def anything(context: Any) -> None: ...

    async def perhaps(run: TaskContext | None) -> None: ...

    async def second(n: int, ctx: TaskContext) -> None: ...

    async def named(*, ctx: TaskContext) -> None: ...

    for function in (unannotated, anything, perhaps):
        with pytest.raises(InvalidTask, match=r"write \((ctx|context|run): TaskContext, …\)"):
            work.task()(function)
    for misplaced in (second, named):
        with pytest.raises(InvalidTask, match="move it to the front"):
            work.task()(misplaced)


async def test_wrong_call_is_rejected_at_enqueue(work: Batuta, clock: FakeClock) -> None:
    @work.task()
    async def send(to: str, *, subject: str = "") -> None: ...

    with pytest.raises(TypeError, match="missing a required argument: 'to'"):
        await send.enqueue()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has no parameter 'subjet': write subject=…"):
        await send.enqueue("a", subjet="b")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"options\(\) has no option 'dealy': write delay=…"):
        send.options(dealy=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="with a zone"):
        send.options(at=datetime(2026, 3, 2))
    with pytest.raises(ValueError, match="not both"):
        send.options(at=datetime(2026, 3, 2, tzinfo=UTC), delay=3)
    with pytest.raises(ValueError, match="omit key"):
        await send.options(key="k").enqueue_many([["a"], ["b"]])
    with pytest.raises(UnknownWord):
        await work.enqueue("sende", "a")


def test_handles_of_one_call_are_equal(work: Batuta) -> None:
    assert work.handle("1") == Handle("1", work.tasks) != work.handle("2")
    assert len({work.handle("1"), work.handle("1")}) == 1
