"""The gateway's events about messages, in the many formats of messengers and their tools."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.contexts.webhooks.api import DeGrupo, EntregaDoWebhook, Fato, Recebida
from app.integrations.evolution.answers import read_stored
from app.integrations.evolution.events import delivery_of, facts_of

SENT = datetime(2026, 3, 10, 12, tzinfo=UTC)
LATER = SENT + timedelta(days=2)
SECONDS = int(SENT.timestamp())
GROUP = "120363000000000001@g.us"
OFFER = "Plantão pediatria Hospital Fictício dia 20/03 SN R$ 1.500"


def read_message(message: Any, kind: str = "conversation", chat: str = GROUP, **more: Any) -> Fato:
    key = {"remoteJid": chat, "id": "3EB0000001", "fromMe": False, "participant": "5511900000077@s.whatsapp.net"}
    data = {"key": key, "message": message, "messageType": kind, "messageTimestamp": SECONDS, **more}
    delivery = delivery_of({"event": "messages.upsert", "instance": "escuta", "data": data})
    assert isinstance(delivery, EntregaDoWebhook)
    (fact,) = facts_of(delivery.evento, delivery.payload, LATER)
    return fact


def within(*wrappers: str, message: Any) -> Any:
    for wrapper in reversed(wrappers):
        message = {wrapper: {"message": message}}
    return message


PICTURE = {"imageMessage": {"caption": OFFER}}


@pytest.mark.parametrize(
    "message",
    [
        *(
            within(wrapper, message=PICTURE)
            for wrapper in (
                "viewOnceMessage", "viewOnceMessageV2", "viewOnceMessageV2Extension", "ephemeralMessage", "groupMentionedMessage",
            )
        ),
        within("documentWithCaptionMessage", message={"documentMessage": {"caption": OFFER}}),
        within("ephemeralMessage", "viewOnceMessageV2", message=PICTURE),
        {"buttonsMessage": {"contentText": OFFER}},
        {"templateMessage": {"hydratedTemplate": {"hydratedContentText": OFFER}}},
        {"templateMessage": {"hydratedFourRowTemplate": {"hydratedContentText": OFFER}}},
        {"templateMessage": {"interactiveMessageTemplate": {"body": {"text": OFFER}}}},
        {"interactiveMessage": {"body": {"text": OFFER}}},
        within("viewOnceMessage", message={"interactiveMessage": {"body": {"text": OFFER}}}),
        {"listMessage": {"description": OFFER}},
        {"conversation": "", "extendedTextMessage": {"text": OFFER}},
        {"conversation": None, **PICTURE},
        {"extendedTextMessage": {"text": ""}, **PICTURE},
        {"extendedTextMessage": {"text": " "}, **PICTURE},
    ],
)  # fmt: skip
def test_text_is_read_in_every_wrapper(message: Any) -> None:
    fact = read_message(message, next(iter(message)))
    assert isinstance(fact, DeGrupo)
    assert fact.texto == OFFER


def test_visible_texts_of_buttons_and_lists_are_read_in_order() -> None:
    rows = [{"title": "20/03 SN", "rowId": "1"}, {"title": "21/03 SD", "rowId": "2"}]
    listed = {"title": "Hospital Fictício", "description": "Escolha", "footerText": "PV", "sections": [{"rows": rows}]}
    fact = read_message({"listMessage": listed}, "listMessage")
    assert isinstance(fact, DeGrupo)
    assert fact.texto == "Hospital Fictício\nEscolha\n20/03 SN\n21/03 SD\nPV"
    fact = read_message(
        {"buttonsMessage": {"text": "Hospital Fictício", "contentText": "20/03 SN", "footerText": "PV"}}
    )
    assert isinstance(fact, DeGrupo)
    assert fact.texto == "Hospital Fictício\n20/03 SN\nPV"


def test_wrapped_picture_without_text_is_a_picture() -> None:
    fact = read_message(within("viewOnceMessageV2", message={"imageMessage": {}}), "viewOnceMessageV2")
    assert isinstance(fact, DeGrupo)
    assert (fact.texto, fact.midia) == ("", "imagem")
    spoken = read_message(
        within("viewOnceMessage", message={"audioMessage": {}}), "x", chat="5511900000077@s.whatsapp.net"
    )
    assert isinstance(spoken, Recebida)
    assert spoken.midia == "audio"


def test_reply_in_an_ephemeral_chat_keeps_its_quote_and_forward_flag() -> None:
    text = {"text": "fechado", "contextInfo": {"stanzaId": "OFERTA1", "isForwarded": True}}
    fact = read_message(within("ephemeralMessage", message={"extendedTextMessage": text}), "ephemeralMessage")
    assert isinstance(fact, DeGrupo)
    assert (fact.citada, fact.encaminhada) == ("OFERTA1", True)


def test_deep_nesting_is_not_an_error() -> None:
    fact = read_message(within(*["ephemeralMessage"] * 300, message={"conversation": OFFER}), "imageMessage")
    assert isinstance(fact, DeGrupo)


@pytest.mark.parametrize(
    "written",
    [
        SECONDS, str(SECONDS), float(SECONDS), SECONDS * 1000, str(SECONDS * 1000), {"low": SECONDS, "high": 0, "unsigned": True},
        {"low": (SECONDS * 1000 & 0xFFFFFFFF) - 2**32, "high": SECONDS * 1000 >> 32}, "2026-03-10T12:00:00Z",
        "2026-03-10T09:00:00.000-03:00",
    ],
)  # fmt: skip
def test_instant_is_read_in_every_notation(written: Any) -> None:
    fact = read_message({"conversation": OFFER}, messageTimestamp=written)
    assert isinstance(fact, DeGrupo)
    assert fact.em == SENT
    row: dict[str, Any] = {"key": {"id": "1", "remoteJid": GROUP, "fromMe": True}, "message": {"conversation": OFFER}}
    found = read_stored({**row, "messageTimestamp": written})
    assert found is not None
    assert found.em == SENT


@pytest.mark.parametrize(
    "written",
    [
        None, "", "amanhã", True, -1, 0, 1e300, 10**18, "nan", "inf", "9" * 5000, {"low": 1}, {"low": "x", "high": 0}, [],
        "2026-03-10T12:00:00", "T", "9999-12-31T23:59:59-23:59", SECONDS * 2,
    ],
)  # fmt: skip
def test_impossible_instant_is_replaced_by_now(written: Any) -> None:
    fact = read_message({"conversation": OFFER}, messageTimestamp=written)
    assert isinstance(fact, DeGrupo)
    assert fact.em == LATER
    read_stored(
        {
            "key": {"id": "1", "remoteJid": GROUP, "fromMe": True},
            "message": {"conversation": "x"},
            "messageTimestamp": written,
        }
    )
