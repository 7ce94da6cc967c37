"""Simulated Google Drive: the access token of a service account, lists of files, and documents exported as Markdown.

Requests and answers below ``/google/token`` and ``/google/drive/v3`` have the shape of the original. The original does
not have the other routes:

PUT  /google/controle/conta         {"email", "n": hexadecimal, "e"}: the service account and its public key
PUT  /google/controle/arquivos      {"files": [{"id", "name", "mimeType", "parents", "version", "modifiedTime", "text"}]}
PUT  /google/controle/falhas        {"status": 503, "times": 2}: refuse the next requests for files
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from itertools import count
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from batuta.kernel import Clock, Json, loads
from simulador.body import json_object
from simulador.recebidos import Recebidos

LASTS_SECONDS = 3600
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
DOCUMENT = "application/vnd.google-apps.document"
# The two forms of a query that Julia sends.
QUERY = re.compile(r"'(?P<parent>[^']+)' in parents and mimeType = '(?P<kind>[^']+)' and trashed = false")
SHOWN = ("id", "name", "mimeType", "version", "modifiedTime")


class GoogleDocs:
    name = "google"
    path = "/google"
    line = "Google Drive: POST /google/token, GET /google/drive/v3/files; /google/controle sets account and files"

    def __init__(self, clock: Clock) -> None:
        self.recebidos = Recebidos(clock)
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        self.recebidos.clear()
        self._account: Mapping[str, Json] = {}
        self._files: dict[str, Mapping[str, Any]] = {}
        self._fault: dict[str, Any] = {}
        self._tokens: dict[str, float] = {}
        self._ids = count(1)

    def mount(self) -> Mount:
        routes = [
            Route("/token", self.token, methods=["POST"]),
            Route("/drive/v3/files", self.files),
            Route("/drive/v3/files/{id}", self.file),
            Route("/drive/v3/files/{id}/export", self.export),
            Route("/controle/conta", self.set_account, methods=["PUT"]),
            Route("/controle/arquivos", self.set_files, methods=["PUT"]),
            Route("/controle/falhas", self.set_faults, methods=["PUT"]),
        ]
        return Mount(self.path, routes=routes)

    async def token(self, request: Request) -> Response:
        form = parse_qs((await request.body()).decode())
        grant, assertion = form.get("grant_type", [""])[0], form.get("assertion", [""])[0]
        self.recebidos.record(method="POST", path="/token")
        if grant != GRANT or not self._is_signed(assertion, str(request.url)):
            return JSONResponse({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}, 400)
        made = f"token-{next(self._ids)}"
        self._tokens[made] = self._clock.now().timestamp() + LASTS_SECONDS
        return JSONResponse({"access_token": made, "expires_in": LASTS_SECONDS, "token_type": "Bearer"})

    async def files(self, request: Request) -> Response:
        if (refused := self._refusal(request)) is not None:
            return refused
        asked = QUERY.fullmatch(request.query_params.get("q", ""))
        if asked is None:
            return _error(400, "Invalid Value")
        found = [
            _shown(each)
            for each in self._files.values()
            if asked["parent"] in each.get("parents", []) and each["mimeType"] == asked["kind"]
        ]
        newest = sorted(found, key=lambda each: str(each["modifiedTime"]), reverse=True)
        return JSONResponse({"files": newest})

    async def file(self, request: Request) -> Response:
        if (refused := self._refusal(request)) is not None:
            return refused
        found = self._files.get(request.path_params["id"])
        return _error(404, "File not found") if found is None else JSONResponse(_shown(found))

    async def export(self, request: Request) -> Response:
        if (refused := self._refusal(request)) is not None:
            return refused
        found = self._files.get(request.path_params["id"])
        if found is None:
            return _error(404, "File not found")
        if found["mimeType"] != DOCUMENT or request.query_params.get("mimeType") != "text/markdown":
            return _error(400, "The requested conversion is not supported.")
        if "latin" in found:
            return Response(str(found["latin"]).encode("latin-1"), media_type="text/markdown")
        return PlainTextResponse(found["text"], media_type="text/markdown; charset=utf-8")

    async def set_account(self, request: Request) -> Response:
        self._account = await json_object(request)
        self._tokens.clear()
        return Response(status_code=204)

    async def set_files(self, request: Request) -> Response:
        files: Any = (await json_object(request)).get("files")
        self._files = {each["id"]: each for each in files}
        return Response(status_code=204)

    async def set_faults(self, request: Request) -> Response:
        self._fault = dict(await json_object(request))
        return Response(status_code=204)

    def _refusal(self, request: Request) -> Response | None:
        """Record a request for files. Return a refusal if the token is wrong or a fault is configured, otherwise None."""
        self.recebidos.record(
            method="GET", path=request.url.path.removeprefix(self.path), query=str(request.query_params)
        )
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or self._tokens.get(token, 0) <= self._clock.now().timestamp():
            return _error(401, "Request had invalid authentication credentials.")
        if self._fault.get("times"):
            self._fault["times"] -= 1
            return _error(int(self._fault.get("status", 503)), "the prepared error")
        return None

    def _is_signed(self, assertion: str, audience: str) -> bool:
        """Return whether a JSON Web Token is signed with the service account's key (RS256), is issued for ``audience``,
        and has not expired.
        """
        parts = assertion.split(".")
        modulus, exponent = int(str(self._account.get("n", "0")), 16), self._account.get("e")
        if len(parts) != 3 or not modulus or not isinstance(exponent, int):
            return False
        signed, size = ".".join(parts[:2]).encode(), (modulus.bit_length() + 7) // 8
        opened = pow(int.from_bytes(_decode(parts[2])), exponent, modulus).to_bytes(size)
        claims: Any = loads(_decode(parts[1]))
        return (
            opened.startswith(b"\x00\x01\xff")
            and opened.endswith(hashlib.sha256(signed).digest())
            and claims["iss"] == self._account.get("email")
            and claims["aud"] == audience
            and claims["iat"] <= self._clock.now().timestamp() < claims["exp"] <= claims["iat"] + LASTS_SECONDS
        )


def _decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _shown(file: Mapping[str, Any]) -> dict[str, Any]:
    return {name: file[name] for name in SHOWN}


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": {"code": status, "message": message}}, status)
