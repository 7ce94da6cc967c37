"""Hours as a guard: asked at the instant of the effect, it names the next opening."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from batuta.guard.base import Admit, Hold, Verdict
from batuta.schedule.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursGuard:
    """The end of the window is outside: at 20:00 sharp nothing leaves any more."""

    name: str
    window: Window
    zone: ZoneInfo

    async def admit(self, now: datetime) -> Verdict:
        opens = self.window.next_open(now, self.zone)
        if opens <= now:
            return Admit()
        return Hold(opens, f"outside {self.name}: opens {opens.astimezone(self.zone):%d/%m %H:%M}")
