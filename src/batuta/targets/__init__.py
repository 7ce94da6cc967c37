"""Targets: delivery of a fire, and of alerts to services outside."""

from typing import TYPE_CHECKING

from batuta.kernel.clock import Clock
from batuta.kernel.errors import ConfigError

if TYPE_CHECKING:
    from batuta.targets.http import HttpCaller


def http_caller(clock: Clock) -> "HttpCaller":
    """Import the HTTP library only for programs that use HTTP."""
    try:
        from batuta.targets.http import HttpCaller
    except ModuleNotFoundError as missing:
        problem = f"an http job or an alert over http needs {missing.name}"
        raise ConfigError(problem=problem, next_step="pip install 'batuta[http]'") from None
    return HttpCaller(clock)
