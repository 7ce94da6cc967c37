"""Helpers for an application's tests: clocks, a kit that runs tasks on request, a simulation that runs several days of
an application's work in seconds, an event recorder, and loops that tick, hang and fail on request.
"""

from batuta.testing.clock import FakeClock, FastClock, JumpClock
from batuta.testing.kit import Kit, KitFactory
from batuta.testing.loops import EventRecorder, Puppet, loops_of, supervise, tick
from batuta.testing.simulation import Simulation

__all__ = [
    "EventRecorder",
    "FakeClock",
    "FastClock",
    "JumpClock",
    "Kit",
    "KitFactory",
    "Puppet",
    "Simulation",
    "loops_of",
    "supervise",
    "tick",
]
