"""The part of an application that the ``batuta`` command needs before it builds the application."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batuta.texts import Language

if TYPE_CHECKING:
    from batuta.engine.batuta import Batuta
    from batuta.engine.extension import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """Commands, roles and texts of an application. If the module of ``--app`` has one as ``command_line``, `batuta --help`
    imports only that module.
    """

    commands: "Mapping[str, Command]" = field(default_factory=dict)  # also in the application's Extension
    roles: Sequence[str] = ()  # every role that some settings enable
    texts: Sequence[Path] = ()
    language: Language | None = None  # of the application's settings, unless BATUTA_LANG is set
    # Builds the application with its jobs and without its services, for commands that need no service.
    catalogue: "Callable[[], Batuta] | None" = None


def import_command(command: "Command") -> Any:
    """Return a command, or the commands of a group by name. A command ``module:object`` is imported."""
    if isinstance(command, Mapping):
        return {word: import_command(each) for word, each in command.items()}
    if not isinstance(command, str):
        return command
    module, _, name = command.partition(":")
    return getattr(import_module(module), name)
