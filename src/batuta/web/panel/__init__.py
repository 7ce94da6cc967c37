"""The dashboard: server-rendered pages, to see and to operate everything that runs."""

from batuta.web.panel.routes import build_routers, open_routes

__all__ = ["build_routers", "open_routes"]
