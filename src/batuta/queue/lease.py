"""Whose work it is, and for how long without a sign of life."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenure:
    """``owner`` is never the same twice. A process that is silent for longer than ``lease`` loses what it holds."""

    owner: str
    lease: timedelta
