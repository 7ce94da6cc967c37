"""Notes of progress: how a tick that takes its time says that it is not stuck."""

from collections.abc import Callable
from contextvars import ContextVar

_note: ContextVar[Callable[[], None] | None] = ContextVar("note_progress", default=None)


def note_progress() -> None:
    """Say that the loop this is called in got somewhere: a page read, a message sent. From a tick, and whatever it calls."""
    if (note := _note.get()) is not None:
        note()


def bind(note: Callable[[], None] | None) -> None:
    """Whose progress is noted from here on. None: nobody's; for what a tick starts and does not wait for."""
    _note.set(note)
