"""Reasons as values: a code and its facts, rendered in the reader's language. This module also exports the reason codes
that applications may compare.
"""

from batuta.guard.rate import RATE_LIMIT
from batuta.kernel.errors import reason_of_error
from batuta.kernel.reasons import Reason, ReasonCode, code_of, decode, define, describe_reason, encode, join, prefix_of
from batuta.queue.outcome import TIMED_OUT
from batuta.runlog.reasons import HTTP_STATUS, HTTP_STATUS_SAID, UNFINISHED, hold_reason

__all__ = [
    "HTTP_STATUS",
    "HTTP_STATUS_SAID",
    "RATE_LIMIT",
    "TIMED_OUT",
    "UNFINISHED",
    "Reason",
    "ReasonCode",
    "code_of",
    "decode",
    "define",
    "describe_reason",
    "encode",
    "hold_reason",
    "join",
    "prefix_of",
    "reason_of_error",
]
