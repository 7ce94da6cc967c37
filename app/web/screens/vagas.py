"""``/painel/vagas``: vacancies from their creation to the confirmation of the shift, with the history of each."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any, Final

from app.composition.julia import Julia
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.plantoes.anuncios import Anuncio
from app.contexts.plantoes.model import (
    MAIOR_VALOR,
    MENOR_VALOR,
    MOST_OFFERS,
    CampoDaVagaRecusado,
    MedicoDesconhecido,
    MotivoDaCancelada,
    NovaVaga,
    Resposta,
    VagaDesconhecida,
    exigir,
    motivos_possiveis,
)
from app.contexts.plantoes.service import BEFORE_ALL, Filtro, Plantoes
from app.contexts.vagas.api import PROCURA, StatusDaVaga
from app.contexts.vagas.revisao import PERIODOS
from app.web.screens.missing import refuse_missing
from app.web.screens.pages import Choice, is_id, word
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
from batuta.sql import Row

PATH: Final = "/vagas"
PAGE: Final = 40
LONGEST_NAME: Final = 80
BEST: Final = 8
SHOWN_ID: Final = 6
# Text keys of reasons that have a code. Any other reason is free text.
REASONS: Final = "estado.motivo_da_vaga"
POSITION: Final = re.compile(r"(\d{4}-\d{2}-\d{2})_(\d{2}:\d{2}|)_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
TONES: Final[Mapping[StatusDaVaga, Tone]] = {
    StatusDaVaga.ABERTA: Tone.RUNNING,
    StatusDaVaga.ANUNCIADA: Tone.RUNNING,
    StatusDaVaga.AGUARDANDO_CONFIRMACAO: Tone.WAITING,
    StatusDaVaga.RESERVADA: Tone.OK,
    StatusDaVaga.PENDENTE_CONFIRMACAO: Tone.HELD,
    StatusDaVaga.REALIZADA: Tone.OK,
}
MAY: Final[Mapping[str, frozenset[StatusDaVaga]]] = {
    "vaga.anunciar": frozenset(PROCURA),
    "vaga.reservar": frozenset(PROCURA),
    "vaga.liberar": frozenset({StatusDaVaga.RESERVADA, StatusDaVaga.AGUARDANDO_CONFIRMACAO}),
    "vaga.realizada": frozenset({StatusDaVaga.RESERVADA, StatusDaVaga.PENDENTE_CONFIRMACAO}),
    "vaga.cancelar": frozenset({*PROCURA, StatusDaVaga.RESERVADA, StatusDaVaga.PENDENTE_CONFIRMACAO}),
}
ID: Final = Field(name="vaga", kind=FieldKind.HIDDEN, required=True, longest=40)
DOCTOR: Final = Field(
    name="medico", label="tela.vagas.medico", hint="tela.vagas.medico_dica", required=True, longest=40
)


def screens(julia: Callable[[], Julia]) -> Sequence[Screen]:
    async def read_list(visit: Visit) -> Mapping[str, object]:
        return await _list(julia(), visit)

    async def read_one(visit: Visit) -> Mapping[str, object]:
        return await _one(julia(), visit)

    title = "tela.vagas.titulo"
    return [
        Screen(path=PATH, title=title, template="julia/vagas.html.j2", read=read_list),
        Screen(path=f"{PATH}/{{id}}", title=title, template="julia/vaga.html.j2", read=read_one, in_navigation=False),
    ]


class Acts:
    """Previews and performs changes to vacancies."""

    def __init__(self, julia: Callable[[], Julia]) -> None:
        self._julia = julia

    def service(self) -> Plantoes:
        return self._julia().shifts.plantoes

    async def preview(self, call: ActionCall, verb: str) -> Preview:
        vista = await self.service().ver(_id(call))
        status = call.texts(f"estado.vaga.{vista.vaga['status']}")
        facts = {"vaga": _name(vista.vaga, call.texts), "status": status}
        possible = {"motivo": motivos_possiveis(StatusDaVaga(vista.vaga["status"]))} if verb == "cancelar" else {}
        return Preview(says=f"tela.vagas.previa_{verb}", facts=facts, values={"melhores": "5"}, choices=possible)

    def change(
        self,
        verb: str,
        fields: Sequence[Field],
        act: Callable[[ActionCall], Awaitable[Resposta]],
        tone: Tone,
        option: str = "",
    ) -> Action:
        async def perform(call: ActionCall) -> ActionResult:
            done = exigir(await act(call))
            facts = {"status": call.texts(f"estado.vaga.{done.status}")}
            return ActionResult(says="tela.vagas.mudada", facts=facts, to=f"{PATH}/{call.values['vaga']}")

        def command(values: Mapping[str, str]) -> Sequence[str]:
            given = [f"--{option}", values[option] or "…"] if option else []
            return ["vagas", verb, values["vaga"], *given]

        return Action(
            name=f"vaga.{verb}",
            label=f"tela.vagas.{verb}",
            fields=[ID, *fields],
            preview=lambda call: self.preview(call, verb),
            perform=perform,
            command=command,
            tone=tone,
        )

    async def announce(self, call: ActionCall) -> ActionResult:
        count = int(call.values["melhores"])
        if not 1 <= count <= MOST_OFFERS:
            raise CampoDaVagaRecusado(campo="melhores", espera=f"1 … {MOST_OFFERS}")
        done = await self._julia().shifts.anuncios.anunciar_aos_melhores(_id(call), count, por=call.caller)
        if not isinstance(done, Anuncio):
            exigir(done)
            return ActionResult(says="tela.vagas.sem_candidato", tone=Tone.DEGRADED)
        says = "tela.vagas.anunciada" if done.oferecidas else "tela.vagas.sem_candidato"
        tone = Tone.OK if done.oferecidas else Tone.DEGRADED
        to = f"{PATH}/{call.values['vaga']}"
        return ActionResult(says=says, facts={"count": len(done.oferecidas)}, tone=tone, to=to)

    async def preview_creation(self, call: ActionCall) -> Preview:
        return Preview(says="tela.vagas.previa_criar")

    async def create(self, call: ActionCall) -> ActionResult:
        id = await self.service().criar(_new(call.values), por=call.caller)
        return ActionResult(says="tela.vagas.criada", to=f"{PATH}/{id}")


def actions(julia: Callable[[], Julia]) -> Sequence[Action]:
    acts = Acts(julia)
    reason = Field(name="motivo", label="tela.motivo", required=True, longest=200, is_private=True)
    reasons = {each.value: f"estado.motivo_da_vaga.{each.value}" for each in MotivoDaCancelada}
    kind = Field(name="motivo", label="tela.motivo", kind=FieldKind.CHOICE, required=True, choices=reasons)
    return [
        Action(
            name="vaga.criar",
            label="tela.vagas.criar",
            fields=_fields(),
            preview=acts.preview_creation,
            perform=acts.create,
            command=_creation,
        ),
        Action(
            name="vaga.anunciar",
            label="tela.vagas.anunciar",
            fields=[ID, Field(name="melhores", label="tela.vagas.melhores", kind=FieldKind.NUMBER, required=True, longest=3)],
            preview=lambda call: acts.preview(call, "anunciar"),
            perform=acts.announce,
            scope=Scope.SEND,
            command=lambda values: ["vagas", "anunciar", values["vaga"], "--melhores", values["melhores"] or "5"],
        ),
        acts.change("reservar", [DOCTOR], lambda call: acts.service().reservar(_id(call), _doctor(call), por=call.caller),
               Tone.RUNNING, "medico"),
        acts.change("liberar", [reason],
               lambda call: acts.service().liberar(_id(call), por=call.caller, motivo=call.values["motivo"]),
               Tone.RUNNING, "motivo"),
        acts.change("realizada", [], lambda call: acts.service().realizar(_id(call), por=call.caller), Tone.RUNNING),
        acts.change("cancelar", [kind],
               lambda call: acts.service().cancelar(_id(call), MotivoDaCancelada(call.values["motivo"]), por=call.caller),
               Tone.FAILING, "motivo"),
    ]  # fmt: skip


async def _list(julia: Julia, visit: Visit) -> Mapping[str, object]:
    plantoes, query = julia.shifts.plantoes, visit.query
    status = StatusDaVaga(query["situacao"]) if query.get("situacao") in set(StatusDaVaga) else None
    origin = query.get("origem") if query.get("origem") in ("manual", "grupo_whatsapp") else None
    hospital = query.get("hospital", "").strip()[:LONGEST_NAME]
    today = visit.now.astimezone(julia.work.zone).date()
    start = _day(query.get("de", "")) or today
    after = POSITION.fullmatch(query.get("depois", ""))
    day = None if after is None else _day(after[1])
    rows = await plantoes.listar(
        Filtro(status=status, origem=origin, hospital=hospital, de=start),
        limite=PAGE + 1,
        depois=BEFORE_ALL if after is None or day is None else (day, after[2], after[3]),
    )
    shown, counts = rows[:PAGE], await plantoes.contagem()
    kept = {
        "situacao": status,
        "origem": origin,
        "hospital": hospital,
        "de": query.get("de") if _day(query.get("de", "")) else None,
    }
    others = {name: str(value) for name, value in kept.items() if value and name != "situacao"}
    return {
        "kept": {name: str(value) for name, value in kept.items() if value},
        "origin": origin,
        "hospital": hospital,
        "start": start.isoformat(),
        "filters": [
            Choice(visit.texts("tela.todas"), others, status is None),
            *(
                Choice(
                    visit.texts(f"tela.vagas.filtro.{each}"),
                    {**others, "situacao": each.value},
                    each is status,
                    counts.get(each, 0),
                )
                for each in TONES
            ),
            Choice(
                visit.texts("tela.vagas.filtro.cancelada"), {**others, "situacao": "cancelada"}, status == "cancelada"
            ),
        ],
        "lines": [_line(row, visit.texts) for row in shown],
        "older": _position(shown[-1]) if len(rows) > PAGE else None,
        "is_first": after is None,
    }  # fmt: skip


async def _one(julia: Julia, visit: Visit) -> Mapping[str, object]:
    id, texts = visit.path["id"], visit.texts
    if not is_id(id):
        refuse_missing()
    try:
        vista = await julia.shifts.plantoes.ver(id)
    except VagaDesconhecida:
        refuse_missing()
    status = StatusDaVaga(vista.vaga["status"])
    # A reason that is free text is personal data; a code is not.
    codes = texts.group(REASONS)
    has_texts = any(row["motivo"] not in codes for row in vista.historico)
    is_open = visit.may(Scope.PII)
    if is_open and has_texts:
        await visit.note(1)
    candidates = await julia.shifts.candidatos.candidatos(id, BEST) if status in PROCURA else []
    return {
        "title": _name(vista.vaga, texts),
        "vaga": vista.vaga,
        **_line(vista.vaga, texts),
        "may": [name for name, states in MAY.items() if status in states],
        "history": [_change_line(row, texts, is_open=is_open) for row in vista.historico],
        "offers": [(_short(row["cliente_id"]), row["mensagem"], row["created_at"]) for row in vista.ofertas],
        "interests": [(row["cliente_id"], _short(row["cliente_id"]), row["created_at"]) for row in vista.interesses],
        "candidates": [(each.cliente_id, _short(each.cliente_id), round(each.pontos)) for each in candidates],
    }


def _line(row: Row, texts: Texts) -> dict[str, object]:
    status = StatusDaVaga(row["status"])
    hours = "–".join(each for each in (row["hora_inicio"], row["hora_fim"]) if each)
    return {
        "id": str(row["id"]),
        "state": texts(f"estado.vaga.{status}"),
        "tone": TONES.get(status, Tone.WAITING),
        "day": texts.day(row["data"]),
        "hours": hours or texts.get(f"estado.periodo.{PERIODOS.get(row['periodo_id'])}", row["periodo"] or "–"),
        "hospital": row["hospital"],
        "place": "/".join(each for each in (row["cidade"], row["uf"]) if each),
        "area": row["especialidade"],
        "value": texts("tela.vagas.a_combinar") if row["valor"] is None else texts.money(float(row["valor"])),
        "origin": texts(f"tela.vagas.origem_{'grupo' if row['origem'] == 'grupo_whatsapp' else 'manual'}"),
        "doctor": None if row["cliente_id"] is None else _short(row["cliente_id"]),
    }


def _change_line(row: Row, texts: Texts, *, is_open: bool) -> dict[str, Any]:
    reason = row["motivo"] or ""
    code, _, _ = reason.partition(":")  # an acceptance is followed by the id of its message
    said = texts.group(REASONS).get(code) or (reason if is_open else "***")
    return {"at": row["em"], "to": word(texts, "estado.vaga", row["para"]), "by": row["por"], "why": said}


def _name(row: Row, texts: Texts) -> str:
    return f"{row['hospital']} · {row['especialidade']} · {texts.day(row['data'])}"


def _short(id: object) -> str:
    return str(id)[-SHOWN_ID:]


def _position(row: Row) -> str:
    return f"{row['data'].isoformat()}_{row['hora_inicio'] or ''}_{row['id']}"


def _day(text: str) -> date | None:
    for form in ("%Y-%m-%d", "%d/%m/%Y"):
        with suppress(ValueError):
            return datetime.strptime(text, form).date()  # noqa: DTZ007 -- a day has no zone
    return None


def _id(call: ActionCall) -> str:
    id = call.values["vaga"]
    if not is_id(id):
        raise VagaDesconhecida(id=id or "-")
    return id


def _doctor(call: ActionCall) -> str:
    id = call.values["medico"].lower()
    if not is_id(id):
        raise MedicoDesconhecido(id=id)
    return id


def _new(values: Mapping[str, str]) -> NovaVaga:
    day = _day(values["data"])
    if day is None:
        raise CampoDaVagaRecusado(campo="data", espera=date(2026, 3, 11))
    for name in ("hora_inicio", "hora_fim"):
        if values[name] and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", values[name]):
            raise CampoDaVagaRecusado(campo=name, espera="19:00")
    value = values["valor"]
    if value and not (value.isdigit() and MENOR_VALOR <= int(value[:9]) <= MAIOR_VALOR):
        raise CampoDaVagaRecusado(campo="valor", espera=f"{MENOR_VALOR} … {MAIOR_VALOR}")
    return NovaVaga(
        hospital=values["hospital"],
        cidade=values["cidade"] or None,
        uf=values["uf"].upper() or None,
        especialidade=values["especialidade"],
        data=day,
        periodo=Periodo(values["periodo"]) if values["periodo"] else None,
        hora_inicio=values["hora_inicio"] or None,
        hora_fim=values["hora_fim"] or None,
        valor=int(value) if value else None,
        novo_hospital=values["novo_hospital"] == "sim",
    )


def _fields() -> Sequence[Field]:
    periods = {"": "tela.vazio", **{each.value: f"estado.periodo.{each.value}" for each in Periodo}}
    answers = {"nao": "tela.nao", "sim": "tela.sim"}
    hints = {"data": "tela.vagas.data_dica", "hora_inicio": "tela.vagas.hora_dica", "valor": "tela.vagas.valor_dica"}
    names = ("hospital", "cidade", "uf", "especialidade", "data", "periodo", "hora_inicio", "hora_fim", "valor")
    return [
        *(
            Field(
                name=name,
                label=f"grupos.campo.{name}",
                kind=FieldKind.CHOICE if name == "periodo" else FieldKind.TEXT,
                choices=periods if name == "periodo" else {},
                hint=hints.get(name, ""),
                required=name in ("hospital", "especialidade", "data"),
                longest=200,
            )
            for name in names
        ),
        Field(name="novo_hospital", label="tela.vagas.novo_hospital", kind=FieldKind.CHOICE, choices=answers),
    ]


def _creation(values: Mapping[str, str]) -> Sequence[str]:
    names = ("hospital", "cidade", "uf", "especialidade", "data", "periodo", "hora_inicio", "hora_fim", "valor")
    given = [word for name in names if values[name] for word in (f"--{name.replace('_', '-')}", values[name])]
    return ["vagas", "criar", *given, *(["--novo-hospital"] if values["novo_hospital"] == "sim" else [])]
