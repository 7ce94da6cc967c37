"""Names that an application uses to extend the engine: roles, commands, checks of `batuta doctor`, boards, texts and
logs.
"""

from batuta.engine.extension import Board, Command, Course, Examined, Extension, Figure, Role, Tone
from batuta.logs import begin_logging
from batuta.processes.address import listen
from batuta.texts import Language, Texts, Wording

__all__ = [
    "Board",
    "Command",
    "Course",
    "Examined",
    "Extension",
    "Figure",
    "Language",
    "Role",
    "Texts",
    "Tone",
    "Wording",
    "begin_logging",
    "listen",
]
