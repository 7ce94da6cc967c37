"""``/painel/campanhas``: the progress of campaigns, and the reasons why doctors received no message."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from app.composition.julia import Julia
from app.contexts.campanhas.model import FROM, Acao, CampanhaInexistente, StatusDaCampanha, ninguem_recebeu
from app.contexts.campanhas.relato import situacao_em_palavras, situacao_em_texto
from app.contexts.campanhas.service import Campanhas, Progresso
from app.contexts.mensagens.api import FILA_MENSAGENS
from app.web.screens.missing import refuse_missing
from app.web.screens.pages import Choice, word
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

PATH: Final = "/campanhas"
PAGE: Final = 30
PEOPLE: Final = 50
SITUATIONS: Final = ("selecionado", "enfileirado", "excluido")
LARGEST_ID: Final = 2**62
SHOWN_ID: Final = 6
TONES: Final[Mapping[str, Tone]] = {
    StatusDaCampanha.RASCUNHO: Tone.WAITING,
    StatusDaCampanha.AGENDADA: Tone.WAITING,
    StatusDaCampanha.ATIVA: Tone.RUNNING,
    StatusDaCampanha.PAUSADA: Tone.HELD,
    StatusDaCampanha.CONCLUIDA: Tone.OK,
    StatusDaCampanha.CANCELADA: Tone.WAITING,
}
GROUPS: Final = {"pendente": "na_fila", "bloqueada": "bloqueadas", "cancelada": "canceladas", "erro": "erros"}
# Where an operator can act on messages that wait or were not sent.
QUEUED: Final = {
    "pendente": f"/filas/{FILA_MENSAGENS.name}?estado=ready",
    "erro": f"/filas/{FILA_MENSAGENS.name}?estado=dead",
}
ID: Final = Field(name="campanha", kind=FieldKind.HIDDEN, required=True, longest=20)


def screens(julia: Callable[[], Julia]) -> Sequence[Screen]:
    async def read_list(visit: Visit) -> Mapping[str, object]:
        return await _list(julia().campaigns.campanhas, visit)

    async def read_one(visit: Visit) -> Mapping[str, object]:
        return await _one(julia().campaigns.campanhas, visit)

    title = "tela.campanhas.titulo"
    return [
        Screen(path=PATH, title=title, template="julia/campanhas.html.j2", read=read_list),
        Screen(
            path=f"{PATH}/{{id}}", title=title, template="julia/campanha.html.j2", read=read_one, in_navigation=False
        ),
    ]


class Acts:
    """Previews and performs changes to campaigns."""

    def __init__(self, julia: Callable[[], Julia]) -> None:
        self._julia = julia

    def service(self) -> Campanhas:
        return self._julia().campaigns.campanhas

    async def preview(self, call: ActionCall, verb: str) -> Preview:
        progress = await self.service().progresso(_id(call))
        facts = {"nome": progress.campanha["nome_template"], "count": progress.na_fila}
        return Preview(says=f"tela.campanhas.previa_{verb}", facts=facts, items=max(progress.na_fila, 1))

    async def schedule(self, call: ActionCall) -> ActionResult:
        done = await self.service().agendar(_id(call), None, by=call.caller)
        return ActionResult(says="tela.campanhas.agendada", facts={"count": done.destinatarios})

    async def explain(self, call: ActionCall) -> ActionResult:
        row = await self.service().situacao_de(_id(call), call.values["quem"])
        said = situacao_em_texto(call.texts, situacao_em_palavras(row))
        return ActionResult(says="tela.campanhas.explicada", facts={"porque": said}, tone=Tone.WAITING)

    def change(
        self, acao: Acao, act: Callable[[int, str], Awaitable[StatusDaCampanha]], scope: Scope, tone: Tone
    ) -> Action:
        async def perform(call: ActionCall) -> ActionResult:
            status = await act(_id(call), call.caller)
            facts = {"id": call.values["campanha"], "status": call.texts(f"estado.campanha.{status}")}
            return ActionResult(says="tela.campanhas.mudada", facts=facts)

        return Action(
            name=f"campanha.{acao.value}",
            label=f"tela.campanhas.{acao.value}",
            fields=[ID],
            preview=lambda call: self.preview(call, acao.value),
            perform=perform,
            scope=scope,
            command=lambda values: ["campanhas", acao.value, values["campanha"]],
            tone=tone,
            audits=True,
        )


def actions(julia: Callable[[], Julia]) -> Sequence[Action]:
    acts = Acts(julia)
    return [
        Action(
            name="campanha.agendar",
            label="tela.campanhas.agendar",
            fields=[ID],
            preview=lambda call: acts.preview(call, "agendar"),
            perform=acts.schedule,
            scope=Scope.SEND,
            command=lambda values: ["campanhas", "agendar", values["campanha"]],
            audits=True,
        ),
        acts.change(Acao.PAUSAR, lambda id, by: acts.service().pausar(id, by=by), Scope.OPERATE, Tone.RUNNING),
        acts.change(Acao.RETOMAR, lambda id, by: acts.service().retomar(id, by=by), Scope.SEND, Tone.RUNNING),
        acts.change(Acao.CANCELAR, lambda id, by: acts.service().cancelar(id, by=by), Scope.OPERATE, Tone.FAILING),
        Action(
            name="campanha.porque",
            label="tela.campanhas.porque",
            fields=[
                ID,
                Field(
                    name="quem",
                    label="tela.campanhas.quem",
                    hint="tela.campanhas.quem_dica",
                    required=True,
                    longest=60,
                    is_private=True,
                ),
            ],
            preview=lambda call: acts.preview(call, "porque"),
            perform=acts.explain,
            scope=Scope.READ,
            command=lambda values: ["campanhas", "porque", values["campanha"], values["quem"] or "…"],
        ),
    ]


async def _list(campanhas: Campanhas, visit: Visit) -> Mapping[str, object]:
    asked = visit.query.get("situacao", "")
    status = StatusDaCampanha(asked) if asked in set(StatusDaCampanha) else None
    after = _number(visit.query.get("depois", ""))
    rows = await campanhas.todas(status=status, before=after, limit=PAGE + 1)
    shown = rows[:PAGE]
    return {
        "kept": {} if status is None else {"situacao": status.value},
        "filters": [
            Choice(visit.texts("tela.todas"), {}, status is None),
            *(
                Choice(visit.texts(f"estado.campanha.{each}"), {"situacao": each.value}, each is status)
                for each in StatusDaCampanha
            ),
        ],
        "lines": [_line(row, visit.texts) for row in shown],
        "older": str(shown[-1]["id"]) if len(rows) > PAGE else None,
        "is_first": after is None,
    }


async def _one(campanhas: Campanhas, visit: Visit) -> Mapping[str, object]:
    id = _number(visit.path["id"])
    if id is None:
        refuse_missing()
    try:
        progress = await campanhas.progresso(id)
    except CampanhaInexistente:
        refuse_missing()
    texts, row = visit.texts, progress.campanha
    situation = visit.query.get("situacao") if visit.query.get("situacao") in SITUATIONS else None
    motivo = visit.query.get("motivo") or None
    after = _number(visit.query.get("depois", "")) or 0
    people = await campanhas.destinatarios(
        id, situacao=situation, motivo=motivo, after=min(after, 2**31 - 1), limit=PEOPLE + 1
    )
    kept = {"situacao": situation, "motivo": motivo}
    return {
        "title": row["nome_template"] or f"#{id}",
        "campaign": row,
        **_line(row, texts),
        "waits": None if progress.espera is None else texts.reason(progress.espera),
        "error": None if (error := decode(row["erro"])) is None else texts.reason(error),
        "figures": _figures(progress),
        "reasons": _reasons(progress, texts),
        "people": [_person(each, texts) for each in people[:PEOPLE]],
        "older": str(people[PEOPLE - 1]["posicao"]) if len(people) > PEOPLE else None,
        "is_first": not after,
        "kept": {name: value for name, value in kept.items() if value},
        "is_open": visit.may(Scope.PII),
    }


def _line(row: Row | Mapping[str, Any], texts: Texts) -> dict[str, object]:
    status = StatusDaCampanha(row["status"])
    is_empty = ninguem_recebeu(status, row["total_destinatarios"])
    return {
        "id": row["id"],
        "name": row["nome_template"] or f"#{row['id']}",
        "kind": word(texts, "estado.tipo_de_campanha", row["tipo_campanha"]),
        "state": texts("estado.campanha.ninguem" if is_empty else f"estado.campanha.{status}"),
        "tone": Tone.DEGRADED if row["erro"] or is_empty else TONES[status],
        "sent": row["enviados"],
        "of": row["total_destinatarios"],
        "delivered": row["entregues"],
        "answered": row["respondidos"],
        "at": row["iniciada_em"] or row["agendar_para"] or row["created_at"],
        "may": [f"campanha.{acao.value}" for acao in Acao if status in FROM[acao]],
    }


def _figures(progress: Progresso) -> list[tuple[str, int, Tone]]:
    row = progress.campanha
    return [
        ("destinatarios", row["total_destinatarios"], Tone.WAITING),
        ("na_fila", progress.na_fila, Tone.RUNNING if progress.na_fila else Tone.WAITING),
        ("enviados", row["enviados"], Tone.OK),
        ("entregues", row["entregues"], Tone.OK),
        ("respostas", row["respondidos"], Tone.OK),
        *(
            (name, count, Tone.FAILING if name == "falharam" else Tone.HELD)
            for name, count in (
                ("falharam", sum(progress.erros.values())),
                ("foram_bloqueadas", sum(progress.bloqueadas.values())),
                ("foram_canceladas", sum(progress.canceladas.values())),
            )
            if count
        ),
        ("em_duvida", progress.em_duvida, Tone.DEGRADED if progress.em_duvida else Tone.WAITING),
    ]


def _reasons(progress: Progresso, texts: Texts) -> list[dict[str, object]]:
    """Return the reasons why doctors received no message, most frequent reason first."""
    found: list[dict[str, object]] = [
        {
            "group": texts("tela.campanhas.excluidos"),
            "text": texts.get(f"estado.exclusao.{code}", code),
            "count": count,
            "to": f"{PATH}/{progress.campanha['id']}?{urlencode({'situacao': 'excluido', 'motivo': code})}",
        }
        for code, count in progress.excluidos.items()
    ]
    counts: Counter[tuple[str, str]] = Counter()
    for each in progress.causas:
        why = texts.get(f"estado.desfecho.{each.outcome}", each.outcome)
        counts[each.status, why if each.reason is None else texts.reason(each.reason)] += each.messages
    found += [
        {"group": texts(f"tela.campanhas.{GROUPS[status]}"), "text": why, "count": count, "to": QUEUED.get(status)}
        for (status, why), count in counts.items()
    ]
    return sorted(found, key=lambda each: -int(str(each["count"])))


def _person(row: Row, texts: Texts) -> dict[str, object]:
    said = situacao_em_palavras(row)
    return {"id": str(row["cliente_id"])[-SHOWN_ID:], "full": row["cliente_id"], "text": situacao_em_texto(texts, said)}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) <= LARGEST_ID else None


def _id(call: ActionCall) -> int:
    found = _number(call.values["campanha"])
    if found is None:
        raise CampanhaInexistente(id=call.values["campanha"] or "-")
    return found
