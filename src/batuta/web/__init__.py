"""The engine's HTTP interface: health, metrics, jobs and the API reference, plus helpers for an application's own
routes.
"""

from batuta.metrics.readings import MetricReading
from batuta.web.api import create_api, serve
from batuta.web.auth import (
    AuthoriseFirst,
    disclose,
    is_local,
    needs,
    note_access,
    refuse_above_limit,
    require,
    sees_personal_data,
)
from batuta.web.context import state_of
from batuta.web.problems import Problem, Sentence, texts_for
from batuta.web.routes.openapi import WRITABLE

__all__ = [
    "WRITABLE",
    "AuthoriseFirst",
    "MetricReading",
    "Problem",
    "Sentence",
    "create_api",
    "disclose",
    "is_local",
    "needs",
    "note_access",
    "refuse_above_limit",
    "require",
    "sees_personal_data",
    "serve",
    "state_of",
    "texts_for",
]
