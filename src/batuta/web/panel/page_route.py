"""The route of a page. Browsers get an error as a page, other clients as a problem document."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from batuta.kernel.errors import StoreUnavailable
from batuta.web.auth import AuthoriseFirst
from batuta.web.context import request_id_of
from batuta.web.panel import sign_in
from batuta.web.panel.frame import show, words_of
from batuta.web.problems import Problem, safe


class PageRoute(AuthoriseFirst):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def render_problems(request: Request) -> Response:
            try:
                return await handle(request)
            except Problem as problem:
                if not is_browser(request):
                    raise
                if problem.status == 401:
                    return sign_in.redirect_to_sign_in(request)
                return problem_page(request, problem)
            except StoreUnavailable:
                if not is_browser(request):
                    raise
                return problem_page(request, Problem(503, "store_unavailable", headers={"Retry-After": "5"}))

        return render_problems


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
