"""The dashboard under ``/painel``: server-rendered and read-only. Pages show the results of other parts and decide nothing."""

from batuta.web.panel.routes import home, router

__all__ = ["home", "router"]
