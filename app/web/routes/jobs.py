"""Every endpoint under ``/jobs``: who does the work of each job of the catalogue.

What is not built yet says so: skipped, never a success.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from app.contexts.operacao.jobs import Upkeep
from app.settings import Settings
from app.workers.scheduler import CATALOGUE, Entry
from batuta import __version__
from batuta.engine.batuta import Batuta
from batuta.guard.base import Hold
from batuta.guard.switches import SwitchGuard, SwitchRule
from batuta.receive.endpoints import Handler, JobAnswer, JobCall, Skipped
from batuta.runlog.execution import HELD, UNFINISHED
from batuta.stores.sql.processes import SqlBeats
from batuta.stores.sql.retention import retentions_in
from batuta.supervise.pruner import Retention, keep_for

HISTORY = sorted((Path(__file__).parents[2] / "contexts").glob("*/history.sql"))


def pilot_rules(settings: Settings, flag: str) -> tuple[SwitchRule, ...]:
    """What a trigger that acts on its own initiative needs: pilot mode off, and its own flag on."""
    return (
        SwitchRule(key="pilot_mode", hold_when=True, at_rest=settings.pilot_mode),
        SwitchRule(key=flag, hold_when=False, at_rest=bool(getattr(settings, flag))),
    )


def add_endpoints(work: Batuta, settings: Settings, handlers: Mapping[str, Handler]) -> None:
    """``handlers`` of the contexts, by the name under ``/jobs/``."""
    upkeep = Upkeep(SqlBeats(work.database, __version__), history(work, settings), work.clock)
    built: dict[str, Handler] = {
        "heartbeat": upkeep.heartbeat,
        "limpar-historico": upkeep.limpar_historico,
        **handlers,
    }
    for endpoint, entry in _endpoints().items():
        handler = built.get(endpoint)
        guards = [] if entry.flag is None else pilot_rules(settings, entry.flag)
        work.endpoints.add(
            endpoint,
            _guarded(work, guards, handler or unfinished),
            finished=handler is not None,
            apart_by=("tipo",) if endpoint == "report-periodo" else (),
        )


def history(work: Batuta, settings: Settings) -> list[Retention]:
    """The rows that `limpar_historico` deletes by age: runs, circuits and the `history.sql` of each context."""
    age = timedelta(days=settings.batuta_keep_executions_days)
    return [
        keep_for(age, "job_executions", work.executions, work.clock),
        keep_for(age, "circuit_transitions", work.circuit_store, work.clock),
        *(each for file in HISTORY for each in retentions_in(file, age, work.database, work.clock)),
    ]


async def unfinished(call: JobCall) -> JobAnswer:
    return Skipped(UNFINISHED)


def _endpoints() -> dict[str, Entry]:
    """By the name under ``/jobs/``; several jobs may share one."""
    return {entry.path.removeprefix("/jobs/").partition("?")[0]: entry for entry in CATALOGUE}


def _guarded(work: Batuta, rules: Sequence[SwitchRule], handler: Handler) -> Handler:
    """Asked here too: a person with curl passes no scheduler."""
    if not rules:
        return handler

    async def ask_first(call: JobCall) -> JobAnswer:
        for rule in rules:
            guard = SwitchGuard(switches=work.switches, key=rule.key, hold_when=rule.hold_when, at_rest=rule.at_rest)
            if isinstance(held := await guard.admit(work.clock.now()), Hold):
                return Skipped(f"{HELD}{held.reason}")
        return await handler(call)

    return ask_first
