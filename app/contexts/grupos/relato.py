"""Convert vacancies in review, closing notices in review and blocked authors to JSON objects for the API
and the pages.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from app.contexts.grupos.autores import Autor
from batuta.sql import Row

CAMPOS = (
    "hospital", "especialidade", "data", "periodo", "hora_inicio", "hora_fim", "valor", "valor_tipo", "forma_pagamento",
    "contato_nome", "contato_whatsapp",
)  # fmt: skip


def vaga_em_palavras(row: Row | Mapping[str, Any], zone: ZoneInfo, fontes: Sequence[Row] = ()) -> dict[str, Any]:
    """Return a vacancy in review as a JSON object: its fields with their positions in the message text, and the text
    itself.
    """
    raw = {"hospital": row["hospital_raw"], "especialidade": row["especialidade_raw"], "periodo": row["periodo_raw"]}
    said = {
        **{name: row[name] for name in CAMPOS if name not in (*raw, "forma_pagamento")},
        **raw,
        "data": None if row["data"] is None else row["data"].isoformat(),
        "forma_pagamento": row["forma_pagamento_raw"],
    }
    spans: Mapping[str, Any] = row["trechos"] or {}
    return {
        "id": row["id"],
        "status": row["status"],
        "motivo": row["motivo_status"],
        "score": row["score_importacao"],
        "grupo": row["grupo_nome"],
        "enviada_em": row["timestamp_msg"].astimezone(zone).isoformat(),
        "texto": row["texto"],
        "inexplicado": [
            {"trecho": each, "palavra": row["texto"][slice(*each)]} for each in spans.get("inexplicado", ())
        ],
        "campos": {name: {"valor": said[name], "trecho": spans.get(name)} for name in CAMPOS},
        "hospital": row["hospital_nome"],
        "hospital_score": row["hospital_match_score"],
        "especialidade": row["especialidade_nome"],
        "faltando": row["campos_faltando"],
        "pergunta": _pergunta(row, zone),
        "vaga_id": row["vaga_importada_id"],
        "vaga": _vaga(row, zone),
        "anterior": _anterior(row),
        "revisada_por": row["revisada_por"],
        "qtd_fontes": row["qtd_fontes"],
        "fontes": [
            {
                "ordem": fonte["ordem"],
                "grupo": fonte["grupo_nome"],
                "texto": fonte["texto_original"],
                "valor": fonte["valor_informado"],
                "em": fonte["created_at"].astimezone(zone).isoformat(),
            }
            for fonte in fontes
        ],
    }


def _pergunta(row: Row | Mapping[str, Any], zone: ZoneInfo) -> dict[str, Any] | None:
    """Return the state of Julia's question to the author about missing fields, or None if the author was not asked."""
    if row["dm_recovery_status"] is None:
        return None
    at = row["dm_recovery_sent_at"].astimezone(zone).isoformat()
    return {"estado": row["dm_recovery_status"], "em": at, "mensagem": row["pergunta_status"]}


def _vaga(row: Row | Mapping[str, Any], zone: ZoneInfo) -> dict[str, Any] | None:
    """Return the current state of the vacancy that was created by importing an extracted vacancy. The state may have
    changed since the import. Return None if the extracted vacancy was not imported.
    """
    if row["vaga_status"] is None:
        return None
    closed = row["vaga_fechada_em"]
    return {
        "id": row["vaga_importada_id"],
        "status": row["vaga_status"],
        "fechada_em": None if closed is None else closed.astimezone(zone).isoformat(),
    }


def _anterior(row: Row | Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the current values of the earlier vacancy that an extracted vacancy repeats, or None if it repeats none."""
    if row["anterior_id"] is None:
        return None
    names = ("id", "status", "valor", "hora_inicio", "hora_fim")
    return {name: row[f"anterior_{name}"] for name in names}


def aviso_em_palavras(row: Row | Mapping[str, Any], vagas: Sequence[Row], zone: ZoneInfo) -> dict[str, Any]:
    """Return a notice that a vacancy is taken, with the words in the message that say so and the vacancies that the
    notice may refer to.
    """
    return {
        "id": row["id"],
        "status": row["status"],
        "como": row["como"],
        "motivo": row["motivo"],
        "grupo": row["grupo_nome"],
        "enviada_em": row["timestamp_msg"].astimezone(zone).isoformat(),
        "texto": row["texto"],
        "trecho": row["trecho"],
        "fechadas": row["fechadas"],
        "vagas": [
            {
                "id": vaga["id"],
                "status": vaga["status"],
                "hospital": vaga["hospital"],
                "especialidade": vaga["especialidade"],
                "data": None if vaga["data"] is None else vaga["data"].isoformat(),
                "periodo": vaga["periodo"],
                "hora_inicio": vaga["hora_inicio"],
                "hora_fim": vaga["hora_fim"],
            }
            for vaga in vagas
        ],
        "revisada_por": row["revisada_por"],
    }


def autor_em_palavras(autor: Autor) -> dict[str, Any]:
    return {"id": autor.id, "bloqueado": autor.bloqueado, "rejeitadas": autor.rejeitadas}


def autor_bloqueado(row: Row | Mapping[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    return {
        "id": row["id"],
        "nome": row["nome"],
        "empresa": row["empresa"],
        "bloqueado_em": row["bloqueado_em"].astimezone(zone).isoformat(),
        "bloqueado_por": row["bloqueado_por"],
    }
