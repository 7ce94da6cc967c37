"""The dashboard under ``/painel``: server-rendered, read only. A page shows what the other parts have found and judges nothing."""

from batuta.web.panel.routes import home, router

__all__ = ["home", "router"]
