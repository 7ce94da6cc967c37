"""The engine over HTTP: health, metrics, jobs, the API reference. Thin: it asks and tells, and decides nothing."""

from batuta.web.api import create_api

__all__ = ["create_api"]
