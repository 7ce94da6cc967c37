"""Registry of the jobs in all profiles. Operators select the active profile, and the database stores their choice."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from batuta.dispatch.job import Job
from batuta.kernel.errors import InvalidJob
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import Json, dumps
from batuta.kernel.suggestions import unknown
from batuta.runlog.log import Controls, OwnTimetable
from batuta.schedule.window import Window, encode_window

ONLY_PROFILE = "default"


class JobRegistry:
    """The jobs of every profile. The profile ``first`` is active until an operator selects another profile."""

    def __init__(
        self,
        profiles: Collection[str] = (ONLY_PROFILE,),
        first: str | None = None,
        windows: Mapping[str, Window] = MappingProxyType({}),
    ) -> None:
        self.profiles = tuple(profiles)
        self.windows = dict(windows)
        self._jobs: dict[str, dict[str, Job]] = {profile: {} for profile in self.profiles}
        self.changes = 0  # incremented with each declared job, so that a running scheduler notices a new job
        self.first = self.require_profile(first or self.profiles[0])

    def add(self, job: Job, profiles: Collection[str] | None = None) -> None:
        """Declare a job in the given profiles, or in every profile if ``profiles`` is None."""
        if job.window is not None and job.window not in self.windows:
            raise InvalidJob(
                job=job.name, why=Reason("job_no_window", "there is no window '{window}'", window=job.window)
            )
        for profile in self.profiles if profiles is None else profiles:
            jobs = self._jobs[self.require_profile(profile)]
            if job.name in jobs:
                raise InvalidJob(job=job.name, why=Reason("job_taken", "another job has this name"))
            jobs[job.name] = job
        self.changes += 1

    def timetable(self, controls: Controls) -> Mapping[str, Job]:
        """Return, by name, the jobs of the active profile. A job with a window fires when the window opens.
        ``controls`` contains the profile and the windows that operators have set.
        """
        profile = self.profile(controls)
        windows = self.windows_now(controls)
        return {
            name: job if job.window is None else job.at(windows[job.window])
            for name, job in self._jobs[profile].items()
        }

    def profile(self, controls: Controls) -> str:
        # If the selected profile no longer exists in the code, use the first profile, so that jobs are still scheduled.
        return controls.profile if controls.profile in self._jobs else self.first

    def windows_now(self, controls: Controls) -> Mapping[str, Window]:
        return {**self.windows, **{name: each for name, each in controls.windows.items() if name in self.windows}}

    def require_profile(self, word: str) -> str:
        return _require_known(word, self.profiles, "profile")

    def require_window(self, word: str) -> str:
        return _require_known(word, tuple(self.windows), "window")

    def find(self, name: str, controls: Controls) -> Job:
        """Return the job with this name, as it is currently scheduled. If the active profile lacks the job, return it
        from another profile, because an operator may run a job of any profile.
        """
        now = self.timetable(controls)
        job = now.get(name) or self.find_declared(_require_known(name, tuple(sorted(self.names)), "job"))
        assert job is not None
        return job

    def find_declared(self, name: str) -> Job | None:
        """Return the job with this name from the first profile that declares the job. Return None if this release does
        not declare it.
        """
        return next((job for job in self if job.name == name), None)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(job.name for job in self)

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(job.category for job in self))

    def own(self, release: str | None = None) -> OwnTimetable:
        """Return the identity of this process's timetable. Its fingerprint changes when the jobs, schedules, windows,
        profiles or release name change.
        """
        content = {
            "release": release,
            "profiles": self.profiles,
            "first": self.first,
            "windows": {name: encode_window(window) for name, window in sorted(self.windows.items())},
            "jobs": {
                profile: [_schedule(job) for _, job in sorted(jobs.items())] for profile, jobs in self._jobs.items()
            },
        }
        fingerprint = hashlib.sha256(dumps(content).encode()).hexdigest()[:16]
        return OwnTimetable(fingerprint=fingerprint, jobs=len(self.names), release=release)

    def __iter__(self) -> Iterator[Job]:
        """Iterate over every job of every profile."""
        for jobs in self._jobs.values():
            yield from jobs.values()

    def __contains__(self, name: object) -> bool:
        return any(job.name == name for job in self)

    def __len__(self) -> int:
        return sum(len(jobs) for jobs in self._jobs.values())


def _schedule(job: Job) -> list[Json]:
    return [
        job.name,
        job.category,
        job.cron.text,
        job.zone.key,
        job.window,
        job.catch_up.value,
        job.max_age.total_seconds(),
        job.overlap.value,
        job.jitter.total_seconds(),
        [[rule.key, rule.hold_when, rule.default] for rule in job.holds],
    ]


def _require_known(word: str, known: Collection[str], kind: str) -> str:
    if word in known:
        return word
    raise unknown(kind, word, known)
