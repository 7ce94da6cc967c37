"""The API reference, offline: our own page over our own OpenAPI document. Nothing is loaded from anywhere else."""

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from batuta.web.pages import page, static
from batuta.web.panel.routes import PageRoute

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/docs")
async def reference(request: Request) -> HTMLResponse:
    document = request.app.openapi()
    base = str(request.base_url).rstrip("/")
    values = {"document": document, "operations": list(operations(document)), "base": base}
    return page(request, "reference.html.j2", values)


@router.get("/openapi.json")
async def openapi(request: Request) -> dict[str, Any]:
    document: dict[str, Any] = request.app.openapi()
    return document


@router.get("/docs/reference.css")
async def style(request: Request) -> Response:
    found = static(request, "reference.css")
    assert found is not None
    return found


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One entry per path and method, in the order of the document, with what a reader wants to know at once."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield {
                "method": method.upper(),
                "path": path,
                "id": operation["operationId"],
                "tag": (operation.get("tags") or ["-"])[0],
                "summary": operation.get("description") or operation.get("summary", ""),
                "parameters": operation.get("parameters", []),
                "has_body": "requestBody" in operation,
                "answers": sorted(operation.get("responses", {})),
            }
