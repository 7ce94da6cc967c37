"""The OpenAPI document with scopes and problem responses, and its reference page, which loads no files from other
hosts.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from batuta.access import Scope
from batuta.web.auth import SAFE_METHODS, SCOPE_KEY
from batuta.web.pages import page, static
from batuta.web.panel.page_route import PageRoute
from batuta.web.problems import MEDIA_TYPE

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
    """Yield one entry per path and method for the reference page, in the order in which the document lists them."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield {
                "method": method.upper(),
                "path": path,
                "id": operation["operationId"],
                "scope": operation.get(SCOPE_KEY, "") if operation.get("security") else "",
                "tag": (operation.get("tags") or ["-"])[0],
                "summary": operation.get("description", "").replace("``", ""),
                "parameters": operation.get("parameters", []),
                "has_body": "requestBody" in operation,
                "answers": sorted(operation.get("responses", {})),
            }


# Statuses that any route may return; 422 only for routes with input.
ANYWHERE = (400, 408, 413, 500, 503)
CLOSED = (401, 403, 429)
# Characters that ``refuse_unwritable`` accepts, as a JSON Schema pattern.
WRITABLE = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$"
_METHODS = frozenset({"get", "put", "post", "delete", "patch", "head", "options"})
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457, in the caller's language",
    "required": ["type", "title", "status", "detail", "instance", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what happened, and the next step"},
        "instance": {"type": "string"},
        "request_id": {"type": "string"},
        "trace_id": {"type": ["string", "null"]},
        "errors": {"type": "array", "items": {"type": "object"}, "description": "where and what, never the value"},
    },
}


def describe(api: FastAPI, open_routes: frozenset[str]) -> None:
    """Replace ``api.openapi`` with a function that adds scopes and problem responses to the OpenAPI document."""
    plain = api.openapi

    def openapi() -> dict[str, Any]:
        if api.openapi_schema is None:
            complete(plain(), open_routes)
        assert api.openapi_schema is not None
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]


def complete(document: dict[str, Any], open_routes: frozenset[str]) -> None:
    parts = document.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    schemas["Problem"] = _PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    parts["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method in _METHODS:
                if "{" in path:  # a path parameter names a resource, which may be absent
                    operation["responses"].setdefault("404", {})
                _complete(operation, method, is_open=path in open_routes)


def _complete(operation: dict[str, Any], method: str, *, is_open: bool) -> None:
    answers = operation.setdefault("responses", {})
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _drop_null(parameter["schema"])
        if parameter["in"] != "header" and parameter["schema"].get("type") == "string":
            parameter["schema"].setdefault("pattern", WRITABLE)
    if is_open:
        operation["security"] = []
    else:
        by_method = Scope.READ if method.upper() in SAFE_METHODS else Scope.OPERATE
        operation.setdefault(SCOPE_KEY, by_method.value)
        operation["security"] = [{"bearer": []}]
    for status in ANYWHERE if is_open else (*ANYWHERE, *CLOSED):
        answers.setdefault(str(status), {})
    for status, answer in answers.items():
        if status.isdecimal() and int(status) >= 400:
            answer["description"] = answer.get("description") or HTTPStatus(int(status)).phrase
            # Drop FastAPI's own 422 schema, because the engine's response is a problem document.
            said = {} if status == "422" else answer.get("content", {})
            answer["content"] = {**said, MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def _drop_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a header or query parameter without the type ``null``. The code uses None for a missing
    optional parameter, but a client omits the parameter and never sends ``null``.
    """
    match [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]:
        case [only]:
            return {**only, **{name: value for name, value in schema.items() if name != "anyOf"}}
        case _:
            return schema
