"""Loops: a tick that the supervisor repeats, times and restarts."""

from batuta.supervise.loop import Doorbell, Loop, LoopPolicy, Pace
from batuta.supervise.supervisor import Supervisor

__all__ = [
    "Doorbell",
    "Loop",
    "LoopPolicy",
    "Pace",
    "Supervisor",
]
