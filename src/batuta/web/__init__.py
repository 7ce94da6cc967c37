"""The engine over HTTP: health, metrics, jobs, the API reference; and the parts for routes of an application."""

from batuta.access import Scope
from batuta.metrics.readings import MetricReading
from batuta.web.api import create_api, serve
from batuta.web.auth import AuthoriseFirst, is_local, needs, require
from batuta.web.context import state_of
from batuta.web.problems import Problem, texts_for
from batuta.web.routes.openapi import WRITABLE

__all__ = [
    "WRITABLE",
    "AuthoriseFirst",
    "MetricReading",
    "Problem",
    "Scope",
    "create_api",
    "is_local",
    "needs",
    "require",
    "serve",
    "state_of",
    "texts_for",
]
