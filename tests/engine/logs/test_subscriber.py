import io
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import (
    ChildEnded,
    ChildLooping,
    ChildReady,
    ChildRecovered,
    ChildSilent,
    Event,
    ItemCrashed,
    JobAnswered,
    JobCrashed,
    LoopEnded,
    LoopFailed,
    LoopRecovered,
    MigrationApplied,
    ProcessStarted,
    RequestAnswered,
    RequestCrashed,
    SettingWarned,
    SubscriberFailed,
    SwitchChanged,
)
from batuta.kernel.masking import is_sensitive
from batuta.logs import LogSubscriber
from batuta.logs.subscriber import LINES, field_label
from batuta.texts import Wording
from scripts.public_api import list_events
from tests.engine.logs.log_lines import json_lines, logging_to

SECOND = timedelta(seconds=1)
BRASILIA = timezone(timedelta(hours=-3))
KINDS = list_events()


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    with logging_to(stream := io.StringIO(), "json"):
        yield stream


def log_line(stream: io.StringIO, event: Event) -> dict[str, Any]:
    stream.truncate(stream.seek(0))
    LogSubscriber()(event)
    (line,) = json_lines(stream)
    return line


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_has_a_line(kind: type) -> None:
    assert kind in LINES


def test_no_line_is_left_for_a_removed_event() -> None:
    assert set(LINES) <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_no_event_field_is_hidden_or_replaces_a_standard_field(kind: type) -> None:
    for field in fields(kind):
        name = field_label(kind, field.name)
        assert not is_sensitive(name)
        assert name not in {"timestamp", "level", "event", "service", "logger", "exception", "exc_info"}


def test_application_has_its_own_phrases_and_field_names(stream: io.StringIO) -> None:
    wording = Wording(phrases={ProcessStarted: lambda event: f"hello {event.role}"}, fields={"version": "edition"})
    LogSubscriber(wording)(ProcessStarted("jobs", "0.1.0", datetime(2026, 1, 5, 9, 0, tzinfo=BRASILIA)))
    (line,) = json_lines(stream)
    assert (line["event"], line["edition"], "version" in line) == ("hello jobs", "0.1.0", False)


def test_process_start_shows_the_local_time(stream: io.StringIO) -> None:
    line = log_line(stream, ProcessStarted("jobs", "0.1.0", datetime(2026, 1, 5, 9, 0, tzinfo=BRASILIA)))
    assert line["event"] == "process started at 2026-01-05 09:00:00 -0300"
    assert line["local_time"] == "2026-01-05T09:00:00-03:00"
    assert line["role"] == "jobs"
    assert line["level"] == "info"


@pytest.mark.parametrize("outcome", ["error", "timeout"])
def test_failed_job_is_logged_as_fail(stream: io.StringIO, outcome: str) -> None:
    line = log_line(stream, JobAnswered("sincronizar", outcome, "no answer", None, SECOND * 1.23456))
    assert "FAIL" in line["event"]
    assert line["level"] == "error"
    assert (line["endpoint"], line["outcome"], line["took"]) == ("sincronizar", outcome, 1.235)


@pytest.mark.parametrize("outcome", ["ok", "partial", "skipped"])
def test_job_that_did_not_fail_is_not_logged_as_fail(stream: io.StringIO, outcome: str) -> None:
    line = log_line(stream, JobAnswered("sincronizar", outcome, None, 3, SECOND))
    assert "FAIL" not in line["event"]
    assert line["level"] == "info"


@pytest.mark.parametrize(
    ("status", "level"), [(200, "info"), (404, "info"), (499, "info"), (500, "error"), (503, "error")]
)
def test_only_server_errors_are_logged_as_errors(stream: io.StringIO, status: int, level: str) -> None:
    assert log_line(stream, RequestAnswered("GET", "/x/{id}", status, SECOND, "r1", "token ana"))["level"] == level


@pytest.mark.parametrize(("method", "status"), [("GET", 404), ("POST", 401), ("PUT", 405), ("GET", 400), ("GET", 200)])
def test_request_that_anybody_may_send_adds_no_line(stream: io.StringIO, method: str, status: int) -> None:
    assert log_line(stream, RequestAnswered(method, "/x", status, SECOND, "r1"))["level"] == "debug"


def test_successful_health_request_is_logged_at_debug(stream: io.StringIO) -> None:
    assert log_line(stream, RequestAnswered("GET", "/health/ready", 200, SECOND, "r1"))["level"] == "debug"
    assert log_line(stream, RequestAnswered("GET", "/health/ready", 503, SECOND, "r1"))["level"] == "error"


def failure(number: int) -> LoopFailed:
    return LoopFailed("sync", StoreUnavailable(where="db", why="refused"), number, SECOND)


