"""The subset of JSON Schema that the Evolution API uses, with the original's error messages.

The original validates with npm's ``jsonschema`` and returns the messages of that package, or the ``description`` in the
schema if there is one. Clients compare these messages, so the simulator returns the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal, assert_never

from batuta.kernel import Json, dataclass

Kind = Literal["string", "boolean", "integer", "array", "object"]


@dataclass(frozen=True)
class Schema:
    kind: Kind
    description: str | None = None
    properties: "Mapping[str, Schema]" = field(default_factory=dict)
    required: tuple[str, ...] = ()
    items: "Schema | None" = None
    at_least: int = 0
    unique: bool = False
    one_of: tuple[str, ...] = ()


def complaints(value: Json, schema: Schema) -> list[str]:
    """Return one sentence for each error in ``value``. An empty list means that the value is valid."""
    return list(_complaints(value, schema, "instance"))


def _complaints(value: Json, schema: Schema, path: str) -> Iterator[str]:
    for why in _own_complaints(value, schema):
        yield schema.description or f"{path} {why}".replace("instance.", "", 1)
    if isinstance(value, Mapping):
        for name, below in schema.properties.items():
            if name in value:
                yield from _complaints(value[name], below, f"{path}.{name}")
    elif isinstance(value, list) and schema.items is not None:
        for position, item in enumerate(value):
            yield from _complaints(item, schema.items, f"{path}[{position}]")


def _own_complaints(value: Json, schema: Schema) -> Iterator[str]:
    if not _is_of(value, schema.kind):
        yield f"is not of a type(s) {schema.kind}"
    if schema.one_of and value not in schema.one_of:
        yield f"is not one of enum values: {','.join(schema.one_of)}"
    if isinstance(value, Mapping):
        yield from (f'requires property "{name}"' for name in schema.required if name not in value)
    elif isinstance(value, list):
        if len(value) < schema.at_least:
            yield f"does not meet minimum length of {schema.at_least}"
        if schema.unique and any(item in value[:position] for position, item in enumerate(value)):
            yield "contains duplicate item"


def _is_of(value: Json, kind: Kind) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, Mapping)
        case _:
            assert_never(kind)
