"""Ids that follow from content."""

from typing import Final
from uuid import UUID, uuid5

# The application's own namespace: the same message gives the same vagas at every reading.
_NAMESPACE: Final = UUID("7c1f6b0e-53b5-5d5c-8f43-ba70ba70ba70")


def id_de(*partes: object) -> str:
    """Return the same id for the same parts in every process: an insert that runs twice adds one row."""
    return str(uuid5(_NAMESPACE, "\x1f".join(str(parte) for parte in partes)))
