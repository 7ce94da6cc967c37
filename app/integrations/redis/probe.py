"""Check that Redis answers: one PING on a separate connection, without a client library."""

import asyncio
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from batuta.health import Part, State


async def answers(url: SecretStr | None, password: SecretStr | None) -> Part:
    if url is None:
        return Part(State.UNKNOWN)
    found = await ask(url, password)
    host, port = _address(url)
    return found if found.why is None else Part(found.state, f"{host}:{port}: {found.why}")


async def ask(url: SecretStr, password: SecretStr | None) -> Part:
    """Send a PING. If it fails, the reason does not contain the address, which may contain a password."""
    parts, (host, port) = urlsplit(url.get_secret_value()), _address(url)
    secret = password.get_secret_value() if password else unquote(parts.password or "")
    try:
        async with asyncio.timeout(2.0):
            said = await _ping(host, port, unquote(parts.username or ""), secret, is_tls=parts.scheme == "rediss")
    except (OSError, TimeoutError) as error:
        return Part(State.ERROR, type(error).__name__)
    return Part(State.OK) if said.startswith(b"+PONG") else Part(State.DEGRADED, "refuses a PING")


def _address(url: SecretStr) -> tuple[str, int]:
    parts = urlsplit(url.get_secret_value())
    return parts.hostname or "127.0.0.1", parts.port or 6379


async def _ping(host: str, port: int, user: str, secret: str, *, is_tls: bool) -> bytes:
    reader, writer = await asyncio.open_connection(host, port, ssl=True if is_tls else None)
    try:
        if secret:
            writer.write(_command("AUTH", *([user] if user else []), secret))
            await reader.readline()
        writer.write(_command("PING"))
        return await reader.readline()
    finally:
        writer.close()


def _command(*words: str) -> bytes:
    encoded = [word.encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
