"""Forms of texts and instants that several contexts use."""

import unicodedata
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

LONGEST_NAME: Final = 60


def fold(texto: str) -> str:
    """Return the text in lower case without accents."""
    return "".join(each for each in unicodedata.normalize("NFKD", texto.lower()) if not unicodedata.combining(each))


def chamado(nome: str | None) -> str:
    """Return a comma and the first name of a person, or an empty string if the first word is not a name."""
    first = next(iter((nome or "").split()), "")
    return f", {first[:LONGEST_NAME]}" if first.isalpha() else ""


def local(instant: datetime | None, zone: ZoneInfo, timespec: str = "auto") -> str | None:
    """Return an instant in the time zone ``zone``, in the format of ISO 8601."""
    return None if instant is None else instant.astimezone(zone).isoformat(timespec=timespec)
