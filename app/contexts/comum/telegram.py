"""Find out from a message's id which Telegram account received the message."""

import re
from typing import Final

_CONTA: Final = re.compile(r"tg:([0-9a-f]{8}-[0-9a-f-]{27}):")


def conta_de(message_id: str) -> str | None:
    """Return the account that received a private Telegram message, or None for any other message."""
    found = _CONTA.match(message_id)
    return None if found is None else found[1]
