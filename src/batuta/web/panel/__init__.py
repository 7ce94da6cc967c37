"""The dashboard: server-rendered pages on which operators see and control everything that runs."""

from batuta.engine.batuta import Batuta
from batuta.engine.screens import Action
from batuta.web.panel.actions import control
from batuta.web.panel.routes import build_routers, open_routes

__all__ = ["actions_of", "build_routers", "open_routes"]


def actions_of(work: Batuta) -> dict[str, Action]:
    """Return the engine's and the application's actions, by name."""
    return {each.name: each for each in (*control.actions_of(work), *work.extension.actions)}
