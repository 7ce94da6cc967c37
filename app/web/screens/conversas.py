"""``/painel/conversas``: the list of conversations, with those that are waiting for a person first; one conversation
with its messages; and the actions on it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from app.composition.julia import Julia
from app.contexts.conversas.atendimento import (
    AFTER_ALL,
    BEFORE_ALL,
    LONGEST_MOTIVO,
    OPEN,
    PERSON,
    Com,
    ConversaDesconhecida,
    EstagioDaConversa,
)
from app.contexts.conversas.escrita import LONGEST_TEXTO
from app.contexts.conversas.pendencias import PendenciaDesconhecida
from app.contexts.mensagens.service import NaDevolucao
from app.web.screens.missing import refuse_missing
from app.web.screens.pages import Choice, Position, is_id, word
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

PATH: Final = "/conversas"
PAGE: Final = 30
QUEUES: Final = ("esperam", "pessoa", "julia", "encerradas")
SHOWN_ID: Final = 6
# Maximum length of a reason. The column is longer, because it also stores the decision about held messages.
LONGEST_REASON: Final = LONGEST_MOTIVO - 50
ID: Final = Field(name="conversa", kind=FieldKind.HIDDEN, required=True)
REASON: Final = Field(name="motivo", label="tela.motivo", required=True, longest=LONGEST_REASON, is_private=True)


def screens(julia: Callable[[], Julia]) -> Sequence[Screen]:
    async def read_list(visit: Visit) -> Mapping[str, object]:
        return await _list(julia(), visit)

    async def read_one(visit: Visit) -> Mapping[str, object]:
        return await _one(julia(), visit)

    return [
        Screen(path=PATH, title="tela.conversas.titulo", template="julia/conversas.html.j2", read=read_list),
        Screen(
            path=f"{PATH}/{{id}}",
            title="tela.conversas.titulo",
            template="julia/conversa.html.j2",
            read=read_one,
            in_navigation=False,
            is_live=False,
        ),
    ]


class Acts:
    """Previews and performs changes to conversations."""

    def __init__(self, julia: Callable[[], Julia]) -> None:
        self._julia = julia

    async def preview(self, call: ActionCall, says: str) -> Preview:
        vista = await self._julia().messages.atendimento.ver(_id(call))
        facts = {
            "conversa": _short(vista.conversa["id"], call.texts),
            "com": _handler(vista.conversa, call.texts),
            "count": len(vista.na_fila),
        }
        return Preview(says=f"tela.conversas.previa_{says}", facts=facts)

    async def take(self, call: ActionCall) -> ActionResult:
        care = self._julia().messages.atendimento
        done = await care.assumir(_id(call), por=call.caller, motivo=call.values["motivo"])
        says = "repetida" if done.repetida else "assumida"
        return ActionResult(says=f"tela.conversas.{says}", facts={"count": done.mensagens}, to=_page(call))

    async def write(self, call: ActionCall) -> ActionResult:
        done = await self._julia().team.escrita.responder(_id(call), call.values["texto"], por=call.caller)
        says = "respondida_assumida" if done.assumida else "respondida"
        return ActionResult(says=f"tela.conversas.{says}", to=_page(call))

    async def give_back(self, call: ActionCall) -> ActionResult:
        decision = NaDevolucao(call.values["mensagens"])
        care = self._julia().messages.atendimento
        done = await care.devolver(_id(call), decision, por=call.caller, motivo=call.values["motivo"])
        return ActionResult(
            says=f"tela.conversas.devolvida_{decision.value}", facts={"count": done.mensagens}, to=_page(call)
        )

    async def finish(self, call: ActionCall) -> ActionResult:
        care = self._julia().messages.atendimento
        done = await care.encerrar(_id(call), por=call.caller, motivo=call.values["motivo"])
        return ActionResult(says="tela.conversas.encerrada", facts={"count": done.mensagens}, to=_page(call))

    async def preview_resolution(self, call: ActionCall) -> Preview:
        return Preview(says="tela.conversas.previa_resolver")

    async def resolve(self, call: ActionCall) -> ActionResult:
        id = call.values["pendencia"]
        if not is_id(id):
            raise PendenciaDesconhecida(id=id or "-")
        await self._julia().messages.pendencias.resolver(id, por=call.caller, motivo=call.values["motivo"])
        return ActionResult(says="tela.conversas.resolvida")


def actions(julia: Callable[[], Julia]) -> Sequence[Action]:
    acts = Acts(julia)
    return [*_beginnings(acts), *_endings(acts)]


def _beginnings(acts: Acts) -> Sequence[Action]:
    return [
        Action(
            name="conversa.assumir",
            label="tela.conversas.assumir",
            fields=[ID, REASON],
            preview=lambda call: acts.preview(call, "assumir"),
            perform=acts.take,
            command=lambda values: _command("assumir", values),
            audits=True,
        ),
        Action(
            name="conversa.responder",
            label="tela.conversas.responder",
            fields=[
                ID,
                Field(
                    name="texto",
                    label="tela.conversas.mensagem",
                    kind=FieldKind.LINES,
                    required=True,
                    longest=LONGEST_TEXTO,
                    is_private=True,
                ),
            ],
            preview=lambda call: acts.preview(call, "responder"),
            perform=acts.write,
            scope=Scope.SEND,
            command=lambda values: ["conversas", "responder", values["conversa"], values["texto"] or "…"],
            audits=True,
        ),
    ]


def _endings(acts: Acts) -> Sequence[Action]:
    return [
        Action(
            name="conversa.devolver",
            label="tela.conversas.devolver",
            fields=[
                ID,
                Field(
                    name="mensagens",
                    label="tela.conversas.retidas",
                    kind=FieldKind.CHOICE,
                    required=True,
                    choices={each.value: f"tela.conversas.retidas_{each.value}" for each in NaDevolucao},
                ),
                REASON,
            ],
            preview=lambda call: acts.preview(call, "devolver"),
            perform=acts.give_back,
            command=lambda values: [*_command("devolver", values), "--mensagens", values["mensagens"] or "continuar"],
            audits=True,
        ),
        Action(
            name="conversa.encerrar",
            label="tela.conversas.encerrar",
            fields=[ID, REASON],
            preview=lambda call: acts.preview(call, "encerrar"),
            perform=acts.finish,
            command=lambda values: _command("encerrar", values),
            tone=Tone.FAILING,
            audits=True,
        ),
        Action(
            name="pendencia.resolver",
            label="tela.conversas.resolver",
            fields=[Field(name="pendencia", kind=FieldKind.HIDDEN, required=True), REASON],
            preview=acts.preview_resolution,
            perform=acts.resolve,
            command=lambda values: [
                "conversas", "resolver", values["pendencia"], "--motivo", values["motivo"] or "…"
            ],
            audits=True,
        ),
    ]  # fmt: skip


async def _list(julia: Julia, visit: Visit) -> Mapping[str, object]:
    queue = visit.query.get("fila", "")
    queue = queue if queue in QUEUES else QUEUES[0]
    stage = EstagioDaConversa(visit.query["estagio"]) if visit.query.get("estagio") in set(EstagioDaConversa) else None
    after = Position.read(visit.query.get("depois", ""))
    rows = await _rows(julia, queue, stage, None if after is None else (after.at, after.id))
    shown, has_more = rows[:PAGE], len(rows) > PAGE
    is_open = await visit.reveal(len(shown))
    led = await julia.messages.atendimento.contagem()
    kept = {"fila": queue} if queue != QUEUES[0] else {}
    if stage is not None:
        kept["estagio"] = stage.value
    counts = {"esperam": await julia.messages.atendimento.quantos_esperam(), "pessoa": int(led["com_pessoa"])}
    return {
        "queue": queue,
        "kept": kept,
        "stage": stage,
        "stages": [each.value for each in EstagioDaConversa] if queue in ("pessoa", "julia") else [],
        "filters": [
            Choice(visit.texts(f"tela.conversas.fila_{each}"), {"fila": each}, each == queue, counts.get(each))
            for each in QUEUES
        ],
        "lines": [_line(row, queue, visit.texts, is_open=is_open) for row in shown],
        "older": str(_position(shown[-1], queue)) if has_more else None,
        "is_first": after is None,
    }


async def _rows(
    julia: Julia, queue: str, stage: EstagioDaConversa | None, after: tuple[datetime, str] | None
) -> Sequence[Row]:
    care, most = julia.messages.atendimento, PAGE + 1
    match queue:
        case "esperam":
            return await care.esperam(limite=most, depois=after or BEFORE_ALL)
        case "encerradas":
            return await care.encerradas(limite=most, antes=after or AFTER_ALL)
        case _:
            led_by = Com.PESSOA if queue == "pessoa" else Com.JULIA
            return await care.listar(com=led_by, estagio=stage, limite=most, antes=after or AFTER_ALL)


async def _one(julia: Julia, visit: Visit) -> Mapping[str, object]:
    id = visit.path["id"]
    if not is_id(id):
        refuse_missing()
    try:
        vista = await julia.messages.atendimento.ver(id)
    except ConversaDesconhecida:
        refuse_missing()
    is_open = visit.may(Scope.PII)
    if is_open:
        await visit.note(1)
    conversa = vista.conversa
    return {
        "title": _name(conversa, visit.texts, is_open=is_open),
        "talk": conversa,
        "is_going": conversa["status"] in OPEN,
        "has_person": conversa["controlled_by"] == PERSON,
        "is_mine": conversa["responsavel"] == visit.caller,
        "tone": _tone(conversa),
        "is_open": is_open,
        "said": list(reversed(vista.mensagens)),
        "queued": [{**row, "erro": None if row["erro"] is None else decode(row["erro"])} for row in vista.na_fila],
        "history": vista.historico,
    }


def _line(row: Row, queue: str, texts: Texts, *, is_open: bool) -> dict[str, object]:
    waits = queue == "esperam"
    return {
        "id": row["conversa_id"] if waits else row["id"],
        "pending": row["pendencia_id"] if waits else None,
        "name": _name(row, texts, is_open=is_open),
        "tone": Tone.HELD if waits else _tone(row),
        "state": word(texts, "tela.conversas.motivo", row["motivo"])
        if waits
        else word(texts, "estado.conversa_status", row["status"]),
        "with": _handler(row, texts),
        "stage": None if row["stage"] is None else word(texts, "estado.conversa_estagio", row["stage"]),
        "messages": row["mensagens"] if waits else row["message_count"],
        "at": row["desde"] if waits else row["encerrada_em"] if queue == "encerradas" else row["updated_at"],
    }


def _position(row: Row, queue: str) -> Position:
    match queue:
        case "esperam":
            return Position(row["desde"], str(row["chave"]))
        case "encerradas":
            return Position(row["encerrada_em"], str(row["id"]))
        case _:
            return Position(row["updated_at"], str(row["id"]))


def _tone(row: Row) -> Tone:
    if row["status"] not in OPEN:
        return Tone.WAITING
    if row["controlled_by"] != PERSON:
        return Tone.RUNNING
    return Tone.HELD if row["responsavel"] is None else Tone.OK


def _handler(row: Row, texts: Texts) -> str:
    """Return the name of the person who handles the conversation, or the text for Julia. If the conversation needs a
    person but no person has taken it over yet, return the text that says so.
    """
    if row["responsavel"]:
        return str(row["responsavel"])
    return texts("tela.conversas.ninguem") if row["controlled_by"] == PERSON else texts("estado.conversa_com.ai")


def _name(row: Row, texts: Texts, *, is_open: bool) -> str:
    if row["cliente_id"] is None:
        return texts("tela.conversas.desconhecido")
    if is_open and row["primeiro_nome"]:
        return str(row["primeiro_nome"])
    return texts("tela.conversas.medico", id=str(row["cliente_id"])[-SHOWN_ID:])


def _short(id: object, texts: Texts) -> str:
    return texts("tela.conversas.conversa", id=str(id)[-SHOWN_ID:])


def _id(call: ActionCall) -> str:
    id = call.values["conversa"]
    if not is_id(id):
        raise ConversaDesconhecida(id=id or "-")
    return id


def _page(call: ActionCall) -> str:
    return f"{PATH}/{call.values['conversa']}"


def _command(verb: str, values: Mapping[str, str]) -> list[str]:
    return ["conversas", verb, values["conversa"], "--motivo", values["motivo"] or "…"]
