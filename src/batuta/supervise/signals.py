"""SIGTERM and Ctrl-C ask for an orderly end; the second one means now."""

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
        if stop.is_set():
            os._exit(128 + number)
        stop.set()
        asked_to()

    for number in ASKING:
        loop.add_signal_handler(number, asked, number)
    try:
        yield
    finally:
        for number in ASKING:
            loop.remove_signal_handler(number)
