"""Renders HTML pages with one Jinja environment, which escapes all values. Pages load no files from other hosts."""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from batuta.web.context import base_of, state_of
from batuta.web.problems import LANGUAGE_COOKIE, page_texts

HERE = Path(__file__).parent
YEAR = 365 * 24 * 3600
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@cache
def _environment(folders: tuple[Path, ...]) -> Environment:
    """Return the Jinja environment for the engine's templates and the templates in the application's folders."""
    environment = Environment(
        loader=FileSystemLoader([HERE / "templates", *folders]),
        autoescape=True,  # for all files, because escaping by file name would skip templates that do not end with .html
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["coded"] = coded
    environment.filters["breakable"] = breakable
    return environment


def coded(text: str) -> Markup:
    """Return HTML for a text, with the words between backticks formatted as code."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if n % 2 else escape(part) for n, part in enumerate(text.split("`"))
    )


def breakable(name: str) -> Markup:
    """Return HTML for a name. The browser may break the line after an underscore, a colon or a dot in the name."""
    return Markup("<wbr>").join(re.findall(r"[^_:.]*[_:.]*", name)[:-1])


def page(request: Request, template: str, values: Mapping[str, object], *, status: int = 200) -> HTMLResponse:
    """Render a template in the reader's language. A language chosen with ``?lang=`` is stored in a cookie."""
    texts = page_texts(request)
    # Only a session has this value. Forms contain it, and the page then shows a sign-out button.
    proof = getattr(request.state, "proof", None)
    frame = {"request": request, "texts": texts, "asset": asset, "proof": proof, "base": base_of(request)}
    folders = tuple(state_of(request).work.extension.templates)
    html = _environment(folders).get_template(template).render({**values, **frame})
    response = HTMLResponse(html, status)
    if "lang" in request.query_params:
        is_secure = state_of(request).settings.has_https
        response.set_cookie(
            LANGUAGE_COOKIE, texts.language, max_age=YEAR, samesite="strict", httponly=True, secure=is_secure
        )
    return response


def asset(name: str) -> str:
    """Return a file's name that includes a hash of its content, so that browsers may cache the file permanently."""
    return f"{name}?v={_read(name)[1]}"


def static(request: Request, name: str) -> Response | None:
    """Return the response for one of the engine's static files, or None if the file does not exist."""
    if name not in {file.name for file in (HERE / "static").iterdir()}:
        return None
    content, version = _read(name)
    is_pinned = request.query_params.get("v") == version
    headers = {
        "ETag": f'"{version}"',
        "Cache-Control": f"private, max-age={YEAR}, immutable" if is_pinned else "no-cache",
    }
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=TYPES[Path(name).suffix], headers=headers)


@cache
def _read(name: str) -> tuple[bytes, str]:
    content = (HERE / "static" / name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]
