"""Texts for operators: one table of strings per language, and the formats of dates, durations, numbers and money.

An error or reason contains its English sentence and the values to fill into it (the facts). The Portuguese sentence is
in the language's table, under the error's class or the reason's code. If the fact ``count`` is 1, the key with the
suffix ``_one`` is used if it exists.
"""

import string
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import field
from datetime import date, datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from batuta.kernel.clock import brief, exact
from batuta.kernel.errors import BatutaError
from batuta.kernel.reasons import CODES, Reason, Reasons, code_of
from batuta.kernel.values import dataclass

if TYPE_CHECKING:
    from batuta.kernel.events import Event

Language: TypeAlias = Literal["pt-BR", "en"]
LANGUAGES: tuple[Language, ...] = ("pt-BR", "en")
HERE = Path(__file__).parent
COUNT = "count"  # name of the fact that selects the singular form and is shown with thousands separators
# Names of facts that contain a key. A page shows the application's name for the key, for example ``switch_name.<key>``.
NAMED = ("switch", "limit", "window")
ERROR = "error."  # prefix of the codes of errors
# Codes with these prefixes are text keys. Every other code has the text key ``reason.<code>``.
KEYS = (ERROR, "finding.")


class Texts:
    """Texts in one language for people to read: errors, reasons, health findings, and dates."""

    def __init__(self, language: Language, folders: Sequence[Path] = ()) -> None:
        """Load a language's texts. ``folders`` contains the application's tables, which may add keys but must not
        change the engine's keys.
        """
        self.language = language
        self.source = (language, tuple(folders))
        self._names_keys = False
        self._table: dict[str, str] = {}
        # Earlier tables take precedence, and their keys come first: if two states have the same word, the word means
        # the engine's state.
        for folder in (HERE, *folders):
            self._table |= {**read_table(folder, language), **self._table}

    @cached_property
    def for_pages(self) -> "Texts":
        """A copy of these texts for the dashboard. It formats dates for people, and shows switches, limits and windows
        under the application's names for them. The texts for a terminal, in contrast, show dates and keys in the form
        that commands accept.
        """
        made, day = copy(self), self._table["format.page_day"]
        made._table = self._table | {
            "format.day": day,
            "format.minute": f"{day} %H:%M",
            "format.second": f"{day} %H:%M:%S",
        }
        made._names_keys = True
        return made

    def __call__(self, key: str, **facts: object) -> str:
        """Return the text for ``key``. Facts that are reasons, errors, instants, days or durations are rendered in the
        language of these texts.
        """
        return self._sentence(key, facts).format(**self._render_facts(facts))

    def get(self, key: str, otherwise: str) -> str:
        """Return the text for ``key``. If the language has no such text, return the argument ``otherwise``."""
        return self._table.get(key, otherwise)

    def group(self, prefix: str) -> dict[str, str]:
        """Return the texts whose keys begin with ``prefix`` and a dot. The keys in the result do not contain the
        prefix.
        """
        return {
            key.removeprefix(f"{prefix}."): text for key, text in self._table.items() if key.startswith(f"{prefix}.")
        }

    def category(self, name: str) -> str:
        """Return the application's text for a job category (``category.<name>``), or ``name`` itself if the application
        has no such text.
        """
        return self.get(f"category.{name}", name)

    def error(self, error: BatutaError) -> str:
        key = f"{ERROR}{type(error).__name__}"
        return (
            str(error) if key not in self._table else self._sentence(key, error.facts).format(**self._facts_of(error))
        )

    def reason(self, reason: str) -> str:
        """Return the reason's sentence in this language. If the reason has no code or an unknown code, return its
        stored text.
        """
        code = code_of(reason) or ""
        key = code if code.startswith(KEYS) else f"reason.{code}"
        if not isinstance(reason, Reason):
            return str(reason)
        sentence = self._sentence(key, reason.facts) if key in self._table else self._english(code)
        if sentence is None or not fields_of(sentence) <= reason.facts.keys():
            return str(reason)
        return sentence.format(**self._render_facts(reason.facts))

    def _english(self, code: str) -> str | None:
        """Return the English sentence for a reason's code if these texts are English texts for dashboard pages. There,
        a switch or a limit may have a different name than in the stored sentence. Return None for all other texts.
        """
        return CODES[code].english if self.language == "en" and self._names_keys and code in CODES else None

    def render(self, document: Any) -> Any:
        """Return a copy of a JSON document in which every reason is replaced by its sentence in this language."""
        match document:
            case Reason():
                return self.reason(document)
            case Mapping():
                return {name: self.render(value) for name, value in document.items()}
            case list() | tuple():
                return [self.render(value) for value in document]
            case _:
                return document

    def day(self, day: date) -> str:
        return day.strftime(self._table["format.day"])

    def minute(self, at: datetime) -> str:
        """Format ``at`` as a date and a time to the minute, in the time zone that ``at`` contains."""
        return at.strftime(self._table["format.minute"])

    def second(self, at: datetime) -> str:
        return at.strftime(self._table["format.second"])

    def span(self, length: timedelta) -> str:
        """Format a duration exactly, without rounding: 45 s, 1 h 30 min."""
        return exact(length).replace(".", self._table["format.decimal"])

    def about(self, length: timedelta) -> str:
        """Format a duration roughly, rounded to one unit: 40 s, 12 min, 5 h."""
        return brief(length)

    def took(self, milliseconds: int) -> str:
        """Format a measured duration: 7 ms, 1.2 s, 1 min 1 s."""
        if milliseconds < 1000:
            return f"{milliseconds} ms"
        if milliseconds < 60_000:
            return f"{self.number(milliseconds / 1000, 1)} s"
        return self.span(timedelta(seconds=milliseconds // 1000))

    def number(self, number: float, digits: int = 0) -> str:
        return f"{number:,.{digits}f}".translate(
            {ord(","): self._table["format.thousands"], ord("."): self._table["format.decimal"]}
        )

    def money(self, reais: float) -> str:
        return f"R$ {self.number(reais, 2)}"

    def _sentence(self, key: str, facts: Mapping[str, object]) -> str:
        one = f"{key}_one"
        return self._table[one if facts.get(COUNT) == 1 and one in self._table else key]

    def _facts_of(self, error: BatutaError) -> dict[str, object]:
        kind = error.facts.get("kind")
        return {
            **self._render_facts(error.facts),
            "kind": self._table.get(f"word.{kind}", kind),
        }

    def _render_facts(self, facts: Mapping[str, object]) -> dict[str, object]:
        counts = {COUNT: self.number(count)} if isinstance(count := facts.get(COUNT), int) else {}
        return {name: self._fact(fact) for name, fact in facts.items()} | counts | self._names_of(facts)

    def _names_of(self, facts: Mapping[str, object]) -> dict[str, object]:
        """Return the display names that the application gives to the switch, limit and window in ``facts``. The result
        is empty unless these texts are for dashboard pages.
        """
        keys = {fact: f"{fact}_name.{facts[fact]}" for fact in NAMED if self._names_keys and fact in facts}
        return {fact: f"“{self._table[key]}”" for fact, key in keys.items() if key in self._table}

    def _fact(self, value: object) -> object:
        match value:
            case Reason():
                return self.reason(value)
            case Reasons():
                return "; ".join(map(self.reason, value))
            case BatutaError():
                return self.error(value)
            case datetime():
                return self.minute(value)
            case date():
                return self.day(value)
            case timedelta():
                return self.span(value)
            case _:
                return value


def fold(text: str) -> str:
    """Return the text in lower case and without accents, for tolerant comparisons. A function in panel.js does the same
    in the browser.
    """
    apart = unicodedata.normalize("NFD", text)
    return "".join(sign for sign in apart if not unicodedata.combining(sign)).lower()


@cache
def fields_of(sentence: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in string.Formatter().parse(sentence) if name)


@cache
def read_table(folder: Path, language: Language) -> Mapping[str, str]:
    """Read all texts in a language. The result is cached, because parsing takes longer than most commands."""
    file = folder / f"{language.replace('-', '_')}.toml"
    return MappingProxyType(dict(_flat(tomllib.loads(file.read_text(encoding="utf-8")))))


def choose_language(accept_language: str, otherwise: Language) -> Language:
    """Return the first supported language in an Accept-Language header. If there is none, return the argument
    ``otherwise``.
    """
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """An application's own texts for log lines, and its own names for fields in JSON documents. The engine's texts and
    names are English.

    ``phrases`` maps an event's class to the text of its log line. The engine still sets the level and the fields.
    ``fields`` maps the engine's field names to the application's field names, in log lines and JSON documents.
    """

    phrases: Mapping[type[Any], Callable[..., str]] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)

    def rename(self, name: str) -> str:
        return self.fields.get(name, name)

    def phrase(self, event: "Event", otherwise: str) -> str:
        phrase = self.phrases.get(type(event))
        return otherwise if phrase is None else phrase(event)
