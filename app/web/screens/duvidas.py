"""``/painel/conversas/duvidas``: messages that may or may not have been sent, and an operator's decision about each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from app.composition.julia import Julia
from app.contexts.envio.envios_em_duvida import NotInDoubt
from app.contexts.mensagens.api import EnvioEstado
from app.web.screens.pages import is_id, word
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
from batuta.reasons import decode
from batuta.sql import Row

PATH: Final = "/conversas/duvidas"
PAGE: Final = 100
SENT: Final = "enviada"
NOT_SENT: Final = "nao-enviada"
ID: Final = Field(name="mensagem", kind=FieldKind.HIDDEN, required=True)


def screens(julia: Callable[[], Julia]) -> Sequence[Screen]:
    async def read(visit: Visit) -> Mapping[str, object]:
        rows = await julia().sending.registro.doubts(julia().work.database, limit=PAGE + 1)
        return {"lines": [_line(row, visit.texts) for row in rows[:PAGE]], "has_more": len(rows) > PAGE, "most": PAGE}

    title = "tela.duvidas.titulo"
    return [Screen(path=PATH, title=title, template="julia/duvidas.html.j2", read=read, in_navigation=False)]


def actions(julia: Callable[[], Julia]) -> Sequence[Action]:
    def decision(answer: str, scope: Scope) -> Action:
        async def preview(call: ActionCall) -> Preview:
            id = _id(call)
            found = await julia().sending.registro.message(julia().work.database, id)
            if found is None or found[1] != EnvioEstado.PARKED:
                raise NotInDoubt(id=id)
            return Preview(says=f"tela.duvidas.previa_{answer}", facts={"id": id})

        async def perform(call: ActionCall) -> ActionResult:
            id = _id(call)
            await julia().sending.reconciliador.decide(id, sent=answer == SENT, by=call.caller)
            return ActionResult(says=f"tela.duvidas.feita_{answer}", facts={"id": id}, to=PATH)

        return Action(
            name=f"mensagem.{answer}",
            label=f"tela.duvidas.{answer}",
            fields=[ID],
            preview=preview,
            perform=perform,
            scope=scope,
            command=lambda values: ["decidir", values["mensagem"], answer],
            tone=Tone.FAILING,
            audits=True,
        )

    return [decision(SENT, Scope.OPERATE), decision(NOT_SENT, Scope.SEND)]


def _line(row: Row, texts: Texts) -> dict[str, object]:
    is_parked = row["envio_estado"] == EnvioEstado.PARKED
    return {
        "id": str(row["id"]),
        "queue": row["fila"],
        "is_parked": is_parked,
        "tone": Tone.DEGRADED if is_parked else Tone.RUNNING,
        "state": word(texts, "estado.envio", row["envio_estado"]),
        "kind": word(texts, "tela.conversas.tipo", row["tipo"]),
        "sender": row["instance_name"] or "–",
        "since": row["envio_desde"],
        "why": None if (why := decode(row["outcome_reason_code"])) is None else texts.reason(why),
    }


def _id(call: ActionCall) -> str:
    id = call.values["mensagem"]
    if not is_id(id):
        raise NotInDoubt(id=id or "-")
    return id
