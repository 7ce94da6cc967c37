"""Convert errors of the contexts to problems of the API, and return the name of the caller."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fastapi import Request

from batuta import BatutaError
from batuta.web import Problem, texts_for


@contextmanager
def as_problems(request: Request, refusals: Mapping[type[BatutaError], tuple[int, str]]) -> Iterator[None]:
    """Convert an error to a problem with the status and slug of the first class that matches the error.

    The text of the problem receives the error's facts, and as ``why`` the error's sentence in the caller's language.
    """
    try:
        yield
    except BatutaError as error:
        for kind, (status, slug) in refusals.items():
            if isinstance(error, kind):
                facts = {**error.facts, "why": texts_for(request).error(error)}
                raise Problem(status, slug, **facts) from None  # type: ignore[arg-type]
        raise


def caller_of(request: Request) -> str:
    return str(request.state.caller.name)
