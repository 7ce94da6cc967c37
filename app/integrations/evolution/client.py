"""Client of Evolution API, version 2. It implements the WhatsApp interface (``app.contexts.comum.whatsapp``)."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from urllib.parse import quote

from app.contexts.comum.telefone import PERSON, forms
from app.contexts.comum.whatsapp import Encontrada, EstadoDaConexao, Grupo, Instancia, Numero, SendResult, Unavailable
from app.integrations.evolution.answers import (
    conexao,
    instance_of,
    number_of,
    read_stored,
    send_result,
    unavailable,
)
from app.integrations.evolution.http import Answer, Gateway, Reply, path_of
from batuta.kernel import Clock, Json, dataclass, make_writable
from batuta.reasons import define

UNKNOWN_ANSWER = define(
    "gateway_desconhecido", "the answer to {call} has an unknown format: check the gateway's version (2.3.7)"
)

PAGE = 50
LONGEST_NAME = 200
# Maximum number of pages of one recipient's messages that are searched for an earlier send.
MOST_PAGES = 4
# Events that Julia needs. If all events were enabled, the gateway would also post every presence and contact.
EVENTS = ("CONNECTION_UPDATE", "MESSAGES_UPDATE", "MESSAGES_UPSERT", "SEND_MESSAGE", "STATUS_INSTANCE")
SECRET_HEADER = "X-Webhook-Secret"  # noqa: S105 - the header's name


@dataclass(frozen=True, slots=True)
class Limits:
    call: timedelta = timedelta(seconds=15)
    # Time limit of a send. The gateway answers after it has sent the message, which takes long on a bad connection.
    send: timedelta = timedelta(seconds=45)


@dataclass(frozen=True, slots=True)
class Webhook:
    url: str
    enabled: bool
    events: frozenset[str]
    by_events: bool = False  # whether the gateway posts each event to a separate address

    @property
    def misses(self) -> frozenset[str]:
        """The events that Julia needs but the webhook does not deliver. A webhook without a list of events delivers all
        events.
        """
        return frozenset(EVENTS) - self.events if self.events else frozenset()


class EvolutionClient:
    def __init__(self, gateway: Gateway, clock: Clock, limits: Limits | None = None) -> None:
        self._gateway = gateway
        self._clock = clock
        self._limits = limits or Limits()

    async def send_text(self, instance: str, telefone: str, texto: str) -> SendResult:
        """Send a text. The gateway's parameter ``delay`` is not used, because it delays the gateway's answer beyond the
        caller's timeout.
        """
        body = {"number": telefone, "text": texto}
        reply = await self._gateway.call(
            "POST", path_of("message", "sendText", instance), limit=self._limits.send, body=body
        )
        return send_result(reply, self._clock.now())

    async def connection(self, instance: str) -> EstadoDaConexao | Unavailable:
        body = await self._ask("GET", path_of("instance", "connectionState", instance))
        if isinstance(body, Unavailable):
            return body
        match body:
            case {"instance": {"state": state}}:
                return conexao(state)
            case _:
                return _strange_answer("connectionState")

    async def instances(self) -> Sequence[Instancia] | Unavailable:
        body = await self._ask("GET", path_of("instance", "fetchInstances"))
        if isinstance(body, Unavailable):
            return body
        if not isinstance(body, list):
            return _strange_answer("fetchInstances")
        found = [instance_of(row) for row in body]
        # Reject a list with unreadable instances, because these would look deleted.
        return [each for each in found if each is not None] if all(found) else _strange_answer("fetchInstances")

    async def numbers(self, instance: str, telefones: Sequence[str]) -> Sequence[Numero] | Unavailable:
        asked = list(dict.fromkeys(telefones))
        if not asked:
            return []
        body = await self._ask("POST", path_of("chat", "whatsappNumbers", instance), {"numbers": asked})
        if isinstance(body, Unavailable):
            return body
        if not isinstance(body, list):
            return _strange_answer("whatsappNumbers")
        found = {each.telefone: each for row in body if (each := number_of(row)) is not None}
        return [found[telefone] for telefone in asked if telefone in found]

    async def group(self, instance: str, jid: str) -> Grupo | Unavailable:
        """Return the name of a group to which this instance belongs. The participants in the gateway's answer are
        ignored.
        """
        path = f"{path_of('group', 'findGroupInfos', instance)}?groupJid={quote(jid, safe='')}"
        body = await self._ask("GET", path)
        if isinstance(body, Unavailable):
            return body
        match body:
            case {"id": str(id), **rest} if id == jid:
                name = rest.get("subject")
                return Grupo(
                    jid=jid,
                    nome=(make_writable(name).strip()[:LONGEST_NAME] or None) if isinstance(name, str) else None,
                )
            case _:
                return _strange_answer("findGroupInfos")

    async def list_sent(self, instance: str, telefone: str, *, since: datetime) -> Sequence[Encontrada] | Unavailable:
        found: dict[str, Encontrada] = {}
        for form in forms(telefone):
            some = await self._list_sent_to_jid(instance, f"{form}@{PERSON}", since)
            if isinstance(some, Unavailable):
                return some
            found |= {each.id: each for each in some}
        return sorted(found.values(), key=lambda each: each.em, reverse=True)

    async def webhook(self, instance: str) -> Webhook | Unavailable | None:
        """Return the webhook of a gateway instance, or None if the instance has no webhook."""
        body = await self._ask("GET", path_of("webhook", "find", instance))
        if body is None or isinstance(body, Unavailable):
            return body
        match body:
            case {"url": str(url), "enabled": bool(enabled), **rest}:
                events = rest.get("events")
                names = frozenset(each for each in events if isinstance(each, str)) if isinstance(events, list) else ()
                return Webhook(url, enabled, frozenset(names), rest.get("webhookByEvents") is True)
            case _:
                return _strange_answer("webhook/find")

    async def set_webhook(self, instance: str, url: str, secret: str | None) -> Unavailable | None:
        """Set the webhook of a gateway instance. The gateway sends the secret in a header with each delivery. Return
        None on success.
        """
        headers: Mapping[str, Json] = {} if secret is None else {SECRET_HEADER: secret}
        wanted: Mapping[str, Json] = {
            "enabled": True,
            "url": url,
            "headers": headers,
            "byEvents": False,
            "base64": False,
            "events": list(EVENTS),
        }
        answered = await self._ask("POST", path_of("webhook", "set", instance), {"webhook": wanted})
        return answered if isinstance(answered, Unavailable) else None

    async def close(self) -> None:
        await self._gateway.close()

    async def _list_sent_to_jid(self, instance: str, jid: str, since: datetime) -> list[Encontrada] | Unavailable:
        found: list[Encontrada] = []
        for page in range(1, MOST_PAGES + 1):
            asked: Mapping[str, Json] = {
                "where": {"key": {"remoteJid": jid, "fromMe": True}},
                "page": page,
                "offset": PAGE,
            }
            body = await self._ask("POST", path_of("chat", "findMessages", instance), asked)
            if isinstance(body, Unavailable):
                return body
            match body:
                case {"messages": {"records": list(records), "pages": int(pages)}}:
                    found += [each for row in records if (each := read_stored(row)) is not None and each.em >= since]
                case _:
                    return _strange_answer("findMessages")
            if page >= pages:
                break
        return found

    async def _ask(self, method: str, path: str, body: Mapping[str, Json] | None = None) -> Json | Unavailable:
        reply: Reply = await self._gateway.call(method, path, limit=self._limits.call, body=body)
        if (problem := unavailable(reply)) is not None:
            return problem
        assert isinstance(reply, Answer)
        return reply.body


def _strange_answer(call: str) -> Unavailable:
    return Unavailable(UNKNOWN_ANSWER(call=call))
