"""The part of an application that declares jobs: functions, HTTP calls and any other target on a schedule."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, Unpack
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from batuta.dispatch.job import JobOptions, JobRules, Target, make_job
from batuta.dispatch.registry import JobRegistry
from batuta.guard.circuits import Circuits
from batuta.kernel.clock import Clock
from batuta.kernel.errors import InvalidJob
from batuta.kernel.reasons import Reason
from batuta.kernel.suggestions import check_options
from batuta.receive.endpoints import DEFAULT_TIMEOUT
from batuta.targets import http_caller
from batuta.targets.call import BreakerTarget, CallTarget, JobFunction

if TYPE_CHECKING:
    from batuta.targets.http import HttpCaller

SomeJob = TypeVar("SomeJob", bound=JobFunction)
DEFAULT_SECONDS = DEFAULT_TIMEOUT.total_seconds()


class JobDeclarations:
    """Declares jobs in ``registry``. ``Batuta`` sets the attributes."""

    clock: Clock
    zone: ZoneInfo
    circuits: Circuits
    registry: JobRegistry

    def __init__(self) -> None:
        super().__init__()
        self.closers: list[Callable[[], Awaitable[None]]] = []  # closes resources other than the database
        self._http: HttpCaller | None = None

    @check_options
    def job(
        self,
        schedule: str,
        *,
        category: str = "default",
        name: str | None = None,
        timeout: float = DEFAULT_SECONDS,
        **options: Unpack[JobOptions],
    ) -> Callable[[SomeJob], SomeJob]:
        """Register a function that the scheduler calls in its own process. A function with a parameter receives the run."""

        if callable(schedule):
            why = 'its schedule is missing: write @work.job("*/5 * * * *") above it'
            raise InvalidJob(job=str(getattr(schedule, "__name__", "job")), why=why)

        def register(function: SomeJob) -> SomeJob:
            called = name or str(getattr(function, "__name__", "job"))
            self.add_job(called, schedule, CallTarget(function, self.clock), category, timeout, **options)
            return function

        return register

    @check_options
    def http_job(
        self,
        name: str,
        schedule: str,
        url: str,
        *,
        category: str = "default",
        timeout: float = DEFAULT_SECONDS,
        token: str | None = None,
        **options: Unpack[JobOptions],
    ) -> None:
        """Register a job that sends a POST request to a URL. ``token`` is sent as a bearer token."""
        self.add_job(name, schedule, self.http_target(url, token, name), category, timeout, **options)

    def http_target(self, url: str, token: str | None = None, job: str = "") -> Target:
        if urlsplit(url).scheme not in ("http", "https"):
            raise InvalidJob(
                job=job, why=Reason("job_url", "'{url}' is not an address: it begins with http:// or https://", url=url)
            )
        caller = self._caller()
        from batuta.targets.http import HttpTarget

        return HttpTarget(url, caller, token)

    def _caller(self) -> "HttpCaller":
        if self._http is None:
            self._http = http_caller(self.clock)
            self.closers.append(self._http.close)
        return self._http

    @check_options
    def add_job(
        self,
        name: str,
        schedule: str,
        target: Target,
        category: str,
        timeout: float = DEFAULT_SECONDS,
        *,
        profiles: Sequence[str] | None = None,
        circuit: str | None = None,
        **options: Unpack[JobRules],
    ) -> None:
        """Register a job with any target. ``profiles`` are the profiles that contain the job; None means all."""
        if circuit is not None:
            target = BreakerTarget(target, self.circuits.breaker(circuit), self.clock)
        job = make_job(name, schedule, target, zone=self.zone, category=category, timeout=timeout, **options)
        if circuit is not None and job.timeout > (longest := self.circuits.rule_of(circuit).probe_within):
            why = f"its timeout is longer than a probe of circuit {circuit} may take ({longest.total_seconds():g} s)"
            raise InvalidJob(job=name, why=why)
        self.registry.add(job, profiles)
