"""What an application shows of its own work on the first page: figures, and what is on its way. ``says`` names one of its texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Tone(StrEnum):
    """How something is, in the words the page has signs and colours for."""

    OK = "ok"
    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"
    DEGRADED = "degraded"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """``of``: how many there could be."""

    says: str
    value: int | timedelta
    of: int | None = None
    tone: Tone = Tone.WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Something that goes on until it is done: so many of so many. ``besides``: in the order of the board's ``columns``."""

    name: str
    state: str  # names a text
    tone: Tone
    done: int
    of: int
    besides: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """``columns``: of its courses: what they are, their state, how far they got, and whatever is told besides."""

    says: str
    figures: Sequence[Figure]
    columns: Sequence[str] = ()
    courses: Sequence[Course] = ()
