"""Convert appointments to JSON objects for the API and the command line, and to CSV for the export. Personal data is
masked for clients without the scope ``pii``.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

from app.contexts.agendamentos.documento.documento import documento_de
from app.contexts.agendamentos.documento.mascara import COBRIVEIS, COVERED, cpf_coberto, sem_cpf
from app.contexts.agendamentos.model import CAMPOS, StatusDaLeitura
from app.contexts.agendamentos.normalizacao import endereco_lido
from app.contexts.agendamentos.planilha.celulas import FORMULA
from app.contexts.agendamentos.planilha.linhas import LONGEST_TEXT
from batuta import TaskStatus
from batuta.kernel import mask_text
from batuta.sql import Row


class Visao(Enum):
    """The extent to which a client may see the fields of an appointment."""

    SEM_DADOS = "place, time and state; every other field is masked"
    SEM_DOCUMENTOS = "everything except documents"
    INTEIRA = "everything"


# The fields without personal data. For clients without the scope ``pii``, every other field is masked, free text
# included.
IMPESSOAIS: Final = (
    "nome_marca", "nome_unidade", "data_agendamento", "hora_agendamento", "status", "canal_confirmacao", "data_confirmacao",
    "hora_confirmacao",
)  # fmt: skip
ENDERECO_IMPESSOAL: Final = ("cidade", "uf", "avisos")
DOCUMENTO_IMPESSOAL: Final = ("avisos",)
SEM_LOGRADOURO: Final = "endereco_sem_logradouro"
SEM_DOCUMENTO: Final = "documento_nao_encontrado"


def avisos_da_leitura(row: Row | Mapping[str, Any]) -> list[str]:
    """Return the warnings about an appointment's parsed address and documents. The list is empty until parsing is
    complete.
    """
    if row["normalization_status"] != StatusDaLeitura.COMPLETED:
        return []
    return list(dict.fromkeys([*_do_endereco(row), *_do_documento(row)]))


def _do_endereco(row: Row | Mapping[str, Any]) -> list[str]:
    text, read = row["endereco_completo"], row["endereco_normalizado"]
    if isinstance(read, dict):
        warnings = [str(each) for each in read.get("avisos", ())]
        return warnings if read.get("logradouro") or not text else [*warnings, SEM_LOGRADOURO]
    return [SEM_LOGRADOURO] if text and not endereco_lido(text, row["cep"]).diz_algo else []


def _do_documento(row: Row | Mapping[str, Any]) -> list[str]:
    text, read = row["documento_completo"], row["documento_normalizado"]
    if isinstance(read, dict):
        return [str(each) for each in read.get("avisos", ())]
    found = documento_de(text or "")
    return [] if not text or found.diz_algo else [*found.avisos] or [SEM_DOCUMENTO]


INSTANTS: Final = ("normalized_at", "created_at", "updated_at")
READING: Final = (
    "normalization_status",
    "normalization_job_id",
    "normalization_error",
    "endereco_normalizado",
    "documento_normalizado",
)
EXPORTED: Final = (
    "id", *CAMPOS, "normalization_status", "normalization_error", "logradouro", "numero", "complemento", "bairro", "cidade", "uf",
    "cep_normalizado", "cpf", "rg", "orgao_emissor", "uf_emissor",
)  # fmt: skip
_STATE: Final = {
    StatusDaLeitura.PENDING: "queued",
    StatusDaLeitura.PROCESSING: "in_progress",
    StatusDaLeitura.COMPLETED: "complete",
    StatusDaLeitura.SKIPPED: "complete",
    StatusDaLeitura.FAILED: "failed",
}


def agendamento_em_palavras(row: Row | Mapping[str, Any], visao: Visao, *, com_avisos: bool = True) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": row["id"],
        "importacao_id": row["importacao_id"],
        "aba": row["aba"],
        "linha": row["linha"],
    }
    shown |= {name: row[name] for name in (*CAMPOS, *READING, "cpf", "rg")}
    shown |= {name: zulu(row[name]) for name in INSTANTS}
    if com_avisos:
        shown["normalization_warnings"] = avisos_da_leitura(row)
    if visao is Visao.INTEIRA:
        return shown
    document, address = shown["documento_normalizado"], shown["endereco_normalizado"]
    if visao is Visao.SEM_DADOS:
        shown |= {name: _coberto(shown[name]) for name in (*CAMPOS, "cpf", "rg") if name not in IMPESSOAIS}
        shown |= {
            name: sem_cpf(mask_text(shown[name], LONGEST_TEXT)) for name in IMPESSOAIS if isinstance(shown[name], str)
        }
        shown["endereco_normalizado"] = _coberto_exceto(address, ENDERECO_IMPESSOAL)
        shown["documento_normalizado"] = _coberto_exceto(document, DOCUMENTO_IMPESSOAL)
        return shown
    shown |= {name: sem_cpf(shown[name]) for name in CAMPOS if isinstance(shown[name], str)}
    shown["cpf"] = cpf_coberto(shown["cpf"])
    for name in ("rg", *COBRIVEIS):
        shown[name] = _coberto(shown[name])
    if isinstance(address, dict):
        shown["endereco_normalizado"] = {k: sem_cpf(v) if isinstance(v, str) else v for k, v in address.items()}
    if isinstance(document, dict):
        covered = {name: _coberto(document.get(name)) for name in ("rg", "cns")}
        shown["documento_normalizado"] = {**document, **covered, "cpf": cpf_coberto(document.get("cpf"))}
    return shown


def _coberto(value: object) -> str | None:
    return COVERED if value else None


def _coberto_exceto(read: Any, names: Iterable[str]) -> Any:
    """Mask every parsed value except those of the fields in ``names``."""
    if not isinstance(read, dict):
        return _coberto(read)
    return {name: value if name in names else _coberto(value) for name, value in read.items()}


def arquivo_coberto(nome: str) -> str:
    """Mask an imported file's name, because it may contain a patient's name. The extension remains."""
    return f"{COVERED}{PurePath(nome).suffix[:6]}"


def job_em_palavras(status: TaskStatus) -> dict[str, Any]:
    """Describe a task for API clients. The API shows a task in one of four states, so a cancelled task is reported as
    ``failed``, with its reason.
    """
    return {
        "job_id": status.job_id,
        "status": "failed" if status.status == "cancelled" else status.status,
        "enqueue_time": zulu(status.enqueue_time),
        "start_time": zulu(status.start_time),
        "finish_time": zulu(status.finish_time),
        "result": status.result,
        "error": status.error,
    }


def job_do_agendamento(job_id: str, row: Row) -> dict[str, Any]:
    """Describe a parsing task whose row was deleted, using the data in its appointment's row."""
    status = StatusDaLeitura(row["normalization_status"])
    fields = [name for name in ("endereco_normalizado", "documento_normalizado") if row[name] is not None]
    is_over = status not in (StatusDaLeitura.PENDING, StatusDaLeitura.PROCESSING)
    result = {"success": status is not StatusDaLeitura.FAILED, "appointment_id": row["id"], "fields_normalized": fields}
    return {
        "job_id": job_id,
        "status": _STATE[status],
        "enqueue_time": zulu(row["created_at"]),
        "start_time": None,
        "finish_time": zulu(row["normalized_at"]) if is_over else None,
        "result": result if is_over else None,
        "error": row["normalization_error"],
    }


def em_csv(rows: Iterable[Row | Mapping[str, Any]], visao: Visao, *, header: bool) -> str:
    """Write appointments as CSV for spreadsheet programs. No cell begins with a character that would turn it into a
    formula.
    """
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";", lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    if header:
        writer.writerow(EXPORTED)
    for row in rows:
        shown = agendamento_em_palavras(row, visao, com_avisos=False)
        address, document = shown["endereco_normalizado"] or {}, shown["documento_normalizado"] or {}
        flat = {
            **address,
            **document,
            **{name: shown[name] for name in ("cpf", "rg")},
            "cep_normalizado": address.get("cep"),
        }
        cells = {**flat, **{name: shown[name] for name in shown if name in EXPORTED}}
        writer.writerow([desarmado(cells.get(name)) for name in EXPORTED])
    return out.getvalue()


def desarmado(value: Any) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def zulu(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
