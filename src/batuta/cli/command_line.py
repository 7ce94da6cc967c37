"""The commands, roles and texts that an application adds to ``batuta``. They can be read before the application is
built.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batuta.kernel.values import dataclass
from batuta.texts import Language

if TYPE_CHECKING:
    from batuta.engine.batuta import Batuta
    from batuta.engine.extension import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """Commands, roles and texts that an application adds to ``batuta``. The module that ``--app`` names may define an
    object of this class as ``command_line``. In that case `batuta --help` imports only that module.
    """

    # the same commands as in the application's Extension
    commands: "Mapping[str, Command]" = field(default_factory=dict)
    roles: Sequence[str] = ()  # every role that any settings can enable
    texts: Sequence[Path] = ()
    language: Language | None = None  # language in the application's settings; BATUTA_LANG overrides it
    # Builds the application with its jobs but without its services, for commands that need no service.
    catalogue: "Callable[[], Batuta] | None" = None


def import_command(command: "Command") -> Any:
    """Return the function that implements a command; import it if it is given as ``module:object``. For a command
    group, return a mapping of subcommand names to functions.
    """
    if isinstance(command, Mapping):
        return {word: import_command(each) for word, each in command.items()}
    if not isinstance(command, str):
        return command
    module, _, name = command.partition(":")
    return getattr(import_module(module), name)
