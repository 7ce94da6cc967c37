"""``/painel/revisao``: one vacancy at a time, with its source text next to the fields. An operator decides with the
keyboard.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any, Final
from urllib.parse import urlencode

from app.composition.julia import Julia
from app.contexts.grupos.recebidas import campo_em_palavras, motivo_em_palavras
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.nomes.correcoes import Correcao, CorrecaoRecusada
from app.contexts.vagas.revisao import BEFORE_ALL, VagaInexistente
from app.web.screens.marked_text import parts_of
from app.web.screens.pages import Choice, Position, is_id
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
from batuta.kernel import dataclass
from batuta.sql import Row

PATH: Final = "/revisao"
WAITING: Final = "aguardando_revisao"
STATUSES: Final = (WAITING, "importada", "rejeitada", "duplicada", "descartada")
# Number of other vacancies in the list next to the shown vacancy.
AHEAD: Final = 12
LEAST_VALUE, MOST_VALUE = 100, 50_000
THOUSANDS: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+")
HOUR: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
# Reasons for a rejection that an operator can give with one key.
REASONS: Final = ("nao_e_oferta", "ja_preenchida", "repetida", "dados_errados", "fora_da_area")
PERSONAL: Final = ("contato_nome", "contato_whatsapp")
FORM: Final = (
    "hospital", "especialidade", "data", "periodo", "hora_inicio", "hora_fim", "valor", *PERSONAL,
)  # fmt: skip
# Fields without which a vacancy cannot be approved.
NEEDED: Final = ("hospital", "especialidade", "data")

# The colour of each field in the text. Fields that are read together have the same colour.
COLOURS: Final = {
    "hospital": 1, "especialidade": 2, "data": 3, "periodo": 4, "hora_inicio": 4, "hora_fim": 4, "valor": 5, "contato_nome": 6,
    "contato_whatsapp": 6,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldOfVacancy:
    """A field of the vacancy. ``value`` is the field's content in the form, and ``shown`` is the same content in the
    reader's language.

    ``origin`` is the key of the text that says where the value comes from.

    ``confidence`` is a percentage, or None if it is unknown.
    """

    name: str
    label: str
    value: str
    shown: str
    origin: str
    raw: str | None = None  # the wording in the message, if the dictionary replaced it
    confidence: int | None = None
    is_needed: bool = False  # whether the vacancy cannot be approved while the field is empty

    @property
    def tone(self) -> Tone:
        if self.origin == "falta" or (self.confidence is not None and self.confidence < 70):
            return Tone.DEGRADED
        return Tone.WAITING if self.origin == "presumido" else Tone.OK


def screen(julia: Callable[[], Julia]) -> Screen:
    async def read(visit: Visit) -> Mapping[str, object]:
        return await _read(julia(), visit)

    return Screen(path=PATH, title="tela.revisao.titulo", template="julia/revisao.html.j2", read=read, is_live=False)


class Acts:
    """Previews and performs decisions about a vacancy in review."""

    def __init__(self, julia: Callable[[], Julia]) -> None:
        self._julia = julia

    async def preview(self, call: ActionCall) -> Preview:
        row = await _row(self._julia(), call.values["vaga"])
        facts = _facts(row, call.texts)
        return Preview(says="tela.revisao.previa", facts=facts, values={name: _value(row, name) for name in FORM})

    async def preview_rejection(self, call: ActionCall) -> Preview:
        row = await _row(self._julia(), call.values["vaga"])
        return Preview(says="tela.revisao.previa_rejeicao", facts={"vaga": _name(row, call.texts)})

    async def approve(self, call: ActionCall) -> ActionResult:
        row = await _row(self._julia(), call.values["vaga"])
        done = await self._julia().groups.revisao.aprovar(str(row["id"]), correction(row, call.values), por=call.caller)
        says = "tela.revisao.aprendeu" if done.aprendido else "tela.revisao.decidida"
        facts = {"vaga": _name(row, call.texts), "status": call.texts(f"estado.vaga.{done.status}")}
        return ActionResult(says=says, facts={**facts, "nome": done.aprendido}, to=_next(row, call.values["fila"]))

    async def reject(self, call: ActionCall) -> ActionResult:
        row = await _row(self._julia(), call.values["vaga"])
        done = await self._julia().groups.revisao.rejeitar(str(row["id"]), call.values["motivo"], por=call.caller)
        facts = {"vaga": _name(row, call.texts), "status": call.texts(f"estado.vaga.{done.status}")}
        return ActionResult(says="tela.revisao.decidida", facts=facts, to=_next(row, call.values["fila"]))

    async def block(self, call: ActionCall) -> ActionResult:
        row = await _row(self._julia(), call.values["vaga"])
        done = await self._julia().groups.autores.bloquear(str(row["id"]), por=call.caller)
        return ActionResult(
            says="tela.revisao.bloqueado", facts={"count": done.rejeitadas}, to=_next(row, call.values["fila"])
        )

    async def preview_block(self, call: ActionCall) -> Preview:
        row = await _row(self._julia(), call.values["vaga"])
        return Preview(says="tela.revisao.previa_bloqueio", facts={"vaga": _name(row, call.texts)})


def actions(julia: Callable[[], Julia]) -> Sequence[Action]:
    acts = Acts(julia)
    vaga, queue = Field(name="vaga", kind=FieldKind.HIDDEN, required=True), Field(name="fila", kind=FieldKind.HIDDEN)
    return [
        Action(
            name="revisao.aprovar",
            label="tela.revisao.aprovar",
            fields=[vaga, queue, *_fields()],
            preview=acts.preview,
            perform=acts.approve,
            command=_approval,
            audits=True,
        ),
        Action(
            name="revisao.rejeitar",
            label="tela.revisao.rejeitar",
            fields=[vaga, queue, Field(name="motivo", label="tela.motivo", required=True, longest=300)],
            preview=acts.preview_rejection,
            perform=acts.reject,
            command=lambda values: ["grupos", "rejeitar", values["vaga"], "--motivo", values["motivo"] or "…"],
            tone=Tone.FAILING,
            audits=True,
        ),
        Action(
            name="revisao.bloquear_autor",
            label="tela.revisao.bloquear",
            fields=[vaga, queue],
            preview=acts.preview_block,
            perform=acts.block,
            command=lambda values: ["grupos", "bloquear", values["vaga"]],
            tone=Tone.FAILING,
            audits=True,
        ),
    ]


def correction(row: Row | Mapping[str, Any], values: Mapping[str, str]) -> Correcao:
    """Return the fields of a vacancy that the operator changed in the form. An empty field keeps the value that was
    read.
    """
    changed = {name: values[name] for name in FORM if values.get(name) and values[name] != _value(row, name)}
    place = {name: values[name] for name in ("cidade", "uf") if values.get(name)}
    hospital = changed.get("hospital") or (_value(row, "hospital") if place else None)
    return Correcao(
        hospital=hospital,
        cidade=place.get("cidade"),
        uf=place["uf"].upper() if "uf" in place else None,
        especialidade=changed.get("especialidade"),
        data=_day(changed["data"]) if "data" in changed else None,
        periodo=_period(changed["periodo"]) if "periodo" in changed else None,
        hora_inicio=_hour("hora_inicio", changed["hora_inicio"]) if "hora_inicio" in changed else None,
        hora_fim=_hour("hora_fim", changed["hora_fim"]) if "hora_fim" in changed else None,
        valor=_amount(changed["valor"]) if "valor" in changed else None,
        contato_nome=changed.get("contato_nome"),
        contato_whatsapp=changed.get("contato_whatsapp"),
    )


async def _row(julia: Julia, id: str) -> Row:
    if not is_id(id):
        raise VagaInexistente(id=id or "-")
    return (await julia.groups.revisao.ver(id))[0]


async def _read(julia: Julia, visit: Visit) -> Mapping[str, object]:
    asked = {name: visit.query.get(name, "") for name in ("motivo", "situacao", "depois", "vaga")}
    status = asked["situacao"] if asked["situacao"] in STATUSES else WAITING
    after = Position.read(asked["depois"])
    revisao, texts = julia.groups.revisao, visit.texts
    rows = await revisao.pendentes(
        limite=AHEAD + 1,
        status=status,
        motivo=asked["motivo"] or None,
        depois=BEFORE_ALL if after is None else (after.at, after.id),
    )
    shown: Row | None = rows[0] if rows else None
    sources: Sequence[Row] = ()
    if is_id(asked["vaga"]):
        shown = None  # an unknown id shows no vacancy, so that no key press decides about another vacancy
        with suppress(VagaInexistente):
            shown, sources = await revisao.ver(asked["vaga"])
    elif shown is not None:
        shown, sources = await revisao.ver(str(shown["id"]))
    is_open = shown is not None and visit.may(Scope.PII)
    if is_open:
        await visit.note(1)
    motivos = await revisao.motivos()
    kept = {name: asked[name] for name in ("motivo", "situacao") if asked[name]}
    filters = [
        Choice(texts("tela.revisao.todas"), {}, not kept, sum(motivos.values())),
        *(
            Choice(
                texts.get(f"tela.revisao.motivo.{code}", motivo_em_palavras(texts, code)),
                {"motivo": code},
                asked["motivo"] == code,
                count,
            )
            for code, count in motivos.items()
            if code
        ),
        *(
            Choice(texts(f"estado.vaga.{each}"), {"situacao": each}, asked["situacao"] == each)
            for each in STATUSES
            if each != WAITING
        ),
    ]
    return {
        "asked": asked,
        "situation": status,
        "kept": kept,
        "waiting": await revisao.quantas(),
        "filters": filters,
        "is_first": after is None,
        "vaga": None if shown is None else _vacancy(shown, sources, texts, is_open=is_open),
        "ahead": [_line(row, texts) for row in rows if shown is None or row["id"] != shown["id"]],
        "colours": COLOURS,
        "quick": [f"tela.revisao.porque.{each}" for each in REASONS],
        "periods": [each.value for each in Periodo],
    }


def _vacancy(row: Row, sources: Sequence[Row], texts: Texts, *, is_open: bool) -> dict[str, object]:
    spans: Mapping[str, Any] = row["trechos"] or {}
    names = [name for name in FORM if is_open or name not in PERSONAL]
    return {
        "id": str(row["id"]),
        "name": _name(row, texts),
        "status": row["status"],
        "is_waiting": row["status"] == WAITING,
        "why": motivo_em_palavras(texts, _reason_of(row)),
        "score": _percent(row["score_importacao"]),
        "reading": _percent(row["confianca_geral"]),
        "group": row["grupo_nome"] or texts("tela.revisao.grupo_sem_nome"),
        "at": row["timestamp_msg"],
        "position": str(Position(row["created_at"], str(row["id"]))),
        "fields": [_field(row, name, spans, texts) for name in names],
        "parts": parts_of(row["texto"], spans) if is_open else None,
        "marked": [name for name in FORM if name in spans],
        "has_unexplained": bool(spans.get("inexplicado")),
        "sources": [(each["grupo_nome"], each["texto_original"], each["created_at"]) for each in sources[1:]]
        if is_open
        else [],
        "more_sources": max(len(sources) - 1, 0),
        "before": None if row["anterior_id"] is None else _before(row, texts),
        "vacancy_id": row["vaga_importada_id"],
        "reviewed_by": row["revisada_por"],
        "has_author": row["contato_responsavel_id"] is not None,
    }


def _field(row: Row, name: str, spans: Mapping[str, Any], texts: Texts) -> FieldOfVacancy:
    value, raw = _value(row, name), None
    if not value:
        origin = "falta" if name in (*NEEDED, "periodo") else "vazio"
    elif name in ("hospital", "especialidade") and row[f"{name}_nome"] and row[f"{name}_nome"] != row[f"{name}_raw"]:
        origin, raw = "dicionario", row[f"{name}_raw"]
    else:
        origin = "texto" if name in spans else "presumido"
    confidence = {
        "hospital": row["hospital_match_score"]
        if row["hospital_match_score"] is not None
        else row["confianca_hospital"],
        "especialidade": row["confianca_especialidade"],
        "data": row["confianca_data"],
        "valor": row["confianca_valor"],
    }.get(name)
    return FieldOfVacancy(
        name=name,
        label=campo_em_palavras(texts, name),
        value=value,
        shown=_show(row, name, texts),
        origin=origin,
        raw=raw,
        confidence=_percent(confidence),
        is_needed=name in NEEDED,
    )


def _value(row: Row | Mapping[str, Any], name: str) -> str:
    """Format the value of a vacancy's field for an input of the form."""
    match name:
        case "hospital" | "especialidade":
            return str(row[f"{name}_nome"] or row[f"{name}_raw"] or "")
        case "periodo":
            return str(row["periodo_raw"] or "").lower()
        case "data":
            return "" if row["data"] is None else str(row["data"].isoformat())
        case "valor":
            return "" if row["valor"] is None else f"{row['valor']:g}"
        case _:
            return str(row[name] or "")


