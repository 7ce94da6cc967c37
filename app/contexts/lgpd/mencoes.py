"""Find and replace a phone number in free text, in any notation."""

import re
from collections.abc import Sequence

from app.contexts.comum.telefone import forms
from batuta.kernel import Json

MARCA = "[removido]"
LAST_DIGITS = 4  # people write the last four digits of a number together
_GAP = r"[\s().\-\u2010-\u2015]{0,3}"


def numero(chaves: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that finds these numbers, with or without country code, ninth digit and separators."""
    found = dict.fromkeys(_spelling(form) for each in chaves for form in forms(each))
    return re.compile(rf"(?<![0-9])(?:{'|'.join(found)})(?![0-9])")


def _spelling(telefone: str) -> str:
    country, local = (telefone[:2], telefone[2:]) if telefone.startswith("55") else ("", telefone)
    digits = _GAP.join(local)
    return rf"(?:(?:\+|00)?{_GAP.join(country)}{_GAP})?\(?0?{digits}" if country else rf"\+?{digits}"


def sem_numero(value: Json, pattern: re.Pattern[str]) -> Json:
    """Return the value with each occurrence of the number replaced. Values inside lists and objects are replaced too."""
    match value:
        case str():
            return pattern.sub(MARCA, value)
        case bool():
            return value
        case int():
            return MARCA if pattern.fullmatch(str(value)) else value
        case list():
            return [sem_numero(each, pattern) for each in value]
        case dict():
            return {name: sem_numero(each, pattern) for name, each in value.items()}
        case _:
            return value
