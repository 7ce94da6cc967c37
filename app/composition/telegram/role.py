"""The role ``telegram``: the process that sends and receives Telegram messages. The parent process of ``batuta up``
also imports this module, so this module must not import the services, which would cost the parent memory.
"""

from typing import Final

from batuta.extension import Role

ROLE: Final = "telegram"
LOOPS: Final = ("sync", "outbound", "history", "jobs")
TELEGRAM_ROLE: Final = Role(ROLE, worker_name="telegram-main", shows=LOOPS)
