"""The part of an application that declares jobs: functions, HTTP calls and other targets with a schedule."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, Unpack, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from batuta.config import find_zone
from batuta.dispatch.job import JobOptions, JobRules, Target, make_job, schedule_text
from batuta.dispatch.registry import JobRegistry
from batuta.guard.circuits import Circuits
from batuta.kernel.clock import Clock
from batuta.kernel.errors import InvalidJob
from batuta.kernel.middleware import Around
from batuta.kernel.reasons import Reason
from batuta.kernel.suggestions import check_options
from batuta.receive.endpoints import DEFAULT_TIMEOUT
from batuta.targets import http_caller
from batuta.targets.call import BreakerTarget, CallTarget, JobFunction

if TYPE_CHECKING:
    from batuta.targets.http import HttpCaller

# The answers that an HTTP job accepts: ``2xx`` accepts any success status, ``json`` also requires a JSON object or an
# empty body.
Expect: TypeAlias = Literal["2xx", "json"]
SomeJob = TypeVar("SomeJob", bound=JobFunction)
DEFAULT_SECONDS = DEFAULT_TIMEOUT.total_seconds()


class JobDeclarations:
    """Declares jobs in ``registry``. ``Batuta`` sets the attributes."""

    clock: Clock
    zone: ZoneInfo
    circuits: Circuits
    registry: JobRegistry
    around: Around

    def __init__(self) -> None:
        super().__init__()
        self.closers: list[Callable[[], Awaitable[None]]] = []  # functions that close resources other than the database
        self._http: HttpCaller | None = None

    @check_options
    def job(
        self,
        schedule: str | None = None,
        *,
        every: timedelta | float | None = None,
        timezone: str | None = None,
        category: str = "default",
        name: str | None = None,
        timeout: float = DEFAULT_SECONDS,
        **options: Unpack[JobOptions],
    ) -> Callable[[SomeJob], SomeJob]:
        """Register a function that the scheduler calls in its own process. A function with a parameter receives the run.

        ``schedule`` is a cron expression with five fields, or with six fields of which the first is seconds. ``every``
        replaces it with an interval in seconds. ``timezone`` is the time zone of this job; the default is the
        application's time zone.
        """

        if callable(schedule):
            why = 'its schedule is missing: write @work.job("*/5 * * * *") above it'
            raise InvalidJob(job=str(getattr(schedule, "__name__", "job")), why=why)

        def register(function: SomeJob) -> SomeJob:
            called = name or str(getattr(function, "__name__", "job"))
            self.add_job(
                called,
                schedule,
                CallTarget(function, self.clock, self.around),
                category,
                timeout,
                every=every,
                timezone=timezone,
                **options,
            )
            return function

        return register

    @check_options
    def http_job(
        self,
        name: str,
        schedule: str | None,
        url: str,
        *,
        every: timedelta | float | None = None,
        timezone: str | None = None,
        category: str = "default",
        timeout: float = DEFAULT_SECONDS,
        token: str | None = None,
        expect: Expect = "2xx",
        **options: Unpack[JobOptions],
    ) -> None:
        """Register a job that sends a POST request to a URL. ``token`` is sent as a bearer token.

        Any 2xx answer is a success, unless it is a JSON object whose ``status`` says otherwise. With ``expect="json"``
        the answer must be a JSON object or empty, so that an HTML page of a proxy counts as an error.
        """
        target = self.http_target(url, token, name, expect)
        self.add_job(name, schedule, target, category, timeout, every=every, timezone=timezone, **options)

    def http_target(self, url: str, token: str | None = None, job: str = "", expect: Expect = "json") -> Target:
        if urlsplit(url).scheme not in ("http", "https"):
            raise InvalidJob(
                job=job,
                why=Reason("job_url", "'{url}' is not an address: an address begins with http:// or https://", url=url),
            )
        if expect not in (known := get_args(Expect)):
            why = Reason(
                "job_expect", "its expect is '{word}', but must be {known}", word=expect, known=" | ".join(known)
            )
            raise InvalidJob(job=job, why=why)
        caller = self._caller()
        from batuta.targets.http import HttpTarget

        return HttpTarget(url, caller, token, any_success=expect == "2xx")

    def _caller(self) -> "HttpCaller":
        if self._http is None:
            self._http = http_caller(self.clock)
            self.closers.append(self._http.close)
        return self._http

    @check_options
    def add_job(
        self,
        name: str,
        schedule: str | None,
        target: Target,
        category: str,
        timeout: float = DEFAULT_SECONDS,
        *,
        every: timedelta | float | None = None,
        timezone: str | None = None,
        profiles: Sequence[str] | None = None,
        circuit: str | None = None,
        **options: Unpack[JobRules],
    ) -> None:
        """Register a job with any target. ``profiles`` lists the profiles that contain the job; None means all."""
        if circuit is not None:
            target = BreakerTarget(target, self.circuits.breaker(circuit), self.clock)
        zone = self.zone if timezone is None else find_zone(timezone)
        text = schedule_text(name, schedule, every)
        job = make_job(name, text, target, zone=zone, category=category, timeout=timeout, **options)
        if circuit is not None and job.timeout > (longest := self.circuits.rule_of(circuit).probe_within):
            why = f"its timeout is longer than a probe of circuit {circuit} may take ({longest.total_seconds():g} s)"
            raise InvalidJob(job=name, why=why)
        self.registry.add(job, profiles)
