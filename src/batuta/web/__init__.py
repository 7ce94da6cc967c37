"""The engine over HTTP: health, metrics, jobs and the API reference, and helpers for an application's own routes."""

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
