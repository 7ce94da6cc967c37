"""SIGTERM and Ctrl-C ask for an orderly end; the second one means now. A terminal that is closed asks, and may say so twice."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

ASKING = (signal.SIGTERM, signal.SIGINT)
_HEARD: set[signal.Signals] = set()  # by this process
_FORKING = threading.local()  # the signals that a thread did not take before it began to fork


@contextmanager
def stop_on_signals(stop: asyncio.Event, asked_to: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Set ``stop`` at the first signal, and say so; leave the process at the second."""
    loop = asyncio.get_running_loop()

    def asked(number: int) -> None:
        if stop.is_set() and number in ASKING:
            os._exit(128 + number)
        if not stop.is_set():
            stop.set()
            asked_to()

    heard = ASKING if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*ASKING, signal.SIGHUP)  # nohup
    _deafen_children()
    for number in heard:
        loop.add_signal_handler(number, asked, number)
    _HEARD.update(heard)
    try:
        yield
    finally:
        _HEARD.clear()
        for number in heard:
            loop.remove_signal_handler(number)


@cache
def _deafen_children() -> None:
    """A child that is forked off shares the pipe by which asyncio is told of signals: what ends the child would end us."""
    os.register_at_fork(before=_hold_back, after_in_parent=_let_in, after_in_child=_forget)


def _hold_back() -> None:
    _FORKING.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)


def _let_in() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _FORKING.mask)


def _forget() -> None:
    if _HEARD:
        signal.set_wakeup_fd(-1)
    for number in _HEARD:
        signal.signal(number, signal.SIG_DFL)
    _let_in()
