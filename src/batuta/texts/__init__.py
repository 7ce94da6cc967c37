"""What operators read: one table of strings per language. Portuguese first, English by a switch.

An error is told in Portuguese through its class and its facts; its English sentence lives with the class.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

from batuta.kernel.errors import BatutaError, Reason, Reasons

Language: TypeAlias = Literal["pt-BR", "en"]
LANGUAGES: tuple[Language, ...] = ("pt-BR", "en")
HERE = Path(__file__).parent


class Texts:
    def __init__(self, language: Language, folders: Sequence[Path] = ()) -> None:
        """``folders`` are an application's own tables; they may add keys and not change the engine's."""
        self.language = language
        self._table: dict[str, str] = {}
        for folder in (*reversed(folders), HERE):
            self._table |= read_table(folder, language)

    def __call__(self, key: str, **facts: object) -> str:
        return self._table[key].format(**facts)

    def known(self, key: str, otherwise: str) -> str:
        """What the table says of a word that came from elsewhere; ``otherwise`` where it says nothing."""
        return self._table.get(key, otherwise)

    def error(self, error: BatutaError) -> str:
        told = self._table.get(f"error.{type(error).__name__}")
        return str(error) if told is None else told.format(**self._named(error.facts))

    def reason(self, reason: Reason) -> str:
        told = self._table.get(f"reason.{reason.key}")
        return str(reason) if told is None else told.format(**reason.facts)

    def _named(self, facts: Mapping[str, object]) -> dict[str, object]:
        """The kind of a thing, and why, in this language: a job is a tarefa."""
        kind = facts.get("kind")
        return {
            **{name: self._fact(value) for name, value in facts.items()},
            "kind": self._table.get(f"word.{kind}", kind),
        }

    def _fact(self, value: object) -> object:
        match value:
            case Reason():
                return self.reason(value)
            case Reasons():
                return "; ".join(map(self.reason, value))
            case _:
                return value


@cache
def read_table(folder: Path, language: Language) -> Mapping[str, str]:
    """Read once: a command asks several times, and reading takes longer than most of what it then says."""
    file = folder / f"{language.replace('-', '_')}.toml"
    return MappingProxyType(dict(_flat(tomllib.loads(file.read_text(encoding="utf-8")))))


def preferred(accept_language: str, otherwise: Language) -> Language:
    """The first language we speak of a browser's list, which is written in order of liking."""
    for asked in accept_language.split(","):
        tag = asked.partition(";")[0].strip().lower()
        for language in LANGUAGES:
            if tag and tag.split("-")[0] == language.split("-")[0]:
                return language
    return otherwise


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)
