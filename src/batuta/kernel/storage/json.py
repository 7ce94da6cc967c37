"""The engine's JSON format: compact UTF-8 without NaN. Instants are ISO strings with a time zone, and durations are
numbers of seconds.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import TypeAlias
from uuid import UUID

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


def dumps(value: object) -> str:
    """Encode a value as compact JSON, with instants as ISO text and durations as seconds."""
    return _ENCODER.encode(value)


def loads(text: str | bytes) -> Json:
    """Decode JSON text. Numbers, lists and mappings become plain Python values."""
    parsed: Json = json.loads(text)
    return parsed


def _to_json(value: object) -> Json:
    match value:
        case datetime():
            if value.tzinfo is None:
                raise TypeError("an instant without a zone cannot be written as JSON")
            return value.isoformat()
        case date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
        case set() | frozenset():
            return sorted(value)
        case _:
            raise TypeError(f"{type(value).__name__} cannot be written as JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_to_json)
