"""``/painel/agendamentos``: spreadsheet imports, with their progress, the columns that were used, and the problems in
each row.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from app.composition.julia import Julia
from app.contexts.agendamentos.importacao import Importacao, resultado
from app.contexts.agendamentos.model import ColunasIncertas, StatusDaLeitura
from app.contexts.agendamentos.planilha.arquivo import MOST_BYTES
from app.contexts.agendamentos.relato import arquivo_coberto
from app.web.screens.missing import refuse_missing
from app.web.screens.pages import is_id, word
from batuta.errors import ActionRefused
from batuta.extension import (
    Action,
    ActionCall,
    ActionResult,
    Field,
    FieldKind,
    Preview,
    Screen,
    Texts,
    Tone,
    Visit,
)
from batuta.reasons import define
from batuta.sql import Row

PATH: Final = "/agendamentos"
RECENT: Final = 30
SHOWN_ID: Final = 8
FILE, COLUMNS = "arquivo", "colunas"
# Maximum total size of the form's remaining fields.
FORM_BYTES: Final = 64 * 1024
# Maximum number of appointments that one action parses again.
MOST_AGAIN: Final = 1000
COLUMNS_PROPOSED: Final = define(
    "colunas_propostas",
    "it is unclear which column has which field: check the proposed columns below and import it again; later files"
    " with these titles do not need this",
)
TONES: Final[Mapping[str, Tone]] = {
    "recebendo": Tone.RUNNING,
    "em_andamento": Tone.RUNNING,
    "concluida": Tone.OK,
    "falhou": Tone.FAILING,
}


def screens(julia: Callable[[], Julia]) -> Sequence[Screen]:
    async def read_list(visit: Visit) -> Mapping[str, object]:
        return await _list(julia(), visit)

    async def read_one(visit: Visit) -> Mapping[str, object]:
        return await _one(julia(), visit)

    title = "tela.agendamentos.titulo"
    return [
        Screen(path=PATH, title=title, template="julia/agendamentos.html.j2", read=read_list),
        Screen(
            path=f"{PATH}/{{id}}", title=title, template="julia/importacao.html.j2", read=read_one, in_navigation=False
        ),
    ]


class Acts:
    """Previews and performs two actions: import a spreadsheet, and retry the appointments whose parsing failed."""

    def __init__(self, julia: Callable[[], Julia]) -> None:
        self._julia = julia

    def service(self) -> Importacao:
        return self._julia().appointments.importacao

    async def preview(self, call: ActionCall) -> Preview:
        content = call.files.get(FILE)
        # After a refusal, the form contains the proposed columns for the same file.
        proposed = [] if not content or _lines(call) else await self.service().proposta(content, _name(call))
        return Preview(says="tela.agendamentos.previa", values={COLUMNS: "\n".join(proposed)})

    async def import_file(self, call: ActionCall) -> ActionResult:
        try:
            row = await self.service().importar(call.files[FILE], _name(call), by=call.caller, colunas=_lines(call))
        except ColunasIncertas:  # the form contains the proposal
            raise ActionRefused(why=COLUMNS_PROPOSED()) from None
        await self._julia().work.access.note(
            actor=call.caller, action="access.import", subject="agendamentos.importar", count=row["imported"]
        )
        tone = Tone.DEGRADED if row["invalid_rows"] else Tone.OK
        facts = {"count": row["imported"], "recusadas": row["invalid_rows"]}
        return ActionResult(says="tela.agendamentos.importada", facts=facts, tone=tone, to=f"{PATH}/{row['id']}")

    async def preview_again(self, call: ActionCall) -> Preview:
        count = await self._julia().appointments.agendamentos.quantas_repetir(limit=MOST_AGAIN)
        return Preview(says="tela.agendamentos.previa_reler", facts={"count": count}, items=count)

    async def read_again(self, call: ActionCall) -> ActionResult:
        found = await self._julia().appointments.agendamentos.reprocessar(None, limit=MOST_AGAIN, by=call.caller)
        return ActionResult(says="tela.agendamentos.relidos", facts={"count": len(found)})


def actions(julia: Callable[[], Julia]) -> Sequence[Action]:
    acts = Acts(julia)
    return [
        Action(
            name="agendamentos.importar",
            label="tela.agendamentos.importar",
            fields=[
                Field(
                    name=FILE,
                    label="tela.agendamentos.arquivo",
                    hint="tela.agendamentos.arquivo_dica",
                    kind=FieldKind.FILE,
                    required=True,
                ),
                Field(
                    name=COLUMNS,
                    label="tela.agendamentos.colunas",
                    hint="tela.agendamentos.colunas_dica",
                    kind=FieldKind.LINES,
                    longest=5_000,
                    is_private=True,
                ),
            ],
            preview=acts.preview,
            perform=acts.import_file,
            command=lambda values: ["agendamentos", "importar", "ARQUIVO"],
            audits=True,
            largest_body=MOST_BYTES + FORM_BYTES,
        ),
        Action(
            name="agendamentos.reler",
            label="tela.agendamentos.reler",
            preview=acts.preview_again,
            perform=acts.read_again,
            command=lambda values: ["agendamentos", "reprocessar"],
        ),
    ]


async def _list(julia: Julia, visit: Visit) -> Mapping[str, object]:
    rows = await julia.appointments.importacao.recentes(RECENT)
    counts = await julia.appointments.agendamentos.contagem()
    is_open = await visit.reveal(len(rows))
    tones = {StatusDaLeitura.COMPLETED: Tone.OK, StatusDaLeitura.FAILED: Tone.DEGRADED}
    return {
        "lines": [_line(row, visit.texts, is_open=is_open) for row in rows],
        "counts": [
            (str(status), count, tones.get(StatusDaLeitura(status), Tone.WAITING)) for status, count in counts.items()
        ],
        "has_failed": bool(counts[StatusDaLeitura.FAILED] or counts[StatusDaLeitura.SKIPPED]),
    }


async def _one(julia: Julia, visit: Visit) -> Mapping[str, object]:
    id = visit.path["id"]
    row = await julia.appointments.importacao.encontrada(id) if is_id(id) else None
    if row is None:
        refuse_missing()
    document, texts = resultado(row), visit.texts
    is_open = await visit.reveal(1)
    return {
        **_line(row, texts, is_open=is_open),
        "columns": document["colunas"],
        "reading": await julia.appointments.importacao.leitura(id),
        "figures": [
            (name, document[name]) for name in ("total_rows", "imported", "duplicates", "skipped", "invalid_rows")
        ],
        "problems": [
            *(_problem(each, texts, Tone.FAILING) for each in document["errors"]),
            *(_problem(each, texts, Tone.DEGRADED) for each in document["warnings"]),
        ],
    }


def _line(row: Row, texts: Texts, *, is_open: bool) -> dict[str, object]:
    return {
        "id": str(row["id"]),
        "name": f"{row['arquivo'] if is_open else arquivo_coberto(row['arquivo'])} {str(row['id'])[-SHOWN_ID:]}",
        "state": texts(f"estado.importacao.{row['status']}"),
        "tone": TONES[row["status"]],
        "done": row["valid_rows"] + row["invalid_rows"] + row["skipped"],
        "of": row["total_rows"],
        "new": row["imported"],
        "refused": row["invalid_rows"],
        "at": row["created_at"],
    }


def _problem(each: Mapping[str, Any], texts: Texts, tone: Tone) -> dict[str, object]:
    return {
        "tone": tone,
        "sheet": each.get("aba"),
        "line": each.get("linha"),
        "column": each.get("coluna"),
        "text": word(texts, "agendamentos.motivo", each["problema"]),
    }


def _lines(call: ActionCall) -> list[str]:
    return [line.strip() for line in call.values[COLUMNS].splitlines() if line.strip()]


def _name(call: ActionCall) -> str:
    return call.file_names.get(FILE) or "agendamentos.xlsx"
