"""Behaviour of the simulated services. Its random decisions depend only on the seed, not on the order of calls."""

import hashlib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Self

from batuta.kernel import Json, dataclass


class Unheard(Exception):
    """Raised if a request configures a simulated service with an invalid behaviour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Settings of a simulated service. Each setting can be changed by its name."""

    def changed(self, wanted: Mapping[str, Json]) -> Self:
        known = {each.name: getattr(self, each.name) for each in fields(self)}
        changes: dict[str, object] = {}
        for name, value in wanted.items():
            if name not in known:
                raise Unheard(f"unknown setting '{name}'; the settings are {', '.join(known)}")
            changes[name] = _like(known[name], value, name)
        return replace(self, **changes)

    def shown(self) -> dict[str, Json]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comportamento(Behaviour):
    """Settings of the simulated WhatsApp. Shares range from 0 (never) to 1 (always). By default everything works and
    no person replies.
    """

    # Sends
    lost_answers: float = 0.0  # the message is sent, and the connection breaks before the response
    broken_answers: float = 0.0  # the message is sent, and the response is 500
    connection_closed: bool = False  # nothing is sent: 500 "Connection Closed", while the state is open
    too_many: int = 0  # nothing is sent: 429, with this Retry-After in seconds
    licence: bool = False  # nothing is sent: 503 LICENSE_REQUIRED, for every call except the welcome page
    slow_seconds: float = 0.0  # the message is sent immediately, and its response follows after this time
    restricted: tuple[str, ...] = ()  # instances that send nothing: 400 without a reason
    unknown_numbers: tuple[str, ...] = ()  # numbers that are not on WhatsApp
    # Webhooks
    sent_after: float = 0.2  # seconds to SERVER_ACK
    delivered_after: float = 1.0  # seconds to DELIVERY_ACK
    read_after: float = 4.0  # seconds to READ
    read_share: float = 0.8
    duplicated: float = 0.0  # share of events that are posted twice
    late: float = 0.0  # share of events that are delivered out of order
    lost: float = 0.0  # share of events that are never posted
    # People. With ``conversation``, they reply to the meaning of a message (see ``respostas``); otherwise the shares apply.
    conversation: bool = False
    reply_share: float = 0.0  # share of messages to which people reply
    opt_out_share: float = 0.0  # share of messages whose reply is an opt-out
    reply_after: float = 10.0
    hidden_share: float = 0.0  # share of replies from an address that hides the number (@lid)
    # Groups
    group_messages_per_minute: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComportamentoTelegram(Behaviour):
    """Settings of the simulated Telegram, for all accounts or for one. By default everything works."""

    hang: bool = False  # no call is executed, and none is answered
    down: bool = False  # every connection breaks
    dropped: float = 0.0  # share of calls that are not executed, and whose connection breaks
    lost_answers: float = 0.0  # share of calls that are executed, and whose connection breaks before the answer
    lost_methods: tuple[str, ...] = ()  # methods to which lost_answers applies; all methods if empty
    slow_seconds: float = 0.0  # the call is executed immediately, and answered after this time
    server_error: float = 0.0  # share of calls that are executed and answered with 500
    flood_wait: int = 0  # for this number of seconds after the first call, calls are refused with FLOOD_WAIT
    flood_methods: tuple[str, ...] = ()  # methods to which flood_wait applies; all methods if empty
    peer_flood: bool = False  # nothing is sent: PEER_FLOOD
    slow_mode: int = 0  # nothing is sent: SLOWMODE_WAIT with this number of seconds
    silent: bool = False  # no update is pushed; the difference contains it
    skipped_updates: float = 0.0  # share of updates that are not pushed; the difference contains them
    repeated_updates: float = 0.0  # share of updates that are pushed twice
    forgets_random_ids: bool = False  # a repeated random_id sends a second message
    duplicate_error: bool = False  # a repeated random_id answers RANDOM_ID_DUPLICATE instead of the message
    reply_share: float = 0.0  # share of messages to which people reply


def _like(before: object, value: Json, name: str) -> object:
    match before, value:
        case bool(), bool():
            return value
        case ((int() | float()), (int() | float())) if not isinstance(before, bool) and not isinstance(value, bool):
            most = 1.0 if name in SHARES else 1e6
            if not 0 <= value <= most:
                raise Unheard(f"{name} must be between 0 and {most:g}")
            return type(before)(value)
        case tuple(), list() if all(isinstance(each, str) for each in value):
            return tuple(value)
        case _:
            raise Unheard(f"{name} must be a value like {before!r}")


SHARES = frozenset(
    (
        "lost_answers",
        "broken_answers",
        "read_share",
        "duplicated",
        "late",
        "lost",
        "reply_share",
        "opt_out_share",
        "hidden_share",
        "dropped",
        "server_error",
        "skipped_updates",
        "repeated_updates",
    )
)


class Chance:
    """Reproducible randomness. ``of(words)`` returns the same number from 0 to 1 for the same seed and words."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def of(self, *words: object) -> float:
        text = "|".join([str(self._seed), *map(str, words)])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) / 2**64

    def bits(self, count: int, *words: object) -> int:
        text = "|".join([str(self._seed), *map(str, words)])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest()) >> (128 - count)