def _show(row: Row, name: str, texts: Texts) -> str:
    value = _value(row, name)
    match name:
        case "periodo":
            return texts.get(f"estado.periodo.{value}", value)
        case "data":
            return value and texts.day(row["data"])
        case "valor":
            return value and texts.money(float(row["valor"]))
        case _:
            return value


def _line(row: Row, texts: Texts) -> dict[str, object]:
    return {
        "id": str(row["id"]),
        "name": _name(row, texts),
        "why": motivo_em_palavras(texts, _reason_of(row)),
        "score": _percent(row["score_importacao"]),
    }


def _name(row: Row | Mapping[str, Any], texts: Texts) -> str:
    day = None if row["data"] is None else texts.day(row["data"])
    period = _value(row, "periodo")
    parts = (_value(row, "hospital"), _value(row, "especialidade"), day, texts.get(f"estado.periodo.{period}", period))
    return " · ".join(str(each) for each in parts if each) or str(row["id"])[-8:]


def _facts(row: Row, texts: Texts) -> dict[str, object]:
    return {"vaga": _name(row, texts), "motivo": motivo_em_palavras(texts, _reason_of(row)) or "–"}


def _before(row: Row, texts: Texts) -> dict[str, object]:
    value = row["anterior_valor"]
    return {
        "id": str(row["anterior_id"]),
        "status": row["anterior_status"],
        "value": None if value is None else texts.money(float(value)),
        "hours": "–".join(each for each in (row["anterior_hora_inicio"], row["anterior_hora_fim"]) if each),
    }


