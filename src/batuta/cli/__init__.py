"""The ``batuta`` command, and helpers for commands of an application."""

from batuta.cli.context import FAILED, REFUSED, CliContext, JsonFlag, cli_context, current_user, wait_for
from batuta.cli.doctor import as_it_runs
from batuta.cli.program import main

__all__ = [
    "FAILED",
    "REFUSED",
    "CliContext",
    "JsonFlag",
    "as_it_runs",
    "cli_context",
    "current_user",
    "main",
    "wait_for",
]
