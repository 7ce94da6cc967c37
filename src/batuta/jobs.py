"""Public names for scheduled jobs: their options, calls and windows."""

from batuta.dispatch.job import Job, JobOptions, Overlap, Target
from batuta.dispatch.plan import find_holding_switch
from batuta.dispatch.task_schedules import TaskSchedule
from batuta.receive.endpoints import JobCall, JobHandler
from batuta.runlog.history import Recorded
from batuta.runlog.log import Controls
from batuta.schedule.due import CatchUp
from batuta.schedule.window import Window

__all__ = [
    "CatchUp",
    "Controls",
    "Job",
    "JobCall",
    "JobHandler",
    "JobOptions",
    "Overlap",
    "Recorded",
    "Target",
    "TaskSchedule",
    "Window",
    "find_holding_switch",
]
