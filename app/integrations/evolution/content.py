"""Extract text, media and time from a WhatsApp message, in any of its envelopes and formats."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from batuta.kernel import Json

MEDIA = {
    "imageMessage": "imagem",
    "videoMessage": "video",
    "audioMessage": "audio",
    "documentMessage": "documento",
    "documentWithCaptionMessage": "documento",
    "stickerMessage": "figurinha",
    "locationMessage": "localizacao",
    "contactMessage": "contato",
}
# Paths of the readable text in each kind of message, in display order; "*" means each element of a list.
_WORDS = (
    (("conversation",),),
    (("extendedTextMessage", "text"),),
    *(((kind, "caption"),) for kind in ("imageMessage", "videoMessage", "documentMessage")),
    tuple(("buttonsMessage", name) for name in ("text", "contentText", "footerText")),
    *(
        tuple(("templateMessage", kind, f"hydrated{name}Text") for name in ("Title", "Content", "Footer"))
        for kind in ("hydratedTemplate", "hydratedFourRowTemplate")
    ),
    *(
        tuple((*before, *names) for names in (("header", "title"), ("header", "subtitle"), ("body", "text"), ("footer", "text")))
        for before in (("interactiveMessage",), ("templateMessage", "interactiveMessageTemplate"))
    ),
    (
        ("listMessage", "title"),
        ("listMessage", "description"),
        ("listMessage", "sections", "*", "rows", "*", "title"),
        ("listMessage", "footerText"),
    ),
)  # fmt: skip
_DEEPEST = 10
# Larger values are milliseconds. As a number of seconds, this value is in the year 5138.
_MILLISECONDS = 10**11


def text_of(message: Json) -> str | None:
    """Return a message's text: its own text, the caption of a picture, video or document, or the text of buttons or a
    list.
    """
    for layer in _layers(message, _DEEPEST):
        for places in _WORDS:
            read = [text for place in places for text in _texts(layer, place)]
            if read:
                return "\n".join(read)
    return None


def media_of(message: Json) -> str | None:
    kinds = (MEDIA.get(name) for layer in _layers(message, _DEEPEST) for name in layer)
    return next((kind for kind in kinds if kind), None)


def contexts(message: Json) -> Iterator[Mapping[str, Json]]:
    """Yield a message's contexts, which say to which message it replies and whether it was forwarded."""
    for layer in _layers(message, _DEEPEST):
        for part in layer.values():
            if isinstance(part, Mapping) and isinstance(context := part.get("contextInfo"), Mapping):
                yield context


def instant_of(value: Json) -> datetime | None:
    """Parse an instant: seconds or milliseconds since 1970 (as a number, a text, or the low and high halves of a 64-bit
    integer), or a date with an offset from UTC. Returns None for anything else.
    """
    try:
        match value:
            case bool():
                return None
            case {"low": int(low), "high": int(high)}:
                return _from_epoch((high << 32) + (low & 0xFFFFFFFF))
            case int() | float():
                return _from_epoch(value)
            case str() if "T" in value.upper():
                instant = datetime.fromisoformat(value)
                return instant.astimezone(UTC) if instant.tzinfo is not None else None
            case str():
                return _from_epoch(float(value))
            case _:
                return None
    except (ValueError, OverflowError, OSError):
        return None


def _from_epoch(count: float) -> datetime:
    return datetime.fromtimestamp(count / 1000 if count >= _MILLISECONDS else count, UTC)


def _layers(message: Json, deepest: int) -> Iterator[Mapping[str, Json]]:
    """Yield the message and its nested messages. WhatsApp wraps ephemeral and view-once messages in other messages."""
    if not isinstance(message, Mapping) or deepest == 0:
        return
    yield message
    for part in message.values():
        if isinstance(part, Mapping):
            yield from _layers(part.get("message"), deepest - 1)


def _texts(value: Json, place: tuple[str, ...]) -> Iterator[str]:
    if not place:
        if isinstance(value, str) and value.strip():
            yield value
    elif place[0] == "*":
        for each in value if isinstance(value, list) else ():
            yield from _texts(each, place[1:])
    elif isinstance(value, Mapping):
        yield from _texts(value.get(place[0]), place[1:])
