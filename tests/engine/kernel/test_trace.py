"""The W3C trace context is parsed strictly, passed on, and added to every log line."""

import asyncio
import io
import logging
import random
from contextvars import copy_context

import pytest

from batuta.kernel import trace
from batuta.kernel.ids import Ids
from batuta.testing import FakeClock
from tests.engine.logs.log_lines import json_lines, logging_to

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_written_traceparent_reads_back() -> None:
    for _ in range(200):
        begun = trace.begin()
        assert trace.read(begun.traceparent) == begun
    assert trace.read(GIVEN) == trace.Trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "01")


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "",
        7,
        b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        GIVEN.upper(),
        GIVEN + " ",
        GIVEN + "\n",
        GIVEN + "-more",  # version 00 has no such field
        GIVEN[:-1],
        "ff" + GIVEN[2:],
        "0x" + GIVEN[2:],
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        "00-00000000000000000000551190000001-b7ad6b7169203331-01",  # contains a phone number
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-" + "x" * 600,
        "٠٠-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ],
)
def test_malformed_traceparent_is_replaced(wrong: object) -> None:
    assert trace.read(wrong) is None
    followed = trace.follow(wrong)
    assert trace.read(followed.traceparent) == followed
    assert followed.trace_id not in str(wrong)


def test_traceparent_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    followed = trace.follow("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-what-will-be")
    assert followed.traceparent.startswith("00-0af7651916cd43dd8448eb211c80319c-")
    assert followed.flags == "01"


def test_child_keeps_the_trace_and_has_its_own_span() -> None:
    first = trace.follow(GIVEN)
    assert (first.trace_id, first.flags) == ("0af7651916cd43dd8448eb211c80319c", "01")
    assert len({first.span_id, first.child().span_id, "b7ad6b7169203331"}) == 3


def test_run_has_the_trace_of_its_id_in_every_process(clock: FakeClock) -> None:
    id = Ids(clock).new()
    assert trace.trace_of_run(id).trace_id == trace.trace_of_run(id).trace_id == id.replace("-", "")
    assert trace.read(trace.trace_of_run("run-1").traceparent) is not None


def test_every_log_line_has_its_trace_also_those_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "getrandbits", lambda bits: int("a1" * (bits // 8), 16))

    def speak() -> None:
        trace.bind(trace.follow(GIVEN))
        logging.getLogger("some.library").warning("hello", extra={"trace_id": "forged"})

    with logging_to(stream := io.StringIO(), "json"):
        copy_context().run(speak)
        logging.getLogger("some.library").warning("outside")
        inside, outside = json_lines(stream)
    assert (inside["trace_id"], inside["span_id"]) == ("0af7651916cd43dd8448eb211c80319c", "a1" * 8)
    assert "trace_id" not in outside


async def test_subtask_inherits_the_trace_and_a_sibling_does_not() -> None:
    async def work(given: str) -> tuple[str, str]:
        trace.bind(trace.follow(given))
        await asyncio.sleep(0)
        return trace.onward()[3:35], await asyncio.create_task(inner())

    async def inner() -> str:
        return trace.onward()[3:35]

    other = GIVEN.replace("0af7", "1bf8")
    mine, theirs = await asyncio.gather(work(GIVEN), work(other))
    assert (mine, theirs) == ((GIVEN[3:35],) * 2, (other[3:35],) * 2)
    assert trace.current() is None
