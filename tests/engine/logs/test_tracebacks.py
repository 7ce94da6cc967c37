import socket
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from batuta.kernel.calls.usercode import Raised, call_with_deadline
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import InvalidSetting, StoreUnavailable
from batuta.logs import scrubbing
from batuta.logs.scrubbing import describe, summary

LATER = datetime(2099, 1, 1, tzinfo=UTC)
CANARY = "canario de mensagem"
PHONE = "(11) 98765-4321"


def caught(raising: Callable[[], object]) -> Exception:
    try:
        raising()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def raise_it(error: BaseException) -> None:
    local = CANARY
    assert local
    raise error


def test_traceback_shows_file_line_function_and_source() -> None:
    text = describe(caught(lambda: raise_it(StoreUnavailable(where="db:5432", why="refused"))))
    assert text.startswith("Traceback (most recent call last):\n")
    assert f'File "{__file__}", line ' in text
    assert "in raise_it\n    raise error" in text
    assert text.endswith("cannot be used now (refused): check that it is running and reachable, then try again")


async def test_traceback_of_an_application_begins_in_the_application() -> None:
    async def fail() -> None:
        raise_it(ValueError())

    outcome = await call_with_deadline(fail, LATER, SystemClock(), "a test")
    assert isinstance(outcome, Raised)
    text = describe(outcome.error)
    assert "usercode.py" not in text
    assert text.splitlines()[1].endswith("in fail")


def test_files_that_call_an_application_exist() -> None:
    assert [file for file in scrubbing._CALLERS if not Path(file).is_file()] == []


async def test_traceback_that_passes_through_other_parts_of_the_engine_is_complete() -> None:
    outcome = await call_with_deadline(lambda: SystemClock().sleep("long"), LATER, SystemClock(), "a test")  # type: ignore[arg-type]
    assert isinstance(outcome, Raised)
    assert "usercode.py" in describe(outcome.error)


def test_traceback_shows_no_variables() -> None:
    assert CANARY not in describe(caught(lambda: raise_it(ValueError())))


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "Connection refused"),
        TimeoutError("took too long"),
        AttributeError("'NoneType' object has no attribute 'x'"),
        NameError("name 'x' is not defined"),
        ImportError("No module named 'x'"),
        TypeError("f() takes 1 positional argument but 2 were given"),
        IndexError("list index out of range"),
        ZeroDivisionError("division by zero"),
        InvalidSetting(name="PORT", why="it is not a number"),
        socket.gaierror(-2, "Name or service not known"),
    ],
)
def test_message_about_code_or_machines_is_shown(error: BaseException) -> None:
    assert str(error) in summary(error)


class Model(BaseModel):
    age: int


class ForeignOSError(OSError):
    """An OSError whose message quotes a URL, like those that the requests library raises."""


class ForeignTypeError(TypeError):
    pass


def not_a_model() -> ValidationError:
    error = caught(lambda: Model.model_validate({"age": CANARY}))
    assert isinstance(error, ValidationError)
    return error


@pytest.mark.parametrize(
    "error",
    [
        ValueError(CANARY),
        KeyError(CANARY),
        LookupError(CANARY),
        RuntimeError(CANARY),
        AssertionError(CANARY),
        Exception(CANARY),
        StopIteration(CANARY),
        UnicodeDecodeError("utf-8", CANARY.encode(), 0, 1, CANARY),
        ForeignOSError(CANARY),
        ForeignTypeError(CANARY),
        not_a_model(),
        sqlite3.IntegrityError(CANARY),
        SystemExit(CANARY),
    ],
)
def test_any_other_message_is_withheld(error: BaseException) -> None:
    assert "<message withheld: BATUTA_SHOW_ERRORS=1 shows it>" in summary(error)
    assert CANARY not in summary(error)
    assert type(error).__name__ in summary(error)


def test_shown_message_is_masked() -> None:
    assert PHONE not in summary(OSError(f"no such file: {PHONE}"))
    assert summary(StoreUnavailable(where="x", why=PHONE)).count("[telefone]") == 1


def test_empty_message_is_not_marked_as_withheld() -> None:
    assert summary(ValueError()) == "ValueError"
    assert summary(TimeoutError()) == "TimeoutError"


def test_error_code_of_the_database_is_shown() -> None:
    def twice() -> None:
        connection = sqlite3.connect(":memory:")
        try:
            connection.execute("CREATE TABLE t (x PRIMARY KEY)")
            connection.executemany("INSERT INTO t VALUES (?)", [(CANARY,), (CANARY,)])
        finally:
            connection.close()

    text = summary(caught(twice))
    assert (
        text
        == "sqlite3.IntegrityError (SQLITE_CONSTRAINT_PRIMARYKEY): <message withheld: BATUTA_SHOW_ERRORS=1 shows it>"
    )


def chained() -> None:
    try:
        raise_it(KeyError(CANARY))
    except KeyError as first:
        try:
            raise ValueError(CANARY) from first
        except ValueError:
            raise StoreUnavailable(where="db", why="refused") from None


def test_exception_chain_is_shown_in_the_order_and_words_of_python() -> None:
    def causes() -> None:
        try:
            raise_it(KeyError(CANARY))
        except KeyError as first:
            raise ValueError(CANARY) from first

    def happens_meanwhile() -> None:
        try:
            causes()
        except ValueError:
            raise_it(RuntimeError(CANARY))

    text = describe(caught(happens_meanwhile))
    words = [
        "KeyError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>",
        "The above exception was the direct cause of the following exception:",
        "ValueError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>",
        "During handling of the above exception, another exception occurred:",
        "RuntimeError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>",
    ]
    assert [text.index(word) for word in words] == sorted(text.index(word) for word in words)
    assert CANARY not in text


def test_suppressed_context_is_not_shown() -> None:
    assert "ValueError" not in describe(caught(chained))


def test_every_member_of_a_group_is_shown_without_its_message() -> None:
    group = ExceptionGroup(CANARY, [ValueError(CANARY), ExceptionGroup("in", [caught(chained), KeyError(CANARY)])])
    text = describe(group)
    assert text.startswith("ExceptionGroup: <message withheld: BATUTA_SHOW_ERRORS=1 shows it> (2 sub-exceptions)")
    assert "ValueError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>" in text
    assert "StoreUnavailable: the database at db" in text
    assert "KeyError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>" in text
    assert CANARY not in text


def test_recursive_chain_is_cut() -> None:
    first, second = ValueError(), KeyError()
    first.__context__, second.__context__ = second, first
    assert describe(first).count("ValueError") == 1


def test_very_long_chain_is_cut() -> None:
    error = ValueError()
    for _ in range(5000):
        outer = ValueError()
        outer.__cause__ = error
        error = outer
    assert describe(error).count("ValueError") < 50


def test_very_deep_stack_is_cut_to_its_innermost_frames() -> None:
    def fall(depth: int) -> None:
        if depth == 0:
            raise_it(OSError("ground"))
        fall_on(depth - 1)

    # two functions, because Python folds the repeated frames of a single recursive function
    def fall_on(depth: int) -> None:
        fall(depth)

    text = describe(caught(lambda: fall(300)))
    assert len(text.splitlines()) < 100
    assert "in raise_it" in text


def test_exception_note_is_not_shown() -> None:
    error = OSError("disk full")
    error.add_note(CANARY)
    assert CANARY not in describe(error)


def test_source_line_is_masked() -> None:
    def with_a_literal() -> None:
        raise OSError("call (11) 98765-4321")

    text = describe(caught(with_a_literal))
    assert 'raise OSError("call [telefone]")' in text
    assert PHONE not in text
