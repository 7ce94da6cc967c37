"""Telethon's client with the settings that Julia requires, and the client's position in the stream of updates.

Telethon's own waits and retries are switched off: no sleep during a flood wait, one attempt per request, no
reconnection in the background. When the connection is lost, the client ends. The worker then connects again with its
own back-off.
"""

import json
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from telethon import TelegramClient
from telethon._updates import Entity, EntityType
from telethon.sessions import StringSession
from telethon.tl import types

from batuta.kernel import dataclass

CONNECT_SECONDS: Final = 10
# Telethon logs requests and updates, which contain texts, numbers and codes.
SILENT: Final = logging.Logger("telethon", logging.CRITICAL + 1)


@dataclass(frozen=True, slots=True)
class Lote:
    """Updates in order of arrival, the people and chats in them, and the position after them."""

    updates: Sequence[Any]
    entities: Sequence[Any]
    marca: str


class Cliente(TelegramClient):  # type: ignore[misc] # Telethon has no types
    def __init__(
        self, session: StringSession, api_id: int, api_hash: str, marca: str | None = None, *, repeats: int = 0
    ) -> None:
        """Create the client. ``repeats`` is how many times a request is repeated if the server redirects it to another
        data centre, which happens during a login.
        """
        super().__init__(
            session,
            api_id,
            api_hash,
            timeout=CONNECT_SECONDS,
            request_retries=repeats,
            connection_retries=0,
            retry_delay=0,
            auto_reconnect=False,
            flood_sleep_threshold=0,
            raise_last_call_error=True,
            device_model="Batuta",
            base_logger=SILENT,
            catch_up=True,
            sequential_updates=True,
        )
        self.taken: Callable[[Lote], None] = lambda lote: None
        if marca is not None:
            self._resume(json.loads(marca))

    @property
    def marca(self) -> str:
        """The account's position in the stream of updates, and the position of each of its channels. A channel's
        position includes the channel's access hash.
        """
        state, channels = self._message_box.session_state()
        known = {id: self._mb_entity_cache.get(id) for id in channels}
        return json.dumps(
            {
                "pts": state["pts"],
                "qts": state["qts"],
                "date": int(state["date"].timestamp()),
                "seq": state["seq"],
                "canais": {str(id): [pts, known[id].hash] for id, pts in channels.items() if known[id] is not None},
            }
        )

    @property
    def pts(self) -> int:
        return int(self._message_box.session_state()[0]["pts"])

    @property
    def updates_error(self) -> BaseException | None:
        """The reason why the client stopped receiving updates, or None."""
        error: BaseException | None = self._updates_error
        return error

    @property
    def receives(self) -> bool:
        """Return whether the client still receives updates."""
        return self._updates_handle is not None and not self._updates_handle.done()

    def learn(self, users: Sequence[Any], chats: Sequence[Any]) -> None:
        self._mb_entity_cache.extend(users, chats)

    async def _preprocess_updates(
        self, updates: Sequence[Any], users: Sequence[Any], chats: Sequence[Any]
    ) -> list[Any]:
        """Take a batch of updates. Telethon calls this method after it has moved its position past the batch, so the
        batch and the position belong together. Return an empty list, so that Telethon's own event handlers do nothing.
        """
        await super()._preprocess_updates(updates, users, chats)
        self.taken(Lote(updates, [*users, *chats], self.marca))
        return []

    def _resume(self, position: Any) -> None:
        at = datetime.fromtimestamp(position["date"], UTC)
        state = types.updates.State(position["pts"], position["qts"], at, position["seq"], 0)
        self.session.set_update_state(0, state)
        for id, (pts, hash) in position["canais"].items():
            self.session.set_update_state(int(id), types.updates.State(pts, 0, at, 0, 0))
            self._mb_entity_cache.put(Entity(EntityType.CHANNEL, int(id), hash))
