"""Names that an application uses to extend the engine: roles, commands, checks for `batuta doctor`, boards, screens,
actions, texts and logs.
"""

from typing import TYPE_CHECKING

from batuta.access import Scope
from batuta.engine.extension import Board, Command, Course, Examined, Extension, Figure, Role
from batuta.engine.screens import (
    Action,
    ActionCall,
    ActionResult,
    Field,
    FieldKind,
    Preview,
    Screen,
    Tone,
    Visit,
)
from batuta.kernel.lazy import load_on_first_use
from batuta.processes.address import listen
from batuta.texts import Language, Texts, Wording

if TYPE_CHECKING:
    from batuta.logs import begin_logging
else:  # imported on first use, because it loads the log library, which a short command does not need
    __getattr__ = load_on_first_use("batuta.extension", {"batuta.logs": ["begin_logging"]})

__all__ = [
    "Action",
    "ActionCall",
    "ActionResult",
    "Board",
    "Command",
    "Course",
    "Examined",
    "Extension",
    "Field",
    "FieldKind",
    "Figure",
    "Language",
    "Preview",
    "Role",
    "Scope",
    "Screen",
    "Texts",
    "Tone",
    "Visit",
    "Wording",
    "begin_logging",
    "listen",
]
