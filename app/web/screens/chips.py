"""``/painel/chips``: the WhatsApp numbers, the reasons why a number does not send, and the actions pause, activate and retire."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from app.composition.julia import Julia
from app.contexts.chips.jobs import last_digits
from app.contexts.chips.saude import LOW_TRUST
from app.contexts.chips.service import DecisaoDoChip, StatusDoChip, UnknownChip
from app.contexts.comum.whatsapp import circuit_of
from app.web.screens.pages import word
from batuta.errors import ActionRefused
from batuta.extension import (
    Action,
    ActionCall,
    ActionResult,
    Field,
    FieldKind,
    Preview,
    Scope,
    Screen,
    Texts,
    Tone,
    Visit,
)
from batuta.guards import CircuitState
from batuta.reasons import decode, define
from batuta.sql import Row

PATH: Final = "/chips"
SENDS: Final = "julia"
MAY: Final = ("prospectar", "followup", "responder")
BANNED: Final = "banned"
NOT_BANNED: Final = define("chip_not_banned", "WhatsApp has not banned {instance}: pause it instead")
STOPPED: Final = frozenset({"paused", "banned", "cancelled", "provisioned", "pending", "cooldown"})
FIELDS: Final = (
    Field(name="instancia", kind=FieldKind.HIDDEN, required=True, longest=200),
    Field(name="motivo", label="tela.motivo", required=True, longest=200),
)


def screens(julia: Callable[[], Julia]) -> Sequence[Screen]:
    async def read(visit: Visit) -> Mapping[str, object]:
        return await _read(julia(), visit)

    return [Screen(path=PATH, title="tela.chips.titulo", template="julia/chips.html.j2", read=read)]


def actions(julia: Callable[[], Julia]) -> Sequence[Action]:
    def change(name: str, status: StatusDoChip) -> Action:
        async def preview(call: ActionCall) -> Preview:
            row = await _chip(julia(), call.values["instancia"])
            if name == "retirar" and row["status"] != BANNED:
                raise ActionRefused(why=NOT_BANNED(instance=row["instance_name"]))
            facts = {"instancia": row["instance_name"], "status": call.texts(f"estado.chip.{row['status']}")}
            is_banned = name == "ativar" and row["status"] == BANNED
            return Preview(says=f"tela.chips.previa_{name}{'_banido' if is_banned else ''}", facts=facts)

        async def perform(call: ActionCall) -> ActionResult:
            work, instance = julia().work, call.values["instancia"]
            await preview(call)
            what, why = DecisaoDoChip(status=status), call.values["motivo"]
            async with work.database.transaction() as transaction:
                after = await julia().chips.chips.decidir(
                    transaction, instance, what, why, by=call.caller, now=work.clock.now()
                )
            facts = {"instancia": instance, "status": call.texts(f"estado.chip.{after['status']}")}
            return ActionResult(says="tela.chips.mudado", facts=facts)

        return Action(
            name=f"chip.{name}",
            label=f"tela.chips.{name}",
            fields=FIELDS,
            preview=preview,
            perform=perform,
            command=lambda values: [
                "chip", values["instancia"], "--status", status.value, "--motivo", values["motivo"] or "…"
            ],
            tone=Tone.FAILING if status is StatusDoChip.CANCELLED else Tone.RUNNING,
        )  # fmt: skip

    return [
        change("pausar", StatusDoChip.PAUSED),
        change("ativar", StatusDoChip.ACTIVE),
        change("retirar", StatusDoChip.CANCELLED),
    ]


async def _chip(julia: Julia, instance: str) -> Row:
    for row in await julia.chips.pool.list_chips(julia.work.database):
        if row["instance_name"] == instance:
            return row
    raise UnknownChip(instance=instance or "-")


async def _read(julia: Julia, visit: Visit) -> Mapping[str, object]:
    rows = await julia.chips.pool.list_chips(julia.work.database)
    open_circuits = {each.name for each in await julia.work.circuits.look() if each.state is CircuitState.OPEN}
    chips = [_line(row, circuit_of(row["instance_name"]) in open_circuits, visit) for row in rows]
    return {"chips": chips, "able": sum(not each["reasons"] for each in chips if each["sends"])}


def _line(row: Row, is_open: bool, visit: Visit) -> dict[str, object]:
    texts = visit.texts
    reasons = [texts(f"tela.chips.porque.{each}", **facts) for each, facts in obstacles(row, is_open, visit.now, texts)]
    is_stopped = row["status"] in STOPPED
    sends = row["tipo"] == SENDS
    return {
        "instance": row["instance_name"],
        "digits": last_digits(row["telefone"]) if visit.may(Scope.PII) else None,
        "kind": word(texts, "estado.tipo_de_chip", row["tipo"]),
        "sends": sends,
        "state": word(texts, "estado.chip", row["status"]),
        "tone": Tone.FAILING if row["status"] == BANNED else Tone.HELD if is_stopped else _tone(bool(reasons)),
        "reasons": reasons,
        "trust": row["trust_score"],
        "level": word(texts, "estado.nivel", row["trust_level"]),
        "phase": word(texts, "estado.fase", row["fase_warmup"]),
        "may": [texts(f"estado.pode.{each}") for each in MAY if row[f"pode_{each}"]] if sends else [],
        "sent": row["msgs_enviadas_hoje"],
        "received": row["msgs_recebidas_hoje"],
        "most": row["limite_dia"],
        "errors": row["erros_ultimas_24h"],
        "rests_until": row["cooldown_until"],
        "is_active": row["status"] == "active",
        "is_banned": row["status"] == BANNED,
    }


def obstacles(row: Row, is_open: bool, now: datetime, texts: Texts) -> list[tuple[str, dict[str, object]]]:
    """Return the reasons why a chip sends nothing, or less than it could. Each reason contains the values that its text
    shows.
    """
    if row["tipo"] != SENDS:
        return []
    rests = row["cooldown_until"]
    ban = texts.reason(decode(row["ban_reason"]) or "")
    cause = texts.get(f"tela.chips.causa_do_descanso.{row['descanso_por']}", "")
    found: tuple[tuple[str, bool, dict[str, object]], ...] = (
        ("banido" if ban else "banido_sem_motivo", is_banned := row["status"] == BANNED, {"motivo": ban}),
        ("situacao", row["status"] != "active" and not is_banned, {}),
        ("desconectado", not row["evolution_connected"] and not is_banned, {}),
        ("descanso_com_causa" if cause else "descanso", rests is not None and rests > now, {"causa": cause}),
        ("disjuntor", is_open, {}),
        ("confianca", row["trust_score"] < LOW_TRUST, {"pontos": row["trust_score"], "minimo": LOW_TRUST}),
        ("sem_permissao", not any(row[f"pode_{each}"] for each in MAY), {}),
        ("limite", row["msgs_enviadas_hoje"] >= row["limite_dia"] > 0, {"limite": row["limite_dia"]}),
    )
    return [(name, facts) for name, holds, facts in found if holds]


def _tone(has_obstacle: bool) -> Tone:
    return Tone.DEGRADED if has_obstacle else Tone.OK
