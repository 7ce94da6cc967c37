"""Convert errors from the services in ``app/contexts`` to error responses of the API (``Problem``)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fastapi import Request

from batuta import BatutaError
from batuta.kernel import mask_text
from batuta.web import Problem, Sentence, texts_for

LONGEST_FACT = 500


@contextmanager
def as_problems(request: Request, refusals: Mapping[type[BatutaError], tuple[int, str]]) -> Iterator[None]:
    """Convert an error to an error response with the status and slug of the first class in ``refusals`` that matches
    the error.

    The error's values (``facts``) fill in the response's text. The additional value ``why`` is the error's sentence in
    the caller's language.
    """
    try:
        yield
    except BatutaError as error:
        for kind, (status, slug) in refusals.items():
            if isinstance(error, kind):
                masked = type(error)(**{name: _mask(fact) for name, fact in error.facts.items()})
                facts = {**masked.facts, "why": Sentence(texts_for(request).error(masked))}
                raise Problem(status, slug, **facts) from None  # type: ignore[arg-type]
        raise


def _mask(fact: object) -> object:
    return mask_text(fact, LONGEST_FACT) if isinstance(fact, str) else fact


def caller_of(request: Request) -> str:
    return str(request.state.caller.name)
