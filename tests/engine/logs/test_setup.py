import asyncio
import importlib
import io
import logging
import os
import subprocess
import sys
import threading
import warnings
from datetime import datetime, timedelta, timezone

import pytest
import structlog

from batuta.kernel.errors import InvalidSetting
from batuta.logs import configure
from tests.engine.logs.log_lines import Terminal, json_lines, logging_restored, logging_to

ESCAPE = "\x1b["


def test_json_line_has_time_level_event_service_logger_and_fields_in_order() -> None:
    with logging_to(stream := io.StringIO(), "json"):
        structlog.stdlib.get_logger("ours").info("pronto", items=3, took=timedelta(seconds=1.5))
        logging.getLogger("theirs").warning("got %d of %s", 3, "five", extra={"shard": 7})
    ours, theirs = json_lines(stream)
    assert list(ours) == ["timestamp", "level", "event", "service", "logger", "items", "took"]
    assert datetime.fromisoformat(ours.pop("timestamp")).utcoffset() == timedelta(0)
    assert ours == {"level": "info", "event": "pronto", "service": "test", "logger": "ours", "items": 3, "took": 1.5}
    assert (theirs["level"], theirs["event"], theirs["logger"]) == ("warning", "got 3 of five", "theirs")
    assert (theirs["service"], theirs["shard"]) == ("test", 7)


def test_field_cannot_replace_a_standard_field() -> None:
    with logging_to(stream := io.StringIO(), "json"):
        structlog.stdlib.get_logger("x").info("a", service="forged", level="forged", timestamp="forged")
    assert "forged" not in stream.getvalue()


def test_each_line_is_one_json_object() -> None:
    with logging_to(stream := io.StringIO(), "json"):
        log = structlog.stdlib.get_logger("x")
        log.info('a "quoted"\nword with token: ', note='token: ","level', number=5511987654321, text={"a": 1})
        log.info("invalid token:", after="x")
        try:
            raise ValueError
        except ValueError:
            log.exception("broke")
    lines = json_lines(stream)
    assert len(lines) == 3
    assert lines[0]["number"] == "[telefone]"
    assert lines[1]["after"] == "x"
    assert lines[2]["exception"].endswith("ValueError")


def test_configuring_twice_does_not_double_lines() -> None:
    with logging_to(first := io.StringIO(), "json"):
        log = structlog.stdlib.get_logger("x")
        log.info("before")
        configure(level="INFO", format="json", stream=(second := io.StringIO()), service="test")
        log.info("after")
        logging.getLogger("y").info("after")
    assert [line["event"] for line in json_lines(first)] == ["before"]
    assert [line["event"] for line in json_lines(second)] == ["after", "after"]


def test_handler_of_a_library_is_removed() -> None:
    theirs = io.StringIO()
    library = logging.getLogger("library.with.handler")
    with logging_restored():
        library.addHandler(logging.StreamHandler(theirs))
        library.propagate = False
        configure(level="INFO", format="json", stream=(ours := io.StringIO()), service="test")
        library.info("hello")
    assert theirs.getvalue() == ""
    assert len(json_lines(ours)) == 1


@pytest.mark.parametrize("level", ["warning", "WARNING"])
def test_lines_below_the_level_are_not_written(level: str) -> None:
    with logging_to(stream := io.StringIO(), "json", level):
        structlog.stdlib.get_logger("x").info("quiet")
        logging.getLogger("y").info("quiet")
        structlog.stdlib.get_logger("x").warning("loud")
    assert [line["event"] for line in json_lines(stream)] == ["loud"]


def test_unknown_level_is_refused() -> None:
    with logging_restored(), pytest.raises(InvalidSetting, match="LOG_LEVEL"):
        configure(level="loud", format="json", stream=io.StringIO(), service="test")


