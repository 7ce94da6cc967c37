"""An application's own words for log lines and for fields of documents. The engine's words are English."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from batuta.kernel.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """``phrases``: the text of a log line, by the class of its event; its level and its fields stay the engine's.

    ``fields``: other names for fields, by the engine's name. They apply to log lines and to JSON documents.
    """

    phrases: Mapping[type[Any], Callable[..., str]] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)

    def rename(self, name: str) -> str:
        return self.fields.get(name, name)

    def phrase(self, event: Event, otherwise: str) -> str:
        phrase = self.phrases.get(type(event))
        return otherwise if phrase is None else phrase(event)
