"""All processes write their output to one stream."""

import io
import threading

import pytest

from batuta.cli import output
from batuta.cli.output import ASK_AGAIN, OutputMux, ReadyBanner
from batuta.supervise.loop import Idle
from batuta.testing import FakeClock

NAMES = ["up", "api", "worker-1"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class StoppedTerminal(Terminal):
    """A terminal that was stopped with Ctrl-S: each write blocks until ``let_go`` is set. When the line ``last`` is
    written, ``caught_up`` is set.
    """

    def __init__(self, last: str) -> None:
        super().__init__()
        self.held, self.let_go, self.caught_up = threading.Event(), threading.Event(), threading.Event()
        self._last = last

    def write(self, text: str, /) -> int:
        self.held.set()
        self.let_go.wait(60)
        written = super().write(text)
        if text.strip() == self._last:
            self.caught_up.set()
        return written


def printed(*, prefixed: bool, coloured: bool) -> str:
    out = Terminal()
    mux = OutputMux(out, NAMES, prefixed=prefixed, coloured=coloured)
    mux.say("api", "one")
    mux.say("worker-1", "two")
    mux.stream("up").write("three\nfo")
    mux.close()
    return out.getvalue()


def test_each_line_begins_with_its_process() -> None:
    assert printed(prefixed=True, coloured=False) == "api      | one\nworker-1 | two\nup       | three\n"


def test_json_lines_have_no_prefix() -> None:
    assert printed(prefixed=False, coloured=False) == "one\ntwo\nthree\n"


def test_each_process_name_has_its_colour() -> None:
    one, two, _ = printed(prefixed=True, coloured=True).splitlines()
    assert one.startswith("\x1b[33mapi      |\x1b[0m one")
    assert two.split("m", 1)[0] != one.split("m", 1)[0]


def test_stopped_terminal_blocks_no_process_and_dropped_lines_are_counted() -> None:
    out = StoppedTerminal(last="9")
    mux = OutputMux(out, NAMES, prefixed=False, coloured=False, most=10)
    mux.say("api", "first")
    assert out.held.wait(60)
    for number in range(15):
        mux.say("api", str(number))
    out.let_go.set()
    assert out.caught_up.wait(60)
    mux.say("api", "last")
    mux.close()
    lines = out.getvalue().splitlines()
    assert lines == ["first", *map(str, range(10)), "… 5 lines dropped: the terminal was too slow", "last"]


class ClosedTerminal(Terminal):
    """A pipe whose reader has exited. It counts the lines that it refuses."""

    refused = 0

    def write(self, text: str, /) -> int:
        self.refused += 1
        raise BrokenPipeError


def test_closed_reader_stops_neither_the_process_nor_the_writing_thread() -> None:
    out = ClosedTerminal()
    mux = OutputMux(out, NAMES, prefixed=False, coloured=False)
    for line in ("one", "two", "three"):
        mux.say("api", line)
    mux.close()
    assert out.refused == 3


def test_long_lines_are_dropped_before_they_fill_the_memory() -> None:
    out = StoppedTerminal(last="9")
    mux = OutputMux(out, NAMES, prefixed=False, coloured=False, most_characters=1000)
    mux.say("api", "first")
    assert out.held.wait(60)
    for _ in range(15):
        mux.say("api", "x" * 100)
    mux.say("api", "9")
    out.let_go.set()
    mux.close()
    lines = out.getvalue().splitlines()
    assert lines.count("x" * 100) == 9
    assert lines[-1] == "9" or "dropped" in lines[-1]


def test_characters_outside_the_terminal_encoding_are_escaped() -> None:
    taken = io.BytesIO()
    out = io.TextIOWrapper(taken, encoding="ascii", write_through=True)
    mux = OutputMux(out, NAMES, prefixed=False, coloured=False)
    mux.say("api", "começou \udcff")
    mux.close()
    assert taken.getvalue() == b"come\\xe7ou \\udcff\n"


async def test_address_is_printed_once_after_every_child_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    ready, announced = [False], []
    monkeypatch.setattr(output, "answers", lambda address: True)
    banner = ReadyBanner("http://127.0.0.1:1", lambda: ready[0], lambda: announced.append(1), FakeClock())
    await banner.tick()
    assert announced == []
    ready[0] = True
    await banner.tick()
    await banner.tick()
    assert announced == [1]


async def test_banner_polls_only_between_readiness_and_the_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    ready, answers, clock = [False], [False], FakeClock()
    monkeypatch.setattr(output, "answers", lambda address: answers[0])
    banner = ReadyBanner("http://127.0.0.1:1", lambda: ready[0], lambda: None, clock)
    assert await banner.tick() == Idle()  # no poll is planned; the banner is woken when a child becomes ready
    ready[0] = True
    assert await banner.tick() == Idle(clock.now() + ASK_AGAIN)
    answers[0] = True
    assert await banner.tick() == Idle()
