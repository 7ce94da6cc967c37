"""The engine's events: one frozen dataclass per event. ``work.events.subscribe(function)`` registers a function that
receives them.
"""

from batuta.kernel import events
from batuta.kernel.events import *  # noqa: F403

__all__ = [name for name, each in vars(events).items() if getattr(each, "__module__", "") == events.__name__]
