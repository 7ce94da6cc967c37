"""Functions that several contexts use to normalise text, to greet a person by name, and to format times."""

import re
import unicodedata
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

LONGEST_NAME: Final = 60
_NAME: Final = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")


def fold(texto: str) -> str:
    """Return the text in lower case without accents."""
    return "".join(each for each in unicodedata.normalize("NFKD", texto.lower()) if not unicodedata.combining(each))


def chamado(nome: str | None) -> str:
    """Return a person's first name for use in a greeting, with a comma and a space before it: ", Ana-Maria". Return an
    empty string if the first word of ``nome`` has characters other than letters, hyphens and apostrophes.
    """
    first = next(iter((nome or "").split()), "")
    return f", {first[:LONGEST_NAME]}" if _NAME.fullmatch(first) else ""


def local(instant: datetime | None, zone: ZoneInfo, timespec: str = "auto") -> str | None:
    """Convert an instant to local time in ``zone``, and format it as ISO 8601."""
    return None if instant is None else instant.astimezone(zone).isoformat(timespec=timespec)
