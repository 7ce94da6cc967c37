"""Find and replace a phone number in free text, in any notation."""

import re
from collections.abc import Sequence

from app.contexts.comum.telefone import forms
from batuta.kernel import Json

MARCA = "[removido]"
SHORTEST_NAME = 3
LAST_DIGITS = 4  # people write the last four digits of a number together
_GAP = r"[\s().\-\u2010-\u2015]{0,3}"


def numero(chaves: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that finds the given phone numbers, with or without country code, ninth digit and separators."""
    found = dict.fromkeys(_spelling(form) for each in chaves for form in forms(each))
    return re.compile(rf"(?<![0-9])(?:{'|'.join(found)})(?![0-9])")


def _spelling(telefone: str) -> str:
    country, local = (telefone[:2], telefone[2:]) if telefone.startswith("55") else ("", telefone)
    digits = _GAP.join(local)
    return rf"(?:(?:\+|00)?{_GAP.join(country)}{_GAP})?\(?0?{digits}" if country else rf"\+?{digits}"


def nome(escritos: Sequence[str]) -> re.Pattern[str] | None:
    """Return a pattern that finds the given names as whole words, longest first. Return None if no name is usable."""
    names = sorted({each for each in escritos if len(each) >= SHORTEST_NAME}, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b", re.IGNORECASE) if names else None


def sem_numero(value: Json, number: re.Pattern[str], name: re.Pattern[str] | None = None) -> Json:
    """Return a JSON value in which each occurrence of the phone number is replaced, even in nested lists and objects.
    In texts that contain the number, the person's names are replaced too.
    """
    match value:
        case str():
            plain = number.sub(MARCA, value)
            return plain if plain == value or name is None else name.sub(MARCA, plain)
        case bool():
            return value
        case int():
            return MARCA if number.fullmatch(str(value)) else value
        case list():
            return [sem_numero(each, number, name) for each in value]
        case dict():
            return {key: sem_numero(each, number, name) for key, each in value.items()}
        case _:
            return value
