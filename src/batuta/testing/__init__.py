"""For your own tests: a clock you move by hand and one that runs fast, a recorder of facts, loops that tick, hang and fail when
you say so, a judge of a scheduler's run and of a sender's, and the contracts every store must pass.
"""

from batuta.testing.checker import Check, Verdict, Violation, judge
from batuta.testing.clock import FakeClock, FastClock
from batuta.testing.evidence import Logged, Receipt, Rules, Span, Target
from batuta.testing.loops import EventRecorder, Puppet, kept, loops_of, tick
from batuta.testing.messages import judge_messages

__all__ = [
    "Check",
    "EventRecorder",
    "FakeClock",
    "FastClock",
    "Logged",
    "Puppet",
    "Receipt",
    "Rules",
    "Span",
    "Target",
    "Verdict",
    "Violation",
    "judge",
    "judge_messages",
    "kept",
    "loops_of",
    "tick",
]