def test_auto_is_pretty_on_a_terminal_and_json_elsewhere() -> None:
    with logging_to(terminal := Terminal(), "auto"):
        logging.getLogger("x").info("hello")
    with logging_to(pipe := io.StringIO(), "auto"):
        logging.getLogger("x").info("hello")
    assert not terminal.getvalue().startswith("{")
    assert "hello" in terminal.getvalue()
    assert json_lines(pipe)[0]["event"] == "hello"


def test_only_terminals_that_accept_colour_get_it() -> None:
    with logging_to(terminal := Terminal(), "pretty"):
        logging.getLogger("x").info("hello")
    with logging_to(pipe := io.StringIO(), "pretty"):
        logging.getLogger("x").info("hello")
    with logging_to(colourless := Terminal(), "pretty", colour=False):
        logging.getLogger("x").info("hello")
    with logging_to(passed_on := io.StringIO(), "pretty", colour=True):
        logging.getLogger("x").info("hello")
    assert ESCAPE in terminal.getvalue()
    assert ESCAPE not in pipe.getvalue()
    assert ESCAPE not in colourless.getvalue()
    assert ESCAPE in passed_on.getvalue()


def test_pretty_line_shows_event_fields_and_traceback() -> None:
    with logging_to(stream := io.StringIO(), "pretty"):
        try:
            raise OSError("disk full")
        except OSError:
            structlog.stdlib.get_logger("x").exception("broke", loop="sync")
    shown = stream.getvalue()
    assert "[error    ] broke" in shown
    assert "loop=sync" in shown
    assert "Traceback (most recent call last):" in shown
    assert shown.endswith("OSError: disk full\n")


def test_context_variables_are_on_every_line() -> None:
    with logging_to(stream := io.StringIO(), "json"), structlog.contextvars.bound_contextvars(request_id="r1"):
        structlog.stdlib.get_logger("x").info("hello")
    assert json_lines(stream)[0]["request_id"] == "r1"


def test_positional_arguments_are_formatted_into_the_event() -> None:
    with logging_to(stream := io.StringIO(), "json"):
        structlog.stdlib.get_logger("x").info("%d of %s", 3, {"senha": "x"})
    assert json_lines(stream)[0]["event"] == "3 of {'senha': '[oculto]'}"


def test_stack_is_shown_on_request() -> None:
    with logging_to(stream := io.StringIO(), "json"):
        structlog.stdlib.get_logger("x").info("here", stack_info=True)
        logging.getLogger("y").info("here", stack_info=True)
    for line in json_lines(stream):
        assert "test_stack_is_shown_on_request" in line["stack"]


def test_line_with_wrong_arguments_is_written_without_them() -> None:
    with logging_to(stream := io.StringIO(), "json"):
        logging.getLogger("x").info("%d of %d", "three", 5)
        logging.getLogger("x").info("%s")
    assert [line["event"] for line in json_lines(stream)] == ["%d of %d [its arguments do not fit]", "%s"]


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("canary")


