"""Stores campaigns in the database."""

from pathlib import Path
from typing import Any

from app.contexts.campanhas.publico import Candidato
from batuta.kernel import dataclass
from batuta.sql import Dialect, Query, Row, load_queries, load_text

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class CampaignQueries:
    campaign: Query
    campaigns: Query
    create: Query
    change: Query
    recipients: Query
    messages: Query
    doubts: Query
    people: Query
    person: Query


@dataclass(frozen=True, slots=True)
class StartQueries:
    due: Query
    refuse: Query
    begin: Query
    words: Query
    candidates: Query
    known: Query
    hold: Query
    join: Query
    considered: Query
    consider: Query
    decided: Query
    next: Query
    exclude: Query
    queued: Query
    enqueued: Query


def campaign_queries(dialect: Dialect) -> CampaignQueries:
    return load_queries(CampaignQueries, HERE / "sql" / "campanhas.sql", dialect)


def start_queries(dialect: Dialect) -> StartQueries:
    wanted = (
        f"(doctor.id IN ({list_expression('clientes', dialect, 'uuid')}) OR (NOT :named AND doctor.deleted_at IS NULL"
        f" AND (:any_especialidade OR doctor.especialidade IN ({list_expression('especialidades', dialect)}))"
        f" AND (:anywhere OR doctor.cidade IN ({list_expression('cidades', dialect)})"
        f" OR doctor.estado IN ({list_expression('estados', dialect)}))))"
    )
    text = (HERE / "sql" / "inicio.sql").read_text(encoding="utf-8")
    text = text.replace("{wanted}", wanted).replace("{clientes}", list_expression("clientes", dialect, "uuid"))
    return load_text(StartQueries, text, "inicio.sql", dialect)


def list_expression(name: str, dialect: Dialect, kind: str = "text") -> str:
    """Return the SQL that selects the elements of a JSON array as rows."""
    if dialect == "sqlite":
        return f"SELECT value FROM json_each(:{name})"
    return f"SELECT jsonb_array_elements_text(:{name})::{kind}"


def candidato(row: Row) -> Candidato:
    return Candidato(
        id=row["id"],
        nome=row["primeiro_nome"],
        especialidade=row["especialidade"],
        removido=row["removido"],
        optout=row["optout"],
        telefone_invalido=row["telefone_invalido"],
        pressao=row["pressure_score_atual"],
        conversa_humana=row["conversa_humana"],
        esfriando=row["permission_state"] == "cooling_off",
        esfriando_ate=row["cooling_off_until"],
        proximo_contato=row["next_allowed_at"],
        ultima_entrada=row["last_inbound_at"],
        ultima_saida=row["last_outbound_at"],
        contatos_7d=row["contatos_7d"],
        outra_campanha_em=row["outra_campanha_em"],
        na_fila_de_outra=row["na_fila_de_outra"],
        campanhas_recebidas=row["campanhas_recebidas"],
        ja_respondeu=row["ja_respondeu"],
    )


def lists(**named: Any) -> dict[str, Any]:
    """Convert the values of a statement's list parameters to lists. None becomes an empty list; another parameter tells
    the statement to ignore that list.
    """
    return {name: list(values or ()) for name, values in named.items()}
