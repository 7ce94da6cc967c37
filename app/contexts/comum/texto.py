"""Forms of texts and instants that several contexts use."""

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
    """Return a comma followed by the first word of a person's name, such as "Ana-Maria". Return an empty string if that
    word has characters other than letters, hyphens and apostrophes.
    """
    first = next(iter((nome or "").split()), "")
    return f", {first[:LONGEST_NAME]}" if _NAME.fullmatch(first) else ""


def local(instant: datetime | None, zone: ZoneInfo, timespec: str = "auto") -> str | None:
    """Return an instant in the time zone ``zone``, in the format of ISO 8601."""
    return None if instant is None else instant.astimezone(zone).isoformat(timespec=timespec)
