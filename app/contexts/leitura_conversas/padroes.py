"""A small language for patterns of words.

``NAME`` matches a word with that meaning, a word in lower case matches itself, ``~`` any word except a comma, ``,``
a comma. The signs ``^``, ``$``, ``?``, ``{0,3}``, ``|`` and parentheses are those of regular expressions. Every gap
is bounded, so that a search takes linear time. A pattern lists the words that each match contains, and skips
sentences that lack them.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Protocol

from app.contexts.leitura_conversas.lexico import fold

_GRAMMAR: Final[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "gramatica.toml").read_text(encoding="utf-8"))
_PIECE: Final = re.compile(r"\{\d*,?\d*\}|[A-Z_]+|[a-z0-9ç]+|~|\S|\s+")


class Escrita(Protocol):
    """A sentence in the form that the patterns read. ``chaves`` has its words and their meanings."""

    @property
    def escrita(self) -> str: ...
    @property
    def chaves(self) -> frozenset[str]: ...


class Padrao:
    """A pattern, translated on first use, because most processes read no message."""

    def __init__(self, written: str) -> None:
        self._written = written

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile("".join(_translate(self._pieces())))

    @cached_property
    def _needed(self) -> tuple[frozenset[str], ...]:
        return tuple(_needs(self._pieces()))

    def _pieces(self) -> list[str]:
        return [match[0] for match in _PIECE.finditer(self._written) if not match[0].isspace()]

    def search(self, frase: Escrita) -> re.Match[str] | None:
        return self._compiled.search(frase.escrita) if self._may_match(frase) else None

    def search_within(self, frase: Escrita, start: int, end: int) -> re.Match[str] | None:
        """Search for the pattern between two positions of the sentence's ``escrita``."""
        return self._compiled.search(frase.escrita, start, end) if self._may_match(frase) else None

    def finditer(self, frase: Escrita) -> Iterator[re.Match[str]]:
        return self._compiled.finditer(frase.escrita) if self._may_match(frase) else iter(())

    def _may_match(self, frase: Escrita) -> bool:
        return not any(need.isdisjoint(frase.chaves) for need in self._needed)


@cache
def pattern(written: str) -> Padrao:
    return Padrao(written)


def named(part: str, name: str) -> Padrao:
    """Return a pattern of ``gramatica.toml`` by section and name."""
    return pattern(_GRAMMAR[part][name])


def _translate(pieces: list[str]) -> Iterator[str]:
    at = 0
    while at < len(pieces):
        end = _end_of_choice(pieces, at)
        if end is None:
            yield _piece(pieces[at])
            at += 1
            continue
        yield _choice(pieces[at + 1 : end : 2])
        at = end + 1


def _end_of_choice(pieces: list[str], at: int) -> int | None:
    """Return the position at which a choice between single words ends, or None if the pieces at this position are not
    such a choice.
    """
    if pieces[at] != "(":
        return None
    while at + 2 < len(pieces) and _is_word(pieces[at + 1]):
        at += 2
        if pieces[at] == ")":
            return at
        if pieces[at] != "|":
            return None
    return None


def _choice(words: list[str]) -> str:
    """Return a regular expression that matches one word with any of the given meanings or spellings. Each word matches
    in only one way, so that the search time of a repeated choice stays linear.
    """
    names = "|".join(each for each in words if each.isupper())
    literals = "|".join("," if each == "," else fold(each) for each in words if not each.isupper())
    looks = [f"[^ ]*/(?:{names})/" if names else "", f"(?:{literals})/" if literals else ""]
    return f"(?:·(?={'|'.join(filter(None, looks))})[^ ]* )"


def _is_word(piece: str) -> bool:
    return piece == "," or piece[0].isalnum() or not piece.isascii()


def _piece(piece: str) -> str:
    if piece == "~":
        return "(?:·[^ ,]+ )"
    if piece == ",":
        return "(?:·,/[^ ]* )"
    if _is_word(piece):
        return f"(?:·[^ ]*/{piece}/[^ ]* )" if piece.isupper() else f"(?:·{fold(piece)}/[^ ]* )"
    return "(?:" if piece == "(" else piece


def _needs(pieces: list[str]) -> list[frozenset[str]]:
    needs, rest = _alternatives(pieces, 0)
    assert rest == len(pieces), pieces[rest:]
    return needs


def _alternatives(pieces: list[str], at: int) -> tuple[list[frozenset[str]], int]:
    """Return the words that a match contains, as a list of sets. At least one member of each set occurs in every match."""
    found, at = _sequence(pieces, at)
    branches = [found]
    while at < len(pieces) and pieces[at] == "|":
        found, at = _sequence(pieces, at + 1)
        branches.append(found)
    if len(branches) == 1:
        return branches[0], at
    if not all(branches):
        return [], at
    return [frozenset().union(*(min(each, key=len) for each in branches))], at


def _sequence(pieces: list[str], at: int) -> tuple[list[frozenset[str]], int]:
    needs: list[frozenset[str]] = []
    while at < len(pieces) and pieces[at] not in ("|", ")"):
        piece = pieces[at]
        if piece == "(":
            found, at = _alternatives(pieces, at + 1)
            at += 1
        else:
            is_word = _is_word(piece) and piece != ","
            found = [frozenset((piece if piece.isupper() else fold(piece),))] if is_word else []
            at += 1
        if at < len(pieces) and (pieces[at] == "?" or pieces[at].startswith("{")):
            found = [] if pieces[at] == "?" or pieces[at].startswith("{0") else found
            at += 1
        needs += found
    return needs, at
