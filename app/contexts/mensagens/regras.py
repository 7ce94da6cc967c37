"""Read the sending rules that apply now: switches, time windows, and the allowlist."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Protocol
from zoneinfo import ZoneInfo

from app.contexts.mensagens.fila import FILA_MENSAGENS, TELEGRAM_SAIDA
from app.contexts.mensagens.guardrails import LONGEST, RegrasDeEnvio
from app.contexts.mensagens.interruptores import CAMPAIGNS, SAFE_MODE
from app.contexts.mensagens.limites import HORARIO
from batuta.guards import Hold, Switch, SwitchRule, judge_switch
from batuta.jobs import Controls, Window
from batuta.kernel import Clock, dataclass

PAUSE_ALL: Final = SwitchRule(key="pause.all")
PAUSES: Final = (PAUSE_ALL, SwitchRule(key=f"pause.queue.{FILA_MENSAGENS.name}"))
PAUSES_OF_TELEGRAM: Final = (PAUSE_ALL, SwitchRule(key=f"pause.queue.{TELEGRAM_SAIDA}"))
# The timetable whose windows restrict campaigns and messages of triggers, and the window of each type.
BOUND: Final = "janelas"
WINDOW_OF: Final[Mapping[str, str]] = {
    "discovery": "manha",
    "reativacao": "manha",
    "oferta": "tarde",
    "oferta_plantao": "tarde",
    "followup": "fim",
    "feedback": "fim",
}


class Switches(Protocol):
    async def all(self, within: Any | None = None) -> dict[str, Switch]: ...


class Timetables(Protocol):
    async def read(self, within: Any | None = None) -> Controls: ...


class ScheduleRegistry(Protocol):
    def profile(self, controls: Controls) -> str: ...
    def windows_now(self, controls: Controls) -> Mapping[str, Window]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RegrasAgora:
    """Reads the sending rules in the caller's transaction. The rules stay valid until the transaction ends.

    ``triggers`` maps the switch of each automatic trigger to all switches that can hold back its messages.
    """

    switches: Switches
    controls: Timetables
    registry: ScheduleRegistry
    clock: Clock
    zone: ZoneInfo
    is_production: bool
    is_simulated: bool
    has_line: bool = True
    longest: int = LONGEST
    pauses: Sequence[SwitchRule] = PAUSES
    allowlist: Collection[str] = ()
    hours: Window = HORARIO
    triggers: Mapping[str, Sequence[SwitchRule]] = field(default_factory=dict)

    async def __call__(self, reading: Any, janela: str | None, gatilho: str | None = None) -> RegrasDeEnvio:
        """Read the sending rules for one message. ``janela`` is the type of campaign or trigger whose time window
        applies. ``gatilho`` is the switch for the trigger that queued the message.
        """
        switches = await self.switches.all(within=reading)
        return RegrasDeEnvio(
            zone=self.zone,
            is_production=self.is_production,
            is_simulated=self.is_simulated,
            has_line=self.has_line,
            longest=self.longest,
            allowlist=self.allowlist,
            hours=self.hours,
            paused=next((hold for rule in self.pauses if (hold := self._hold(rule, switches)) is not None), None),
            campaigns=self._hold(CAMPAIGNS, switches),
            safe_mode=self._hold(SAFE_MODE, switches),
            trigger_off=None if gatilho is None else self._trigger_off(gatilho, switches),
            window=None if janela is None else await self._window(reading, janela),
        )

    def _trigger_off(self, gatilho: str, switches: Mapping[str, Switch]) -> str | None:
        """Return the switch that currently stops a trigger, or None if the trigger may send. If no trigger has this
        name, the trigger must not send, and its name is returned.
        """
        if (rules := self.triggers.get(gatilho)) is None:
            return gatilho
        return next((rule.key for rule in rules if self._hold(rule, switches) is not None), None)

    def _hold(self, rule: SwitchRule, switches: Mapping[str, Switch]) -> Hold | None:
        decided = judge_switch(rule, switches.get(rule.key), self.clock.now())
        return decided if isinstance(decided, Hold) else None

    async def _window(self, reading: Any, janela: str) -> Window | None:
        controls = await self.controls.read(within=reading)
        if self.registry.profile(controls) != BOUND or janela not in WINDOW_OF:
            return None
        return self.registry.windows_now(controls)[WINDOW_OF[janela]]
