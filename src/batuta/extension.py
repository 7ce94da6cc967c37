"""Names that an application uses to extend the engine: roles, commands, checks of `batuta doctor`, boards, screens,
actions, texts and logs.
"""

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
from batuta.logs import begin_logging
from batuta.processes.address import listen
from batuta.texts import Language, Texts, Wording

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
