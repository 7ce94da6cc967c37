"""What the process says about itself: one line per fact, and never a person's data or a secret in any of them."""

from batuta.logs.setup import begin_logging, configure
from batuta.logs.subscriber import LogSubscriber

__all__ = ["LogSubscriber", "begin_logging", "configure"]
