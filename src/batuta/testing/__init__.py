"""Helpers for an application's tests: clocks, a recorder of events, loops that tick, hang and fail on request, and
contracts of a store.
"""

from batuta.testing.clock import FakeClock, FastClock
from batuta.testing.loops import EventRecorder, Puppet, loops_of, supervise, tick

__all__ = ["EventRecorder", "FakeClock", "FastClock", "Puppet", "loops_of", "supervise", "tick"]
