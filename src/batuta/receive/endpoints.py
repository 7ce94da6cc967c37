"""The registry of job endpoints (the handlers that ``POST /jobs/<endpoint>`` may run), and the replies to their
callers.

Only ``reply_status`` derives an HTTP status from an outcome, so a failed call never gets a success status.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias, assert_never

from batuta.kernel.errors import require
from batuta.kernel.reasons import Reason, describe_reason
from batuta.kernel.storage.json import Json
from batuta.kernel.storage.storable import count, json_object, mask_text
from batuta.kernel.suggestions import nearest
from batuta.kernel.values import dataclass
from batuta.queue.outcome import Cancelled, Done, Failed, Outcome, Partial, Skipped, Snooze, TimedOut
from batuta.runlog.execution import LONGEST_ERROR

LARGEST_DETAILS = 1024 * 1024


def reply_status(outcome: Outcome) -> int:
    match outcome:
        case Done() | Partial() | Skipped() | Snooze() | Cancelled():
            return 200
        case Failed(permanent=True):
            return 400  # repeating the same request cannot succeed
        case Failed():
            return 500
        case TimedOut():
            return 504
        case _:
            assert_never(outcome)


def reply_body(outcome: Outcome) -> dict[str, Json]:
    """Return the JSON body of the reply that reports the outcome. Personal data is masked because the body is both sent
    and stored.
    """
    match outcome:
        case Done(items=items, result=result):
            return {**_encode(result), "status": "ok", "items_processed": count(items)}
        case Partial(reason=reason, items=items, result=result):
            return {**_encode(result), "status": "partial", "items_processed": count(items), **_why("reason", reason)}
        case Skipped(reason=reason) | Snooze(reason=reason) | Cancelled(reason=reason):
            return {"status": "skipped", "items_processed": 0, **_why("reason", reason)}
        case Failed(error=error) | TimedOut(error=error):
            return {"status": "error", "items_processed": None, **_why("error", error)}
        case _:
            assert_never(outcome)


def _why(name: str, reason: object) -> dict[str, Json]:
    said = mask_text(reason, LONGEST_ERROR)
    return {name: str(said), **(describe_reason(said, name) if isinstance(said, Reason) else {})}


def _encode(result: Json) -> dict[str, Json]:
    if result is None:
        return {}
    if not isinstance(result, Mapping):
        return {"details": mask_text(result, LONGEST_ERROR)}
    sent = json_object(result, LARGEST_DETAILS)
    return {"details": "omitted: they are longer than 1 MB"} if sent is None else sent


def outcome_word(outcome: Outcome, body: Mapping[str, Json]) -> str:
    """Return one word that describes a call's outcome, for logs and counters."""
    return "timeout" if isinstance(outcome, TimedOut) else str(body["status"])


_FORM = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
DEFAULT_TIMEOUT = timedelta(seconds=300)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCall:
    """One call to an endpoint, as passed to its handler. ``by`` is the operator who made the call, if any."""

    key: str
    params: Mapping[str, str]
    started_at: datetime
    deadline: datetime
    by: str | None = None


JobHandler: TypeAlias = Callable[[JobCall], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A registered endpoint. Calls to it run one at a time, except that calls with different values for a parameter
    listed in ``apart_by`` may run at the same time.

    ``finished`` is false for a placeholder handler, which only reports that it is not implemented.
    """

    name: str
    handler: JobHandler
    timeout: timedelta
    manual: bool
    apart_by: tuple[str, ...]
    finished: bool = True

    def subject(self, params: Mapping[str, str]) -> str:
        parts = [f"{name}={params[name]}" for name in self.apart_by if name in params]
        return "&".join([self.name, *parts])


class JobEndpoints:
    def __init__(self) -> None:
        self._endpoints: dict[str, Endpoint] = {}

    def add(
        self,
        name: str,
        handler: JobHandler,
        *,
        timeout: timedelta = DEFAULT_TIMEOUT,
        manual: bool = False,
        apart_by: tuple[str, ...] = (),
        finished: bool = True,
    ) -> None:
        """Register the handler of a job endpoint. ``manual`` marks an endpoint that deliberately has no schedule."""
        require("job endpoint", name, _FORM.match(name), "use lower-case letters, digits and hyphens")
        require("job endpoint", name, name not in self._endpoints, "another handler has this name")
        require("job endpoint", name, timeout > timedelta(0), "its timeout must be positive")
        self._endpoints[name] = Endpoint(
            name=name, handler=handler, timeout=timeout, manual=manual, apart_by=apart_by, finished=finished
        )

    def find(self, name: str) -> Endpoint | None:
        return self._endpoints.get(name)

    def nearest(self, name: str) -> str | None:
        return nearest(name, self._endpoints)

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._endpoints.values())