def test_outage_is_logged_at_growing_intervals_and_with_its_traceback_once(stream: io.StringIO) -> None:
    lines = [log_line(stream, failure(number)) for number in range(1, 17)]
    assert [number for number, line in enumerate(lines, 1) if line["level"] == "warning"] == [1, 2, 4, 8, 16]
    assert {line["level"] for line in lines} == {"warning", "debug"}
    assert [number for number, line in enumerate(lines, 1) if "exception" in line] == [1]
    assert all(line["error"].startswith("batuta.kernel.errors.StoreUnavailable: the database at db") for line in lines)


def crashed() -> ValueError:
    try:
        raise ValueError("canary")
    except ValueError as error:
        return error


@pytest.mark.parametrize(
    "event",
    [
        RequestCrashed("GET", "/x", crashed(), "r1"),
        JobCrashed("sincronizar", crashed()),
        SubscriberFailed("metrics", "ItemSettled", crashed()),
    ],
)
def test_crash_is_logged_with_its_traceback_and_without_its_message(stream: io.StringIO, event: Event) -> None:
    line = log_line(stream, event)
    assert line["level"] == "error"
    assert line["error"] == "ValueError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>"
    assert "in crashed\n" in line["exception"]
    assert line["exception"].endswith("ValueError: <message withheld: BATUTA_SHOW_ERRORS=1 shows it>")


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (ChildEnded("jobs", 7, 0, None), "info"),
        (ChildEnded("jobs", 7, 0, SECOND), "warning"),
        (ChildEnded("jobs", 7, 1, None), "warning"),
        (ChildEnded("jobs", 7, 75, SECOND), "info"),
        (ChildReady("jobs", 7, SECOND), "info"),
        (ChildRecovered("jobs", 5), "info"),
        (LoopEnded("sync", True), "debug"),
        (LoopEnded("sync", False), "warning"),
        (LoopRecovered("sync", 3, SECOND), "info"),
        (MigrationApplied("0001_engine", SECOND), "info"),
    ],
)
def test_event_that_needs_attention_is_a_warning(stream: io.StringIO, event: Event, level: str) -> None:
    assert log_line(stream, event)["level"] == level


def test_switch_line_shows_on_or_off(stream: io.StringIO) -> None:
    on = log_line(stream, SwitchChanged("pausa", True, "op", "teste", datetime(2026, 1, 5, tzinfo=BRASILIA)))
    off = log_line(stream, SwitchChanged("pausa", False, "op", "teste", None))
    assert (on["event"], off["event"]) == ("switch turned on", "switch turned off")
    assert (on["key"], on["until"], off["until"]) == ("pausa", "2026-01-05T00:00:00-03:00", None)


def test_misspelt_setting_is_logged_with_the_nearest(stream: io.StringIO) -> None:
    line = log_line(stream, SettingWarned("LOG_LEVL", "LOG_LEVEL"))
    assert line["event"] == "LOG_LEVL is not a setting: did you mean LOG_LEVEL?"
    assert (line["setting"], line["nearest"], line["level"]) == ("LOG_LEVL", "LOG_LEVEL", "warning")


def test_failed_subscriber_is_logged_with_its_event(stream: io.StringIO) -> None:
    line = log_line(stream, SubscriberFailed("metrics", "ItemSettled", crashed()))
    assert (line["event"], line["failed_on"]) == ("subscriber failed", "ItemSettled")


def test_watchdog_lines_contain_its_keyword(stream: io.StringIO) -> None:
    silent = log_line(stream, ChildSilent("worker-2", 7, 31 * SECOND, "stopped"))
    assert silent["event"] == "[WATCHDOG] worker-2 silent for 31 s (stopped): ending it"
    looping = log_line(stream, ChildLooping("api", 5, 600 * SECOND, 60 * SECOND))
    assert looping["event"] == "[WATCHDOG] api ended 5 times in 10 min: crash loop, restarted every 60 s"
    assert silent["level"] == looping["level"] == "error"


def test_end_of_a_child_is_logged_with_its_cause_and_stack(stream: io.StringIO) -> None:
    line = log_line(stream, ChildEnded("worker", 7, -6, SECOND, "killed by SIGABRT", 'File "a.py", line 1 in f'))
    assert line["event"] == "child worker ended with an error: killed by SIGABRT; restart in 1.0 s"
    assert line["stack"] == 'File "a.py", line 1 in f'


def test_error_of_a_handler_is_a_failure_and_not_a_crash(stream: io.StringIO) -> None:
    assert log_line(stream, ItemCrashed("mail", "1", ValueError(), "send"))["event"] == "task failed"
    assert log_line(stream, ItemCrashed("orders.fetch", "1", ValueError()))["event"] == "item failed"
