"""The timetables of the versions of the code that share a database, in the order in which they were deployed."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTimetable:
    """The jobs of this process, in all profiles. ``release``: the deployment, if the operator names it."""

    fingerprint: str
    jobs: int
    release: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    fingerprint: str
    position: int  # the order of deployment: the highest is the most recent
    jobs: int
    release: str | None
    first_seen_at: datetime
    renewals: int
    renewed_at: datetime
    renewed_by: str
    has_been_active: bool
    is_active: bool
