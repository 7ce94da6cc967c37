"""The log lines that one attempt at a task, an item or a run wrote."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

from batuta.kernel.values import dataclass

# Maximum number of lines per attempt. Further lines are dropped, and a line with the level CUT says so.
MOST_LINES: Final = 200
MOST_CHARACTERS: Final = 64 * 1024
LONGEST_LINE: Final = 8000
CUT: Final = "cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A log line with personal data masked. ``item_id`` is the id of the task, the item or the run."""

    id: str
    item_id: str
    attempt: int
    at: datetime
    level: str
    logger: str
    line: str


class LineStore(Protocol):
    async def add(self, lines: Sequence[LogLine]) -> None: ...
