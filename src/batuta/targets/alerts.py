"""Sends alerts over HTTP, to Slack or any webhook, and pings the dead man's switch."""

from collections.abc import Mapping

from batuta.health.alerts import Alert, AlertKind
from batuta.kernel.errors import DeliveryRefused
from batuta.kernel.storage.json import Json, dumps
from batuta.kernel.values import dataclass
from batuta.targets.http import HttpCaller

SIGNS = {"critical": ":red_circle:", "error": ":large_orange_circle:", "warning": ":large_yellow_circle:"}
RECOVERED = ":large_green_circle:"


@dataclass(frozen=True, slots=True)
class SlackSink:
    """Sends alerts to a Slack channel. ``service`` is the name of the service that raises the alert."""

    url: str
    caller: HttpCaller
    service: str
    name: str = "slack"

    async def send(self, alert: Alert) -> None:
        sign = RECOVERED if alert.kind is AlertKind.RECOVERY else SIGNS.get(alert.severity.value, "")
        step = f"\n→ {alert.next_step}" if alert.next_step else ""
        await _post(self.caller, self.url, {"text": f"{sign} *{self.service}*: {alert.message}{step}"}, self.name)


@dataclass(frozen=True, slots=True)
class WebhookSink:
    """Posts alerts to any URL as a JSON object."""

    url: str
    caller: HttpCaller
    service: str
    name: str = "webhook"

    async def send(self, alert: Alert) -> None:
        body: dict[str, Json] = {
            "service": self.service,
            "kind": alert.kind.value,
            "cause": alert.cause,
            "severity": alert.severity.value,
            "message": alert.message,
            "next_step": alert.next_step,
        }
        await _post(self.caller, self.url, body, self.name)


async def _post(caller: HttpCaller, url: str, body: Mapping[str, Json], name: str) -> None:
    status = await caller.send("POST", url, dumps(body).encode())
    if not 200 <= status < 300:
        raise DeliveryRefused(sink=name, status=status)


async def ping(caller: HttpCaller, url: str) -> None:
    status = await caller.send("GET", url)
    if not 200 <= status < 300:
        raise DeliveryRefused(sink="deadman", status=status)
