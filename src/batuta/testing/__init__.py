"""For your own tests: a clock you move by hand, a recorder of facts, and the contracts every store must pass."""

from batuta.testing.clock import FakeClock
from batuta.testing.recorder import EventRecorder

__all__ = ["EventRecorder", "FakeClock"]
