"""Example of a supervised loop with a durable pause switch: `batuta --app examples.pulse:work worker`."""

from batuta import Batuta, Idle
from batuta.guards import Hold, SwitchGuard

work = Batuta("sqlite:///pulse.db", timezone="America/Sao_Paulo")
pause = SwitchGuard(switches=work.switches, key="pulse.pause")


@work.loop(every=2, stuck_after=60)
async def pulse() -> Idle | None:
    now = work.clock.now()
    verdict = await pause.admit(now)
    if isinstance(verdict, Hold):
        print("held:", verdict.reason)
        return Idle(verdict.until)
    print("beat at", now.astimezone(work.zone))
    return None


async def hold(reason: str) -> None:
    """Set the switch ``pulse.pause``, which pauses the loop ``pulse``. This works from any process that opens the same
    database file; the loop pauses within a second.
    """
    async with work:
        await work.switches.set("pulse.pause", True, by="me", reason=reason, now=work.clock.now())
