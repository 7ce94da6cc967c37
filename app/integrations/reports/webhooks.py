"""Deliver a report with one POST request, without redirects or retries.

The result says whether the report arrived, did not arrive, or may have arrived. Only a report that did not arrive is
sent again automatically; a person decides about a report that may have arrived.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from typing import Final
from zoneinfo import ZoneInfo

import httpx2

from app.contexts.comum.entrega import Entrega, Entregue, Incerto, Recusado
from app.contexts.relatorios.relato import relatorio_em_palavras, texto_do_relatorio
from app.contexts.relatorios.service import Relatorio
from app.integrations.http import NO_ANSWER_WITHIN, open_client
from batuta.errors import DeadlineExceeded
from batuta.extension import Texts
from batuta.kernel import Clock, Json, dataclass, with_timeout

WITHIN: Final = timedelta(seconds=15)
CONNECT_SECONDS: Final = 5.0
# Errors that prove that the request was not sent.
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
# Statuses that mean that the server did not process the request, although the request was correct.
NOT_PROCESSED: Final = frozenset({429, 503})


@dataclass(slots=True)
class Poster:
    """Sends one JSON object to an address. The address is a secret, so errors do not contain it."""

    url: str = field(repr=False)
    clock: Clock

    async def post(self, body: Mapping[str, Json]) -> Entrega:
        try:
            status = await with_timeout(WITHIN, self._post(body), self.clock, "the report")
        except DeadlineExceeded:
            return Incerto(NO_ANSWER_WITHIN(limit=WITHIN))
        except (*NEVER_SENT, httpx2.InvalidURL) as error:
            return Recusado(type(error).__name__)
        except httpx2.HTTPError as error:
            return Incerto(type(error).__name__)
        return delivery_of(status)

    async def _post(self, body: Mapping[str, Json]) -> int:
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        async with (
            open_client(timeout) as client,
            client.stream("POST", self.url, json=body) as response,
        ):
            return response.status_code


def delivery_of(status: int) -> Entrega:
    """Return the delivery result for an HTTP status. After most server errors the report may have arrived."""
    if 200 <= status < 300:
        return Entregue()
    if status >= 500 and status not in NOT_PROCESSED:
        return Incerto(f"HTTP {status}")
    return Recusado(f"HTTP {status}")


@dataclass(frozen=True, slots=True)
class SlackChannel:
    """Sends the report as text to a Slack incoming webhook."""

    poster: Poster
    texts: Texts
    zone: ZoneInfo
    nome: str = "slack"

    async def enviar(self, relatorio: Relatorio) -> Entrega:
        return await self.poster.post({"text": texto_do_relatorio(relatorio, self.texts, self.zone)})


@dataclass(frozen=True, slots=True)
class JsonWebhook:
    """Sends the report as a JSON object with the report's id, so that the receiver recognises a repeated delivery."""

    poster: Poster
    zone: ZoneInfo
    nome: str = "webhook"

    async def enviar(self, relatorio: Relatorio) -> Entrega:
        return await self.poster.post({"kind": "report", "relatorio": relatorio_em_palavras(relatorio, self.zone)})
