"""Google Docs as the source of briefing and templates.

    GOOGLE_DOCS_BRIEFING_ID     a document, or a folder: the newest document is the briefing
    GOOGLE_DOCS_TEMPLATES_ID    a folder with a sub-folder for each campaign type: its newest document is the template

The newest document is the one with the latest date in its name (2026-03-09). If no name has a date, it is the document
that was changed last. A document is exported as Markdown only if its version has changed since this process last read
it.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx2

from app.contexts.diretrizes.service import Documento, FonteIndisponivel
from app.integrations.documents.folder import MOST_BYTES, TIPOS
from app.integrations.documents.service_account import ServiceAccount
from app.integrations.http import NO_ANSWER_WITHIN, UNKNOWN_FORMAT, open_client
from batuta.errors import DeadlineExceeded
from batuta.kernel import Clock, loads, with_timeout
from batuta.reasons import define

ACCOUNT_REFUSED = define("google_recusou", "Google rejected the service account: HTTP {status}")

GOOGLE: Final = "https://www.googleapis.com"
WITHIN: Final = timedelta(seconds=20)
CONNECT_SECONDS: Final = 5.0
GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
DOCUMENT: Final = "application/vnd.google-apps.document"
FOLDER: Final = "application/vnd.google-apps.folder"
FIELDS: Final = "id,name,mimeType,version,modifiedTime"
# A token is renewed this long before it expires.
MARGIN: Final = timedelta(minutes=1)
MOST_FILES: Final = 100
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ANCHOR = re.compile(r"(?<![ \t])[ \t]*+\{#[^{}\n]*+\}[ \t]*+$", re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")

File = Mapping[str, Any]


class GoogleDocs:
    """Reads documents with the token of a service account to which operators have given read access."""

    origem = "google_docs"

    def __init__(
        self, account: ServiceAccount, briefing: str | None, templates: str | None, clock: Clock, base: str = GOOGLE
    ) -> None:
        self._account = account
        self._briefing = briefing
        self._templates = templates
        self._clock = clock
        self._base = f"{base.rstrip('/')}/drive/v3"
        self._token: tuple[str, datetime] | None = None
        # Documents by file id, each with its exported version. This cache only saves requests; the directives compare
        # the stored hash.
        self._read: dict[str, tuple[str, Documento]] = {}

    async def briefing(self) -> Documento | None:
        if self._briefing is None:
            return None
        file = await self._json(f"/files/{quote(self._briefing, safe='')}?{urlencode({'fields': FIELDS} | SHARED)}")
        if file.get("mimeType") == FOLDER:
            newest = _newest(await self._children(self._briefing, DOCUMENT))
            return None if newest is None else await self._export(newest)
        return await self._export(file)

    async def templates(self) -> Mapping[str, Documento]:
        if self._templates is None:
            return {}
        found: dict[str, Documento] = {}
        for folder in await self._children(self._templates, FOLDER):
            tipo = _plain(str(folder.get("name")))
            if tipo in TIPOS and (newest := _newest(await self._children(str(folder["id"]), DOCUMENT))) is not None:
                found[tipo] = await self._export(newest)
        return found

    async def _children(self, folder: str, kind: str) -> Sequence[File]:
        """Return the files of the given kind in a folder."""
        query = f"'{_quote(folder)}' in parents and mimeType = '{kind}' and trashed = false"
        asked = {"q": query, "fields": f"files({FIELDS})", "orderBy": "modifiedTime desc", "pageSize": str(MOST_FILES)}
        files = (await self._json(f"/files?{urlencode(asked | SHARED | ALL)}")).get("files")
        return [each for each in files if isinstance(each, Mapping)] if isinstance(files, list) else []

    async def _export(self, file: File) -> Documento:
        id, version, name = str(file.get("id")), str(file.get("version")), str(file.get("name") or "-")
        known = self._read.get(id)
        if known is not None and known[0] == version and file.get("version") is not None:
            return known[1]
        read = await self._get(f"/files/{quote(id, safe='')}/export?{urlencode({'mimeType': 'text/markdown'})}")
        try:
            document = Documento(name, plain_markdown(read.decode("utf-8-sig")))
        except UnicodeDecodeError:
            document = Documento(name, None)
        self._read[id] = version, document
        return document

    async def _json(self, path: str) -> File:
        try:
            parsed = loads(await self._get(path))
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, Mapping):
            raise FonteIndisponivel(why=UNKNOWN_FORMAT())
        return parsed

    async def _get(self, path: str) -> bytes:
        """Send a GET request and return the body of the response. If Google rejects the access token, get a new token
        and repeat the request once.
        """
        status, body = await self._send("GET", f"{self._base}{path}", await self._authorisation())
        if status == 401:
            self._token = None
            status, body = await self._send("GET", f"{self._base}{path}", await self._authorisation())
        if status != 200:
            raise FonteIndisponivel(why=f"Google: HTTP {status}")
        return body

    async def _authorisation(self) -> dict[str, str]:
        now = self._clock.now()
        if self._token is None or now >= self._token[1]:
            form = {"grant_type": GRANT, "assertion": self._account.assertion(now)}
            status, body = await self._send("POST", self._account.token_url, {}, form)
            match loads(body) if status == 200 else None:
                case {"access_token": str(token), "expires_in": int(seconds)} if 0 < seconds <= 86_400:
                    self._token = token, now + timedelta(seconds=seconds) - MARGIN
                case _:
                    raise FonteIndisponivel(why=ACCOUNT_REFUSED(status=status))
        return {"Authorization": f"Bearer {self._token[0]}"}

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Send a request and return status and body. At most MOST_BYTES are read."""
        try:
            return await with_timeout(WITHIN, self._request(method, url, headers, form), self._clock, "Google")
        except DeadlineExceeded:
            raise FonteIndisponivel(why=NO_ANSWER_WITHIN(limit=WITHIN)) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise FonteIndisponivel(why=f"Google: {type(error).__name__}") from None

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None
    ) -> tuple[int, bytes]:
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        async with (
            open_client(timeout) as client,
            client.stream(method, url, headers=dict(headers), data=form) as response,
        ):
            read = bytearray()
            async for piece in response.aiter_bytes():
                read += piece
                if len(read) > MOST_BYTES:
                    break
            return response.status_code, bytes(read[:MOST_BYTES])


# Parameters that include files of shared drives.
SHARED: Final = {"supportsAllDrives": "true"}
ALL: Final = {"includeItemsFromAllDrives": "true"}


def plain_markdown(text: str) -> str:
    """Return exported Markdown without the anchors and escapes that Google adds."""
    return _ESCAPED.sub(r"\1", _ANCHOR.sub("", text))


def _newest(files: Sequence[File]) -> File | None:
    def age(file: File) -> tuple[str, str]:
        date = _DATE.search(str(file.get("name")))
        return (date[0] if date else "", str(file.get("modifiedTime")))

    return max(files, key=age, default=None)


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.strip().lower())
    return "".join(each for each in letters if not unicodedata.combining(each))


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