def test_line_that_cannot_be_formatted_is_reported_without_its_content(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to(stream := io.StringIO(), "json"):
        logging.getLogger("x").info("see %s", Unprintable())
    line = json_lines(stream)[0]
    assert line["event"] == "a log line could not be written"
    assert line["because"] == "RuntimeError"
    assert line["of"].startswith("test_setup:")
    assert "canary" not in stream.getvalue() + "".join(capsys.readouterr())


def test_closed_stream_is_not_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to(stream := io.StringIO(), "json"):
        stream.close()
        logging.getLogger("x").info("hello")
    assert capsys.readouterr() == ("", "")


def test_python_warning_is_a_line_and_other_messages_are_withheld() -> None:
    with warnings.catch_warnings(), logging_to(stream := io.StringIO(), "json"):
        warnings.simplefilter("always")
        warnings.warn("f is old: use g", DeprecationWarning, stacklevel=1)
        warnings.warn("canary", UserWarning, stacklevel=1)
    old, quoting = json_lines(stream)
    assert old["logger"] == "py.warnings"
    assert old["level"] == "warning"
    assert old["event"].endswith("DeprecationWarning: f is old: use g")
    assert quoting["event"].endswith("UserWarning: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>")


class FailingFinalizer:
    def __del__(self) -> None:
        raise ValueError("canary")


def test_uncaught_exception_is_a_line() -> None:
    with logging_to(stream := io.StringIO(), "json"):
        try:
            raise ValueError("canary")
        except ValueError as error:
            sys.excepthook(type(error), error, error.__traceback__)
        FailingFinalizer()
        thread = threading.Thread(target=os.environ.__getitem__, args=["NO SUCH THING"])
        thread.start()
        thread.join()
    main, ignored, other = json_lines(stream)
    assert main["level"] == other["level"] == "critical"
    assert ignored["exception"].endswith("ValueError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>")
    assert main["exception"].endswith("ValueError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>")
    assert other["exception"].endswith("KeyError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>")


def test_asyncio_failure_shows_no_argument_and_no_message() -> None:
    def fail(word: str) -> None:
        raise ValueError(word)

    async def forget(word: str) -> None:
        asyncio.get_running_loop().call_soon(fail, word)
        asyncio.get_running_loop().create_future().set_exception(ValueError(word))
        await asyncio.sleep(0)

    with logging_to(stream := io.StringIO(), "json"):
        asyncio.run(forget("canary"))
    future, callback = [line for line in json_lines(stream) if line["level"] == "error"]
    assert callback["logger"] == future["logger"] == "asyncio"
    assert callback["event"].startswith("Exception in callback")
    assert future["event"].startswith("Future exception was never retrieved")
    assert callback["exception"].endswith("ValueError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>")
    assert "canary" not in stream.getvalue()


def test_import_configures_nothing() -> None:
    code = (
        "import logging, sys, warnings; before = (sys.excepthook, warnings.showwarning, logging.getLogger().handlers[:])\n"
        "import batuta.logs, structlog\n"
        "assert before == (sys.excepthook, warnings.showwarning, logging.getLogger().handlers[:])\n"
        "assert not structlog.is_configured()"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_terminal_line_shows_local_time_and_omits_known_fields() -> None:
    with logging_restored():
        configure(
            level="INFO",
            format="pretty",
            stream=(stream := io.StringIO()),
            service="api",
            zone=timezone(timedelta(hours=-3)),
        )
        for name in ("batuta", "uvicorn"):
            at_the_epoch = {
                "name": name,
                "msg": "said",
                "levelno": logging.WARNING,
                "levelname": "WARNING",
                "created": 0.0,
                "reason": None,
                "items": 0,
            }
            logging.getLogger(name).handle(logging.makeLogRecord(at_the_epoch))
    ours, theirs = stream.getvalue().splitlines()
    assert "items=0" in ours
    assert "reason" not in ours  # a field without a value
    assert ours.startswith("21:00:00 [warning  ] said")
    assert "api" not in ours
    assert "batuta" not in ours
    assert "[uvicorn]" in theirs


def test_repeated_line_of_the_event_loop_is_written_once_a_second() -> None:
    with logging_to(stream := io.StringIO(), "json"):
        loop = logging.getLogger("asyncio")
        for number in range(1000):
            loop.error("socket.accept() out of system resource", extra={"number": number})
        loop.error("another text")
    lines = [line["event"] for line in json_lines(stream)]
    assert 2 <= len(lines) <= 6  # one more line for each second that passes during the test
    assert "another text" in lines


def test_warnings_about_malformed_requests_stay_hidden_after_a_new_configuration() -> None:
    importlib.import_module("batuta.web.connections")
    logger = logging.getLogger("uvicorn.error.requests")
    with logging_to(stream := io.StringIO(), "json"):
        logger.warning("Unsupported upgrade request.")
        logger.error("Exception in ASGI application")
    assert [line["event"] for line in json_lines(stream)] == ["Exception in ASGI application"]
