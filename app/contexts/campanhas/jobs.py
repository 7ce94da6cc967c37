"""The job that starts and ends campaigns, and the loop that does the same between two fires of the job.

In the timetable ``janelas`` (time windows), the job fires only when a window opens. The loop then starts campaigns that
become due while the window is open. When the job is paused, the loop does not start the job's campaigns either.
"""

from datetime import timedelta
from typing import Final

from app.contexts.campanhas.inicio import Held, Inicio, Resultado
from app.contexts.campanhas.model import OUTSIDE
from batuta import Done, Idle, Outcome, Partial, Skipped, reasons
from batuta.jobs import JobCall
from batuta.kernel import Json
from batuta.loops import Pace, Wakeup
from batuta.reasons import code_of, define

REFUSED = define("campanhas_recusadas", "refused: {ids}; `batuta campanhas ver` shows the reasons")

LOOK_EVERY: Final = timedelta(seconds=10)


class CampaignJobs:
    def __init__(self, inicio: Inicio) -> None:
        self._inicio = inicio

    async def processar_campanhas_agendadas(self, call: JobCall) -> Outcome:
        return _answer(await self._inicio.passar())


class CampaignLoop:
    def __init__(self, inicio: Inicio, held: Held) -> None:
        """Create the loop that starts due campaigns. ``held`` returns the campaign types whose job is paused."""
        self.name = "campanhas"
        self.wakeup = Wakeup()
        self._inicio = inicio
        self._held = held

    async def tick(self) -> Pace:
        await self._inicio.passar(self._held)
        return Idle()


def _answer(done: Resultado) -> Outcome:
    details: dict[str, Json] = {
        "iniciadas": done.iniciadas,
        "enfileiradas": done.enfileiradas,
        "esperam": {str(id): why for id, why in done.esperam.items()},
        "recusadas": {str(id): why for id, why in done.recusadas.items()},
        "message": f"{done.iniciadas} campanha(s) iniciada(s)",
    }
    if done.recusadas:
        ids = ", ".join(map(str, done.recusadas))
        return Partial(REFUSED(ids=ids), items=done.iniciadas, result=details)
    held = next((why for why in done.esperam.values() if code_of(why) != OUTSIDE), None)
    if held is not None and not done.iniciadas:
        return Skipped(reasons.hold_reason(held))
    return Done(items=done.iniciadas, result=details)
