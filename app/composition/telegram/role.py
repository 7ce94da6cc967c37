"""The role ``telegram``. The parent process imports this module, so this module imports no service."""

from typing import Final

from batuta.extension import Role

ROLE: Final = "telegram"
LOOPS: Final = ("sync", "outbound", "history", "jobs")
TELEGRAM_ROLE: Final = Role(ROLE, worker_name="telegram-main", shows=LOOPS)
