"""Targets: delivery of fires to functions and endpoints, and of alerts to outside services."""

from typing import TYPE_CHECKING

from batuta.kernel.clock import Clock
from batuta.kernel.errors import ConfigError

if TYPE_CHECKING:
    from batuta.targets.http import HttpCaller


def http_caller(clock: Clock) -> "HttpCaller":
    """Return an HTTP caller. The import is here so that only programs that use HTTP need the library."""
    try:
        from batuta.targets.http import HttpCaller
    except ModuleNotFoundError as missing:
        problem = f"an http job or an alert over http needs {missing.name}"
        raise ConfigError(problem=problem, next_step="pip install 'batuta[http]'") from None
    return HttpCaller(clock)
