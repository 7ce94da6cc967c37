"""Read the JSON body of a request."""

from collections.abc import Mapping

from starlette.requests import Request

from batuta.kernel import Json, dumps, loads


class NotAnObject(Exception):
    """Raised if the request body is not a JSON object."""


async def json_object(request: Request) -> Mapping[str, Json]:
    try:
        parsed = loads(await request.body())
        # Reject values that cannot be serialised again (NaN, an incomplete surrogate pair), because /recebidos could
        # not show them.
        dumps(parsed).encode()
    except (ValueError, RecursionError):
        raise NotAnObject from None
    if not isinstance(parsed, Mapping):
        raise NotAnObject
    return parsed
