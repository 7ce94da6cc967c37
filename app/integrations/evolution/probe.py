"""Check that the gateway answers. The request goes to its welcome page, which needs no key."""

import httpx2

from app.integrations.http import open_client
from batuta.health import Part, State


async def answers(base_url: str | None) -> Part:
    if base_url is None:
        return Part(State.UNKNOWN)
    try:
        async with open_client(httpx2.Timeout(2.0)) as client:
            answer = await client.get(f"{base_url.rstrip('/')}/")
    except httpx2.HTTPError as error:
        return Part(State.ERROR, f"{base_url}: {type(error).__name__}")
    return Part(State.OK) if answer.status_code == 200 else Part(State.DEGRADED, f"HTTP {answer.status_code}")
