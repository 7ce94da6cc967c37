"""``/health/circuits``: every circuit breaker, and what became of them."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request

from batuta.guard.breaker import Circuit, Transition
from batuta.kernel import reasons
from batuta.texts import Texts
from batuta.web.context import state_of
from batuta.web.problems import texts_for

router = APIRouter(tags=["health"])
SHOWN = 50
LONGEST_HOURS = 24 * 366
Hours = Annotated[int, Query(ge=1, le=LONGEST_HOURS)]


@router.get("/health/circuits", operation_id="health_circuits")
async def health_circuits(request: Request) -> dict[str, Any]:
    """How every circuit breaker stands, in all processes."""
    state = state_of(request)
    circuits = await state.work.circuits.look()
    return {
        "circuits": {circuit.name: describe_circuit(circuit, state.work.zone) for circuit in circuits},
        "timestamp": state.now().isoformat(),
    }


@router.get("/health/circuits/history", operation_id="health_circuits_history")
async def health_circuits_history(
    request: Request, circuit_name: str | None = None, horas: Hours = 24
) -> dict[str, Any]:
    """What opened and closed in the last hours, newest first."""
    state = state_of(request)
    since = state.work.clock.now() - timedelta(hours=horas)
    transitions = await state.work.circuits.history(circuit_name or None, since)
    by_circuit: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in transitions:
        by_circuit[each.circuit].append(_describe_transition(each, state.work.zone, texts_for(request)))
    return {
        "circuit_filter": circuit_name,
        "period_hours": horas,
        "total_transitions": len(transitions),
        "by_circuit": by_circuit,
        "transitions": [
            {"circuit": each.circuit, **_describe_transition(each, state.work.zone, texts_for(request))}
            for each in transitions[:SHOWN]
        ],
        "timestamp": state.now().isoformat(),
    }


def describe_circuit(circuit: Circuit, zone: ZoneInfo) -> dict[str, Any]:
    return {
        "nome": circuit.name,
        "estado": circuit.state.value,
        "falhas_consecutivas": circuit.failures,
        "ultima_falha": _format_instant(circuit.last_failure, zone),
        "ultimo_sucesso": _format_instant(circuit.last_success, zone),
        "tentativas_half_open": circuit.half_open_attempts,
        "tempo_reset_atual": circuit.reset.total_seconds(),
        "ultimo_erro_tipo": circuit.last_error,
        "proxima_tentativa": _format_instant(circuit.tries_at or circuit.wait_until, zone),
    }


def _describe_transition(transition: Transition, zone: ZoneInfo, texts: Texts) -> dict[str, Any]:
    return {
        "from": transition.before.value,
        "to": transition.after.value,
        "reason": texts.reason(transition.reason),
        **reasons.described(transition.reason),
        "falhas": transition.failures,
        "at": _format_instant(transition.at, zone),
    }


def _format_instant(instant: datetime | None, zone: ZoneInfo) -> str | None:
    return None if instant is None else instant.astimezone(zone).isoformat()
