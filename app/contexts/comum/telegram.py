"""Find out which Telegram account received a message, from the id of the message."""

import re
from typing import Final

_CONTA: Final = re.compile(r"tg:([0-9a-f]{8}-[0-9a-f-]{27}):")


def conta_de(message_id: str) -> str | None:
    """Return the account that received a private message on Telegram, or None for any other message."""
    found = _CONTA.match(message_id)
    return None if found is None else found[1]
