"""Personal data in responses from Julia's routes. The data is masked for callers without the scope pii. For callers
with this scope, the access is recorded.
"""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from fastapi import Request

from app.contexts.agendamentos.documento.mascara import COVERED
from batuta.web import disclose

T = TypeVar("T")


async def personal(request: Request, document: T, *names: str, count: int = 1) -> T:
    """Return ``document`` as the caller of a route may see it. Without the scope pii, the fields ``names`` are masked
    at every depth. With the scope, the audit log records access to ``count`` records.
    """
    return document if await disclose(request, count) else cover(document, names)


def cover(document: Any, names: Collection[str]) -> Any:
    if isinstance(document, Mapping):
        return {
            name: COVERED if name in names and value else value if name in names else cover(value, names)
            for name, value in document.items()
        }
    return [cover(each, names) for each in document] if isinstance(document, list) else document
