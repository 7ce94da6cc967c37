"""Errors as RFC 9457 ``application/problem+json``, in the caller's language, with the next step and without personal
data.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.routing import Match, Route

from batuta.config import reason_of
from batuta.kernel.errors import EncryptionError, StoreUnavailable
from batuta.kernel.masking import mask
from batuta.kernel.storage.storable import is_writable, mask_text
from batuta.kernel.trace import current
from batuta.texts import Language, Texts, choose_language
from batuta.web.context import ApiState, request_id_of, state_of

MEDIA_TYPE = "application/problem+json"
LANGUAGE_COOKIE = "batuta_lang"
LONGEST_PLACE = 200
# Text keys for the statuses that Starlette raises; any other status gets a general sentence.
_SLUG_OF_STATUS = {404: "not_found", 405: "method_not_allowed"}


class Problem(Exception):
    """An error response. ``slug`` names the problem in its type URI and in the table of texts; ``facts`` are filled
    into its sentence.
    """

    def __init__(self, status: int, slug: str, /, *, headers: Mapping[str, str] | None = None, **facts: object) -> None:
        super().__init__(slug)
        self.status = status
        self.slug = slug
        self.facts = facts
        self.headers = dict(headers or {})


def unknown_job(name: str, nearest: str | None) -> Problem:
    if nearest is None:
        return Problem(404, "unknown_job_far", endpoint=name[:80])
    return Problem(404, "unknown_job", endpoint=name[:80], nearest=nearest)


async def refuse_unwritable(request: Request) -> None:
    """Raise a problem if the request contains characters that the databases cannot store. Every route calls this
    function.
    """
    said = [request.url.path, *(text for pair in request.query_params.multi_items() for text in pair)]
    if not all(map(is_writable, said)):
        raise Problem(400, "unwritable_parameter")


def install(api: FastAPI) -> None:
    api.add_exception_handler(Problem, _problem)
    api.add_exception_handler(HTTPException, _http)
    api.add_exception_handler(RequestValidationError, _validation)
    api.add_exception_handler(StoreUnavailable, _store)
    api.add_exception_handler(EncryptionError, _answer_encrypted)


def answer(
    request: Request,
    status: int,
    slug: str,
    *,
    facts: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> JSONResponse:
    texts = texts_for(request)
    content = {
        "type": f"/problemas/{slug}",
        "title": texts(f"problem.{slug}.title"),
        "status": status,
        "detail": texts(f"problem.{slug}.detail", **safe(facts or {})),
        "instance": mask(request.url.path),
        "request_id": request_id_of(request.scope),
        "trace_id": here.trace_id if (here := current()) else None,
        **(extra or {}),
    }
    return JSONResponse(content, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


class Sentence(str):
    """One of the engine's sentences, with facts that are already masked. The whole sentence is not masked again,
    because masking could hide words of the engine's own text.
    """

    __slots__ = ()


def safe(facts: Mapping[str, object]) -> dict[str, object]:
    """Return a response's facts with personal data masked, because clients may store responses."""
    return {
        name: mask(value) if isinstance(value, str) and not isinstance(value, Sentence) else value
        for name, value in facts.items()
    }


def texts_for(request: Request) -> Texts:
    """Return the texts in the language chosen with ``?lang=`` or, without this parameter, in the language stored in the
    language cookie. If there is neither, use the browser's language.
    """
    state: ApiState = state_of(request)
    return state.texts[language_of(request, state.settings.batuta_lang)]


def page_texts(request: Request) -> Texts:
    """Return the texts for a dashboard page, in the reader's language."""
    return texts_for(request).for_pages


def language_of(connection: HTTPConnection, otherwise: Language) -> Language:
    chosen = connection.query_params.get("lang") or connection.cookies.get(LANGUAGE_COOKIE)
    return choose_language(chosen or connection.headers.get("accept-language", ""), otherwise)


async def _problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return answer(request, error.status, error.slug, headers=error.headers, facts=error.facts)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    slug = _SLUG_OF_STATUS.get(error.status_code, "refused" if error.status_code < 500 else "crashed")
    headers = {"Allow": ", ".join(_list_allowed_methods(request))} if error.status_code == 405 else error.headers
    return answer(
        request, error.status_code, slug, headers=headers, facts={"reason": HTTPStatus(error.status_code).phrase}
    )


def _list_allowed_methods(request: Request) -> list[str]:
    """Return the methods of all routes at this path. The framework itself would report only the methods of the first
    matching route.
    """
    routes = (each.original_route for each in iter_route_contexts(request.app.routes))
    found = {
        method
        for route in routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    return sorted(found)


async def _validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # Report the location and kind of the error without the value, because values and names of unknown fields may be
    # personal data.
    texts = texts_for(request)
    errors = [
        {
            "where": mask_text(".".join(map(str, each["loc"])), LONGEST_PLACE),
            "what": texts.reason(reason_of(each)),
        }
        for each in error.errors()
    ]
    return answer(request, 422, "invalid", extra={"errors": errors}, facts={"count": len(errors)})


async def _store(request: Request, error: Exception) -> JSONResponse:
    return answer(request, 503, "store_unavailable", headers={"Retry-After": "5"})


async def _answer_encrypted(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, EncryptionError)
    return answer(request, 503, "encrypted", facts={"why": Sentence(texts_for(request).error(error))})
