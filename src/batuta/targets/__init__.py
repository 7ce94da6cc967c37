"""Targets, which deliver job fires to functions and HTTP endpoints, and sinks, which send alerts to outside
services.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from batuta.kernel.clock import Clock
from batuta.kernel.errors import ConfigError

if TYPE_CHECKING:
    from batuta.targets.http import HttpCaller

LIBRARY: Final = "httpx2"


def http_caller(clock: Clock) -> "HttpCaller":
    """Return an HTTP caller. The HTTP library is imported here, because only programs that make HTTP calls need it."""
    if find_spec(LIBRARY) is None:
        problem = f"an http job or an alert over http needs {LIBRARY}"
        raise ConfigError(problem=problem, next_step="pip install 'batuta[http]'")
    from batuta.targets.http import HttpCaller

    return HttpCaller(clock)
