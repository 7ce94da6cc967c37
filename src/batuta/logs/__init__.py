"""Logging: one line per event, without personal data or secrets."""

from batuta.logs.setup import begin_logging, configure
from batuta.logs.subscriber import LogSubscriber

__all__ = ["LogSubscriber", "begin_logging", "configure"]
