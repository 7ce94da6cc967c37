"""The route class for dashboard pages. Browsers get an error as a page, and other clients get it as a problem
document.
"""

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from batuta.kernel.errors import StoreTimeout, StoreUnavailable
from batuta.web.auth import AuthoriseFirst, authorise
from batuta.web.context import request_id_of, state_of
from batuta.web.panel import sign_in, stream
from batuta.web.panel.frame import show, words_of
from batuta.web.problems import Problem, refuse_unwritable, safe


class PageRoute(AuthoriseFirst):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        names = signature(self.endpoint).parameters

        def own_parameters(asked: Request) -> dict[str, Any]:
            """Return the path parameters that the endpoint declares. The endpoint of an application's screen declares
            none, because the screen reads them from the request.
            """
            return {name: value for name, value in asked.path_params.items() if name in names}

        async def answer(request: Request) -> Response:
            if not stream.wants_events(request):
                with reading(request):
                    return await handle(request)
            await authorise(request)
            await refuse_unwritable(request)
            return await stream.open_stream(request, lambda asked: self.endpoint(asked, **own_parameters(asked)))

        async def render_problems(request: Request) -> Response:
            try:
                return await answer(request)
            except Problem as problem:
                if not is_browser(request):
                    raise
                if problem.status == 401:
                    return sign_in.redirect_to_sign_in(request)
                return problem_page(request, problem)
            except StoreTimeout:
                if not is_browser(request):
                    raise
                limit = state_of(request).settings.batuta_page_seconds
                return problem_page(
                    request, Problem(503, "page_too_slow", headers={"Retry-After": "5"}, limit=f"{limit:g}")
                )
            except StoreUnavailable:
                if not is_browser(request):
                    raise
                return problem_page(request, Problem(503, "store_unavailable", headers={"Retry-After": "5"}))

        return render_problems


def reading(request: Request) -> AbstractContextManager[None]:
    """While the block is running, let ``request`` use the database connections that are reserved for pages if it is a
    GET request. Any other request (an action) uses the ordinary connections.
    """
    return state_of(request).work.connections.reading_for_pages() if request.method == "GET" else nullcontext()


def is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def problem_page(request: Request, problem: Problem) -> HTMLResponse:
    values = {
        "retry": problem.status == 503,
        "problem_status": problem.status,
        "title_key": f"problem.{problem.slug}.title",
        "detail_key": f"problem.{problem.slug}.detail",
        "facts": safe(problem.facts),
        "request_id": request_id_of(request.scope),
    }
    shown = show(request, "panel/problem.html.j2", words_of(request), values, live=False, status=problem.status)
    shown.headers.update(problem.headers)
    return shown
