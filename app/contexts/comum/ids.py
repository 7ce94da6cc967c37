"""Ids derived from content."""

from typing import Final
from uuid import UUID, uuid5

# Namespace of the derived ids. It must never change: only then does a message give the same vacancy ids each time it is
# read.
_NAMESPACE: Final = UUID("7c1f6b0e-53b5-5d5c-8f43-ba70ba70ba70")


def id_de(*partes: object) -> str:
    """Return an id derived from the parts. Equal parts always give the same id, so a repeated insert does not add a
    second row.
    """
    return str(uuid5(_NAMESPACE, "\x1f".join(str(parte) for parte in partes)))
