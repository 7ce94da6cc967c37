"""The ``batuta`` command, and helpers for the commands that an application adds."""

from typing import TYPE_CHECKING, Final

from batuta.kernel.lazy import load_on_first_use

if TYPE_CHECKING:
    from batuta.cli.command_line import CommandLine
    from batuta.cli.commands.doctor import as_it_runs
    from batuta.cli.context import FAILED, REFUSED, CliContext, JsonFlag, cli_context, current_user, wait_for
    from batuta.cli.program import main

__all__ = [
    "FAILED",
    "REFUSED",
    "CliContext",
    "CommandLine",
    "JsonFlag",
    "as_it_runs",
    "cli_context",
    "current_user",
    "main",
    "wait_for",
]

# Maps each module to the names above that it defines. A test compares this table with the imports under
# ``TYPE_CHECKING``.
_HOMES: Final = {
    "batuta.cli.command_line": ("CommandLine",),
    "batuta.cli.context": ("FAILED", "REFUSED", "CliContext", "JsonFlag", "cli_context", "current_user", "wait_for"),
    "batuta.cli.commands.doctor": ("as_it_runs",),
    "batuta.cli.program": ("main",),
}

if not TYPE_CHECKING:  # hidden from the type checker, because with ``__getattr__`` it would accept every attribute name
    __getattr__ = load_on_first_use("batuta.cli", _HOMES)
