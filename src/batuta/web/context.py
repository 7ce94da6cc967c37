"""A request's context: the application's state, the request id, and the matched route."""

import asyncio
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, cast

from prometheus_client import CollectorRegistry
from starlette.requests import HTTPConnection
from starlette.types import Scope

from batuta.access import Sessions
from batuta.config import EngineSettings
from batuta.engine.batuta import Batuta
from batuta.engine.screens import Action
from batuta.health.aggregator import Cached, Part
from batuta.kernel.values import dataclass
from batuta.metrics.readings import Readings
from batuta.texts import Language, Texts
from batuta.web.clients import Clients
from batuta.web.counts import LargeCounts
from batuta.web.live import LiveViews

UNMATCHED = "(none)"


@dataclass(slots=True)
class ApiState:
    work: Batuta
    settings: EngineSettings
    texts: Mapping[Language, Texts]
    registry: CollectorRegistry
    readings: Readings
    service: str
    sessions: Sessions
    clients: Clients
    ready: Cached[dict[str, Part]]
    open_routes: frozenset[str]  # routes that need no token: public routes, and routes that check the caller themselves
    live: LiveViews
    counts: LargeCounts
    actions: Mapping[str, Action] = field(default_factory=dict)  # actions of the dashboard by name
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    is_served: bool = False  # whether the engine's own server runs the API; that server sets ``draining``

    @property
    def prefix(self) -> str:
        """The path of the dashboard's first page."""
        return self.settings.batuta_panel_prefix

    def now(self) -> datetime:
        return self.work.clock.now().astimezone(self.work.zone)

    def local(self, instant: datetime | None) -> str | None:
        """Format an instant for JSON documents: ISO 8601 in the application's time zone."""
        return None if instant is None else instant.astimezone(self.work.zone).isoformat()


def state_of(connection: HTTPConnection) -> ApiState:
    """Return the state of the API that serves a request or a connection."""
    return cast("ApiState", connection.app.state.batuta)


def base_of(connection: HTTPConnection) -> str:
    """Return the address of the dashboard's first page, including the path prefix if another application mounts the
    API.
    """
    return f"{connection.scope.get('root_path', '')}{state_of(connection).prefix}"


def request_id_of(scope: Scope) -> str:
    state: dict[str, Any] = scope.get("state", {})
    return str(state.get("request_id", ""))


def route_of(scope: Scope) -> str:
    """Return the template of the matched route (``/jobs/{endpoint}``) instead of the path, because a path may contain a
    phone number.
    """
    return str(getattr(scope.get("route"), "path", UNMATCHED))
