"""A browser's session: a sealed note of whose token opened it, until when. What the token may do is asked anew at every request.

    <API_TOKEN | the token's id>.<expires, unix seconds>.<chance>.<seal>

Nothing is kept for it. So a token that is revoked ends its sessions, a changed key ends all of them, and a sign-out is remembered
by the process that heard it, until the note would have expired anyway.
"""

import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from batuta.access.tokens import same

LASTS = timedelta(hours=12)
_FORM = re.compile(r"(API_TOKEN|[0-9a-f]{12})\.([0-9]{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Session:
    holder: str  # API_TOKEN, or the id of a token
    expires_at: datetime
    chance: str

    @property
    def text(self) -> str:
        return f"{self.holder}.{int(self.expires_at.timestamp())}.{self.chance}"


class Sessions:
    def __init__(self, key: str) -> None:
        self._key = sha256(f"session {key}".encode()).digest()
        self._ended: dict[str, datetime] = {}

    def begin(self, holder: str, *, now: datetime, chance: str) -> str:
        """The note for the browser. ``chance``: 16 bytes of it as hexadecimal."""
        text = Session(holder, now + LASTS, chance).text
        return f"{text}.{self._seal(text)}"

    def find(self, note: str, *, now: datetime) -> Session | None:
        """None: it is not one of ours, or it is over."""
        found = _FORM.fullmatch(note)
        if found is None or not same(self._seal(note.rpartition(".")[0]), found[4]):
            return None
        session = Session(found[1], datetime.fromtimestamp(int(found[2]), UTC), found[3])
        return session if now < session.expires_at and session.chance not in self._ended else None

    def end(self, session: Session, *, now: datetime) -> None:
        self._ended = {chance: until for chance, until in self._ended.items() if until > now}
        self._ended[session.chance] = session.expires_at

    def proof(self, session: Session) -> str:
        """What a form of ours carries and nobody else's can know."""
        return self._seal(f"form {session.text}")

    def _seal(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), sha256).hexdigest()
