"""Helpers for an application's tests: a clock that a test moves and one that runs fast, a recorder of events, loops
that tick, hang and fail on request, and the contracts of a store.
"""

from batuta.testing.clock import FakeClock, FastClock
from batuta.testing.loops import EventRecorder, Puppet, loops_of, supervise, tick

__all__ = ["EventRecorder", "FakeClock", "FastClock", "Puppet", "loops_of", "supervise", "tick"]
