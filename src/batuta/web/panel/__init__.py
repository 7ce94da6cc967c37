"""The dashboard under ``/painel``: server-rendered and read-only. Pages show the results of other modules and contain
no decisions.
"""

from batuta.web.panel.routes import home, router

__all__ = ["home", "router"]
