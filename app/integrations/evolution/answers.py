"""Translate the gateway's responses into results, based on HTTP status and fields. The wording of the gateway's
messages is ignored, because it changes between versions.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import cast

from app.contexts.comum.conteudo import hash_do_texto
from app.contexts.comum.telefone import address
from app.contexts.comum.whatsapp import (
    Banned,
    Disconnected,
    Encontrada,
    Entrega,
    EstadoDaConexao,
    Instancia,
    NotOnWhatsApp,
    Numero,
    RateLimited,
    Refused,
    SendResult,
    Sent,
    Unavailable,
    Unknown,
)
from app.integrations.evolution.content import instant_of, text_of
from app.integrations.evolution.http import Answer, Reply, Silence
from batuta.kernel import Json, mask_text
from batuta.reasons import HTTP_STATUS, HTTP_STATUS_SAID, define

# 402 means a temporary ban, 403 forbidden, 406 a permanent ban. 401 means a logged-out phone or a wrong key.
BAN_CODES = frozenset({402, 403, 406})
LOGGED_OUT = 401
NOT_FOUND = 404
CONNECTION_CLOSED = frozenset({"Connection Closed", "Error: Connection Closed"})
LICENCE = define(
    "gateway_licenca", "the gateway requires its licence (LICENSE_REQUIRED): activate it, or run version 2.3.7"
)
UNREACHED = define("gateway_inacessivel", "the gateway cannot be reached ({error})")
SILENT = define("gateway_calado", "the gateway did not answer ({error})")
NO_ID = define("gateway_sem_id", "HTTP {status} without the message's id")
REDIRECTS = define("gateway_redireciona", "HTTP {status}: the address redirects; set EVOLUTION_API_URL to its target")
WRONG_KEY = define("gateway_chave", "HTTP 401: the gateway refuses the key; check EVOLUTION_API_KEY")
OF_THE_MESSAGE = frozenset({400, 413, 422})
OF_THE_SETUP = frozenset({301, 302, 303, 307, 308, 401, 404, 405})
ENTREGAS = {
    "ERROR": Entrega.FAILED,
    "PENDING": Entrega.PENDING,
    "SERVER_ACK": Entrega.SENT,
    "DELIVERY_ACK": Entrega.DELIVERED,
    "READ": Entrega.READ,
    "PLAYED": Entrega.READ,
}
# Number of characters of the gateway's message that operators see.
LONGEST_WORDS = 200
LONGEST_WAIT = timedelta(days=1)


def send_result(reply: Reply, now: datetime) -> SendResult:
    match reply:
        case Silence(why=why, never_sent=True):
            return Refused(UNREACHED(error=why))
        case Silence(why=why):
            return Unknown(why)
        case Answer(status=status) if 200 <= status < 300:
            return _send_result(reply)
        case Answer(status=429):
            return RateLimited(retry_after(reply, now))
        case Answer(status=status) if status in BAN_CODES:
            return Banned(status)
        case Answer(status=400) if _has_no_account(reply):
            return NotOnWhatsApp()
        case Answer(status=status) if status < 500:
            # A wrong key, an unknown instance or a redirect does not depend on the message.
            return Refused(_complaint(reply), permanent=status in OF_THE_MESSAGE, needs_person=status in OF_THE_SETUP)
        case Answer(body=body) if _code(body) == "LICENSE_REQUIRED":
            return Refused(LICENCE(), needs_person=True)
        case Answer() if CONNECTION_CLOSED & set(_words(reply.body)):
            return Disconnected()
        case Answer(status=status):
            return Unknown(HTTP_STATUS(status=status))


def unavailable(reply: Reply) -> Unavailable | None:
    """Return why a request failed, or None if the gateway accepted it."""
    match reply:
        case Silence(why=why):
            return Unavailable(SILENT(error=why))
        case Answer(status=status) if 200 <= status < 300:
            return None
        case Answer(body=body) if _code(body) == "LICENSE_REQUIRED":
            return Unavailable(LICENCE(), permanent=True)
        case Answer(status=status):
            is_permanent = status in OF_THE_MESSAGE | OF_THE_SETUP
            return Unavailable(_complaint(reply), permanent=is_permanent, not_found=status == NOT_FOUND)


def retry_after(answer: Answer, now: datetime) -> timedelta | None:
    """Parse a Retry-After header, which is a number of seconds or a date. A wait of more than a day is shortened to a
    day.
    """
    said = next((value for name, value in answer.headers.items() if name.lower() == "retry-after"), "")
    try:
        if said.isdecimal():
            return timedelta(seconds=min(int(said), LONGEST_WAIT.total_seconds()))
        at = parsedate_to_datetime(said)
    except ValueError:
        return None
    return min(max(timedelta(0), (at if at.tzinfo else at.replace(tzinfo=UTC)) - now), LONGEST_WAIT)


def instance_of(row: Json) -> Instancia | None:
    if not isinstance(row, Mapping) or not isinstance(row.get("name"), str):
        return None
    owner, code = row.get("ownerJid"), row.get("disconnectionReasonCode")
    found = address(owner) if isinstance(owner, str) else None
    return Instancia(
        name=str(row["name"]),
        state=conexao(row.get("connectionStatus")),
        telefone=None if found is None else found.telefone,
        code=code if isinstance(code, int) else None,
    )


def conexao(word: Json) -> EstadoDaConexao:
    """Parse a connection state. An unknown state is treated as closed."""
    return EstadoDaConexao(word) if isinstance(word, str) and word in set(EstadoDaConexao) else EstadoDaConexao.CLOSE


def number_of(row: Json) -> Numero | None:
    match row:
        case {"number": str(number), "exists": bool(exists), "jid": str(jid), **rest}:
            lid = rest.get("lid")
            return Numero(telefone=number, exists=exists, jid=jid, lid=lid if isinstance(lid, str) and lid else None)
        case _:
            return None


def read_stored(row: Json) -> Encontrada | None:
    """Parse a message from the gateway's message store. Returns None for a message that our number received, and for a
    message without text or time.
    """
    match row:
        case {"key": {"id": str(id), "remoteJid": str(jid), "fromMe": True}, **rest}:
            text, at = (
                text_of(cast("Json", rest.get("message"))),
                instant_of(cast("Json", rest.get("messageTimestamp"))),
            )
            if text is None or at is None:
                return None
            updates = _mappings(cast("Json", rest.get("MessageUpdate")))
            words = [rest.get("status"), *(each.get("status") for each in updates)]
            reached = [ENTREGAS[word] for word in words if isinstance(word, str) and word in ENTREGAS]
            return Encontrada(
                id=id,
                jid=jid,
                em=at,
                conteudo_hash=hash_do_texto(text),
                entrega=max(reached, key=lambda each: each.rank, default=Entrega.PENDING),
            )
        case _:
            return None


def _send_result(answer: Answer) -> SendResult:
    match answer.body:
        case {"key": {"id": str(id), "remoteJid": str(jid)}} if id:
            return Sent(id, jid)
        case _:
            return Unknown(NO_ID(status=answer.status))


def _has_no_account(answer: Answer) -> bool:
    return any(each.get("exists") is False for each in _mappings(_message_in(answer.body)))


def _complaint(answer: Answer) -> str:
    if 300 <= answer.status < 400:
        return REDIRECTS(status=answer.status)
    if answer.status == LOGGED_OUT:
        return WRONG_KEY()
    words = mask_text("; ".join(_words(answer.body)), LONGEST_WORDS)
    return HTTP_STATUS_SAID(status=answer.status, said=words) if words else HTTP_STATUS(status=answer.status)


def _message_in(body: Json) -> Json:
    """Return the error message in a response body from the gateway. One endpoint sends the message without the envelope
    ``{"response": {"message": …}}``.
    """
    match body:
        case {"response": {"message": message}} | {"message": message}:
            return message
        case _:
            return None


def _words(body: Json) -> list[str]:
    """Flatten an error message, which may be a text, a list, or nested lists."""
    said = _message_in(body)
    if isinstance(said, str):
        return [said]
    flat = [inner for each in _items(said) for inner in (_items(each) or [each])]
    return [each for each in flat if isinstance(each, str)]


def _code(body: Json) -> Json:
    return body.get("code") if isinstance(body, Mapping) else None


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    return [each for each in _items(value) if isinstance(each, Mapping)]
