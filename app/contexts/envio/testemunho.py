"""Check whether a gateway still has earlier messages.

A gateway that deletes messages proves nothing by not having one (decision 0016).
"""

from datetime import datetime, timedelta
from typing import Final

from app.contexts.comum.whatsapp import Unavailable, WhatsApp
from app.contexts.envio.registro import Registro
from batuta.sql import Database

# A gateway may delete messages older than this.
REMEMBERED: Final = timedelta(days=3)
# The gateway's clock and ours may differ, and its time has whole seconds.
BEFORE: Final = timedelta(seconds=90)


async def remembers(database: Database, registro: Registro, line: WhatsApp, instance: str, before: datetime) -> bool:
    """Ask the gateway for the last message that left by this instance before an instant."""
    witness = await registro.witness(database, instance, before=before, since=before - REMEMBERED)
    if witness is None:
        return True  # nothing left before it, so the gateway cannot have lost anything
    sent = await line.list_sent(instance, witness.telefone, since=witness.em - BEFORE)
    return not isinstance(sent, Unavailable) and witness.message_id in {each.id for each in sent}