def _reason_of(row: Row) -> str | None:
    """Return the reason code for the vacancy's status. Return None for a rejection, because a person wrote the reason
    and its text may contain personal data.
    """
    return None if row["status"] == "rejeitada" else row["motivo_status"]


def _next(row: Row, queue: str) -> str:
    kept = {"motivo": queue} if re.fullmatch(r"[a-z_]{1,40}", queue) else {}
    return f"{PATH}?{urlencode({**kept, 'depois': str(Position(row['created_at'], str(row['id'])))})}"


def _fields() -> Sequence[Field]:
    periods = {"": "tela.vazio", **{each.value: f"estado.periodo.{each.value}" for each in Periodo}}
    kinds = {"periodo": FieldKind.CHOICE, "data": FieldKind.DATE}
    names = ("hospital", "cidade", "uf", *FORM[1:])
    return [
        Field(
            name=name,
            label=f"grupos.campo.{name}",
            kind=kinds.get(name, FieldKind.TEXT),
            choices=periods if name == "periodo" else {},
            is_private=name in PERSONAL,
            longest=200,
        )
        for name in names
    ]


def _approval(values: Mapping[str, str]) -> Sequence[str]:
    """Return the command that approves the vacancy. The command contains every field, because this function does not
    know which fields the operator changed.
    """
    options = ("hospital", "cidade", "uf", "especialidade", "data", "periodo", "hora_inicio", "hora_fim", "valor")
    given = [(f"--{name.replace('_', '-')}", values[name]) for name in options if values.get(name)]
    return ["grupos", "aprovar", values["vaga"], *(word for pair in given for word in pair)]


def _percent(share: float | None) -> int | None:
    return None if share is None else round(100 * share)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise CorrecaoRecusada(campo="data", espera=date(2026, 3, 11)) from None


def _period(text: str) -> Periodo:
    try:
        return Periodo(text)
    except ValueError:
        raise CorrecaoRecusada(campo="periodo", espera=", ".join(Periodo)) from None


def _hour(name: str, text: str) -> str:
    if HOUR.fullmatch(text) is None:
        raise CorrecaoRecusada(campo=name, espera="19:00")
    return text


def _amount(text: str) -> float:
    """Parse an amount as people write it: "1800", "1.800", "1.750,50" or "1750.5"."""
    has_thousands = "," in text or THOUSANDS.fullmatch(text) is not None
    try:
        value = float(text.replace(".", "").replace(",", ".") if has_thousands else text)
    except ValueError:
        value = 0
    if not LEAST_VALUE <= value <= MOST_VALUE:
        raise CorrecaoRecusada(campo="valor", espera=f"{LEAST_VALUE}–{MOST_VALUE}")
    return value
