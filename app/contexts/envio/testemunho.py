"""Check whether a gateway still has earlier messages.

The absence of a message proves nothing if the gateway deletes messages (decision 0016).
"""

from datetime import datetime, timedelta
from typing import Final

from app.contexts.comum.whatsapp import Unavailable, WhatsApp
from app.contexts.envio.registro import Registro
from batuta.sql import Database

# A gateway may delete messages older than this.
REMEMBERED: Final = timedelta(days=3)
# The clocks of the gateway and of this machine may differ, and the gateway's times have whole seconds.
BEFORE: Final = timedelta(seconds=90)


async def remembers(database: Database, registro: Registro, line: WhatsApp, instance: str, before: datetime) -> bool:
    """Return whether the gateway still has the last message that this instance sent before an instant."""
    witness = await registro.witness(database, instance, before=before, since=before - REMEMBERED)
    if witness is None:
        return True  # no earlier message was sent, so the gateway cannot have lost one
    sent = await line.list_sent(instance, witness.telefone, since=witness.em - BEFORE)
    return not isinstance(sent, Unavailable) and witness.message_id in {each.id for each in sent}
