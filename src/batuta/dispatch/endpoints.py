"""The registry of job handlers: ``POST /jobs/<endpoint>`` runs what is registered here, and nothing else."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from batuta.dispatch.answer import JobAnswer
from batuta.kernel.errors import InvalidName
from batuta.kernel.nearest import nearest

_FORM = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
DEFAULT_TIMEOUT = timedelta(seconds=300)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCall:
    """One call of an endpoint, as its handler sees it. ``by``: who called, where somebody did."""

    key: str
    params: Mapping[str, str]
    started_at: datetime
    deadline: datetime
    by: str | None = None


Handler: TypeAlias = Callable[[JobCall], Awaitable[JobAnswer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """``apart_by``: parameters that make two calls different work, so that they may run side by side.

    ``finished``: False where the handler says honestly that its work is not there yet.
    """

    name: str
    handler: Handler
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
        handler: Handler,
        *,
        timeout: timedelta = DEFAULT_TIMEOUT,
        manual: bool = False,
        apart_by: tuple[str, ...] = (),
        finished: bool = True,
    ) -> None:
        """``manual``: on purpose in nobody's schedule."""
        if not _FORM.match(name):
            raise InvalidName(name=name, kind="job endpoint", why="it is written in small letters and hyphens")
        if name in self._endpoints:
            raise InvalidName(name=name, kind="job endpoint", why="another handler has it already")
        if timeout <= timedelta(0):
            raise InvalidName(name=name, kind="job endpoint", why="its timeout must be longer than nothing")
        self._endpoints[name] = Endpoint(
            name=name, handler=handler, timeout=timeout, manual=manual, apart_by=apart_by, finished=finished
        )

    def find(self, name: str) -> Endpoint | None:
        return self._endpoints.get(name)

    def nearest(self, name: str) -> str | None:
        return nearest(name, self._endpoints)

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._endpoints.values())
