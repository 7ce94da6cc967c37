"""Decide when a job must stop because its time is nearly over. A job stops ten seconds before its deadline, so that its
result still arrives in time.
"""

from datetime import datetime, timedelta
from typing import Final

from batuta.jobs import JobCall
from batuta.reasons import define

OUT_OF_TIME = define("tempo_esgotado", "the time limit was reached; the next run continues")
MARGIN: Final = timedelta(seconds=10)


def must_stop(call: JobCall, now: datetime) -> bool:
    """Return whether a job's deadline is so near that the job must leave its remaining work to its next run."""
    return now >= call.deadline - MARGIN
