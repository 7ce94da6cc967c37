"""Loops: work that the supervisor repeats, monitors and restarts."""

from batuta.supervise.loop import Loop, LoopPolicy, Pace, Wakeup
from batuta.supervise.stacks import task_stack
from batuta.supervise.supervisor import Supervisor

__all__ = ["Loop", "LoopPolicy", "Pace", "Supervisor", "Wakeup", "task_stack"]
