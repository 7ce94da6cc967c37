"""``/painel/conversas/duvidas``: messages that may or may not have been sent, and people who probably opted out. An
operator decides about each of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from app.composition.julia import Julia
from app.contexts.conversas.duvidas import Decisao, Duvida, DuvidaDesconhecida
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
        people = await julia().messages.duvidas.listar(limite=PAGE)
        is_open = await visit.reveal(len(people))
        return {
            "lines": [_line(row, visit.texts) for row in rows[:PAGE]],
            "has_more": len(rows) > PAGE,
            "most": PAGE,
            "people": [_person(each, visit.texts, is_open=is_open) for each in people],
        }

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

    optouts = (_optout(julia, Decisao.PARAR, Scope.OPERATE), _optout(julia, Decisao.SEGUIR, Scope.SEND))
    return [decision(SENT, Scope.OPERATE), decision(NOT_SENT, Scope.SEND), *optouts]


def _optout(julia: Callable[[], Julia], answer: Decisao, scope: Scope) -> Action:
    def id_of(call: ActionCall) -> str:
        id = call.values["duvida"]
        if not is_id(id):
            raise DuvidaDesconhecida(id=id or "-")
        return id

    async def preview(call: ActionCall) -> Preview:
        await julia().messages.duvidas.exigir_aberta(id_of(call))
        return Preview(says=f"tela.duvidas.previa_{answer}")

    async def perform(call: ActionCall) -> ActionResult:
        cancelled = await julia().messages.duvidas.decidir(
            id_of(call), answer, por=call.caller, motivo=call.values["motivo"]
        )
        return ActionResult(says=f"tela.duvidas.feita_{answer}", facts={"count": cancelled}, to=PATH)

    return Action(
        name=f"optout.{answer}",
        label=f"tela.duvidas.{answer}",
        fields=[
            Field(name="duvida", kind=FieldKind.HIDDEN, required=True),
            Field(name="motivo", label="tela.motivo", required=True, longest=200),
        ],
        preview=preview,
        perform=perform,
        scope=scope,
        command=lambda values: [
            "conversas", "decidir", values["duvida"], f"--{answer}", "--motivo", values["motivo"]
        ],
        tone=Tone.FAILING,
        audits=True,
    )  # fmt: skip


def _person(doubt: Duvida, texts: Texts, *, is_open: bool) -> dict[str, object]:
    who = doubt.cliente_id
    return {
        "id": doubt.id,
        "name": texts("tela.conversas.desconhecido") if who is None else texts("tela.conversas.medico", id=who[-6:]),
        "text": doubt.texto if is_open else None,
        "since": doubt.desde,
    }


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
