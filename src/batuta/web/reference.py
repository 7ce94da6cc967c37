"""The API reference, offline: our own page over our own OpenAPI document. Nothing is loaded from anywhere else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape

from batuta.web.context import state_of
from batuta.web.problems import texts_for

HERE = Path(__file__).parent
router = APIRouter(include_in_schema=False)
_pages = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(), trim_blocks=True)


@router.get("/docs")
async def reference(request: Request) -> HTMLResponse:
    page = _pages.get_template("reference.html.j2")
    document = request.app.openapi()
    base = str(request.base_url).rstrip("/")
    html = page.render(document=document, operations=list(operations(document)), texts=texts_for(request), base=base)
    return HTMLResponse(html)


@router.get("/openapi.json")
async def openapi(request: Request) -> dict[str, Any]:
    document: dict[str, Any] = request.app.openapi()
    return document


@router.get("/docs/reference.css")
async def style(request: Request) -> Response:
    state_of(request)
    return Response((HERE / "static" / "reference.css").read_text(encoding="utf-8"), media_type="text/css")


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
