"""The methods of ``Batuta`` that declare jobs: functions, HTTP calls and other targets with a schedule."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, Unpack, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from batuta.config import find_zone
from batuta.dispatch.job import JobOptions, JobRules, Target, make_job, schedule_text
from batuta.dispatch.plan import PAUSE_ALL, pause_of_category, pause_of_job
from batuta.dispatch.registry import JobRegistry
from batuta.engine.extension import Extension
from batuta.guard.circuits import Circuits
from batuta.guard.switches import SwitchRule
from batuta.kernel.calls.middleware import Around
from batuta.kernel.clock import Clock
from batuta.kernel.errors import InvalidJob, InvalidName
from batuta.kernel.reasons import Reason
from batuta.kernel.suggestions import check_options, unknown
from batuta.queue.item import pause_of_queue
from batuta.receive.endpoints import DEFAULT_TIMEOUT
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.controls import SqlSwitches
from batuta.targets import http_caller
from batuta.targets.call import BreakerTarget, CallTarget, JobFunction

if TYPE_CHECKING:
    from batuta.targets.http import HttpCaller

# The responses that an HTTP job accepts: ``2xx`` accepts any success status, ``json`` also requires a JSON object or an
# empty body.
Expect: TypeAlias = Literal["2xx", "json"]
SomeJob = TypeVar("SomeJob", bound=JobFunction)
EVERYTHING = frozenset({"all", "tudo"})
DEFAULT_SECONDS = DEFAULT_TIMEOUT.total_seconds()


class JobDeclarations:
    """Base class of ``Batuta`` with the methods that declare jobs in ``registry``. ``Batuta`` sets the attributes."""

    clock: Clock
    zone: ZoneInfo
    circuits: Circuits
    registry: JobRegistry
    around: Around
    switches: SqlSwitches
    extension: Extension

    @property
    def queues(self) -> Mapping[str, SqlQueue]:
        """All queues by name, including the stages of pipelines."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.closers: list[Callable[[], Awaitable[None]]] = []  # functions that close resources other than the database
        self._http: HttpCaller | None = None

    @check_options
    async def pause(self, name: str, *, reason: str = "-", seconds: float | None = None, by: str = "program") -> None:
        """Pause a job, a category, a queue or ``all`` in every process, as ``batuta pause`` does. ``seconds``
        limits the pause. Fires during the pause are recorded as skipped.
        """
        now, rule = self.clock.now(), self.find_pause(name)
        until = None if seconds is None else now + timedelta(seconds=seconds)
        await self.switches.set(rule.key, rule.hold_when, by=by, reason=reason, now=now, until=until)

    @check_options
    async def resume(self, name: str, *, reason: str = "-", by: str = "program") -> None:
        """End a pause. Another pause, for example one on the job's category, may still hold the job back."""
        rule = self.find_pause(name)
        await self.switches.set(rule.key, not rule.hold_when, by=by, reason=reason, now=self.clock.now(), until=None)

    def find_pause(self, word: str, spoken: Callable[[str], str] = str) -> SwitchRule:
        """Return the rule of the switch that an operator names with ``word``. The word is ``all``, a category, a job, a
        queue, or a switch of the application. ``spoken`` maps a category to the word that operators use for it.
        """
        if word in EVERYTHING:
            return SwitchRule(key=PAUSE_ALL)
        kind, colon, name = word.rpartition(":")
        jobs, categories = {job.name for job in self.registry}, self.registry.categories
        category = next((each for each in categories if name in (each, spoken(each))), None)
        found = {
            "switch": self.extension.switches.get(name),
            "category": None if category is None else SwitchRule(key=pause_of_category(category)),
            "job": SwitchRule(key=pause_of_job(name)) if name in jobs else None,
            "queue": SwitchRule(key=pause_of_queue(name)) if name in self.queues else None,
        }
        rules = {of: rule for of, rule in found.items() if rule is not None and (not colon or of == kind)}
        if len(rules) > 1:
            words = " | ".join(f"{of}:{name}" for of in rules)
            why = Reason("ambiguous", "it is ambiguous: write {words}", words=words)
            raise InvalidName(name=name, kind="pause", why=why)
        if not rules:
            # Do not suggest "all": after a typing error it would pause everything.
            known = [*categories, *sorted(jobs), *self.queues, *self.extension.switches] or ["all"]
            raise unknown("job, queue or category", word, known)
        return next(iter(rules.values()))

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
            _refuse_parameters(called, function)
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

        A 2xx response is a success, unless it is a JSON object whose ``status`` reports another outcome. With
        ``expect="json"`` the response must be a JSON object or empty, so that an HTML page from a proxy is recorded as
        an error.
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


def _refuse_parameters(job: str, function: JobFunction) -> None:
    """Raise InvalidJob if the function requires more than one argument, because a job passes only the run."""
    parameters = inspect.signature(function).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = [each for each in parameters if each.default is each.empty and each.kind not in variadic]
    if len(required) > 1 or any(each.kind is each.KEYWORD_ONLY for each in required):
        names = ", ".join(each.name for each in required)
        why = f"its function requires ({names}), but a job passes only the run: give the others a default"
        raise InvalidJob(job=job, why=why)
