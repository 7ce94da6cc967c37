"""SIGTERM and Ctrl-C ask for an orderly end; the second one means now. A terminal that is closed asks, and may say so twice."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ASKING = (signal.SIGTERM, signal.SIGINT)


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
    for number in heard:
        loop.add_signal_handler(number, asked, number)
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)
