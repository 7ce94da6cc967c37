"""Runs a coroutine in its own context without a new task: context variables that the coroutine sets do not change for
its caller. A new task would have the same effect, but would cost several times as much.
"""

from collections.abc import Callable, Coroutine
from contextvars import copy_context
from types import FrameType
from typing import Any


class InOwnContext:
    """An awaitable that runs ``coroutine`` in a copy of the current context, within the current task. ``on_wait`` is
    called once, before the coroutine waits for the first time; if the coroutine never waits, ``on_wait`` is not called.

    The object implements the iterator methods that ``await`` calls, and passes each call on to the coroutine. It also
    has the attributes ``cr_frame`` and ``cr_await``, from which stack dumps read where the coroutine is waiting.
    """

    __slots__ = ("_coroutine", "_on_wait", "_run")

    def __init__(self, coroutine: Coroutine[Any, Any, None], on_wait: Callable[[], None]) -> None:
        self._coroutine: Any = coroutine
        self._on_wait: Callable[[], None] | None = on_wait
        self._run = copy_context().run

    def __await__(self) -> Any:
        return self

    def __iter__(self) -> "InOwnContext":
        return self

    def __next__(self) -> Any:
        waits_for = self._run(self._coroutine.send, None)
        if self._on_wait is not None:
            on_wait, self._on_wait = self._on_wait, None
            on_wait()
        return waits_for

    def throw(self, *error: Any) -> Any:
        return self._run(self._coroutine.throw, *error)

    def close(self) -> None:
        self._run(self._coroutine.close)

    @property
    def cr_frame(self) -> FrameType | None:
        frame: FrameType | None = self._coroutine.cr_frame
        return frame

    @property
    def cr_await(self) -> Any:
        return self._coroutine.cr_await
