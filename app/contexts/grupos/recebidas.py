"""Group messages and their results: the stage that discarded a message, the reason, and the score."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final
from zoneinfo import ZoneInfo

from batuta.extension import Texts
from batuta.kernel import Clock, dataclass
from batuta.sql import Database, Query, Row, load_queries

# Period of the list. Discarded rows stay in the queue equally long.
LOOKS_BACK: Final = timedelta(days=7)
DESCARTADAS: Final = frozenset(
    {"heuristica_rejeitou", "classificada_nao_oferta", "descartada", "ignorada_midia", "ignorada_curta"}
)


class MotivoDoDescarte(StrEnum):
    """Reasons for discarding a group message. The last four apply on arrival, before the pipeline reads the message."""

    TEXTO_VAZIO = "texto_vazio"
    MUITO_CURTA = "muito_curta"
    KEYWORD_NEGATIVA = "keyword_negativa"
    SCORE_BAIXO = "score_baixo"
    NAO_EH_OFERTA = "nao_eh_oferta"
    CONFIANCA_BAIXA = "confianca_baixa"
    EXTRACAO_FALHOU = "extracao_falhou"
    GRUPO_NAO_MONITORADO = "grupo_nao_monitorado"
    AUTOR_BLOQUEADO = "autor_bloqueado"
    IGNORADA_MIDIA = "ignorada_midia"
    IGNORADA_CURTA = "ignorada_curta"


@dataclass(frozen=True, slots=True)
class ReceivedMessageQueries:
    messages: Query
    reasons: Query
    today: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Hoje:
    """Counts of messages. ``recebidas`` and ``descartadas`` count since midnight; ``avisos`` counts all closing notices
    that are waiting for review, even those from earlier days.
    """

    recebidas: int
    descartadas: int
    avisos: int


class Recebidas:
    def __init__(self, database: Database, zone: ZoneInfo, clock: Clock) -> None:
        self._database = database
        self._zone = zone
        self._clock = clock
        self._queries = load_queries(ReceivedMessageQueries, "sql/recebidas.sql", database.dialect)

    async def lista(
        self, *, limite: int, pular: int = 0, descartadas: bool = False, motivo: MotivoDoDescarte | None = None
    ) -> Sequence[Row]:
        """List group messages, newest first. With ``motivo``, list only messages that were discarded for
        this reason.
        """
        return await self._database.all(
            self._queries.messages,
            so_descartadas=descartadas or motivo is not None,
            qualquer_motivo=motivo is None,
            motivo="" if motivo is None else motivo.value,
            limite=limite,
            pular=pular,
        )

    async def motivos(self) -> dict[str, int]:
        """Count the messages discarded in the last seven days by reason, most frequent first."""
        since = self._clock.now() - LOOKS_BACK
        return {row["motivo"]: row["items"] for row in await self._database.all(self._queries.reasons, since=since)}

    async def hoje(self) -> Hoje:
        """Count the group messages that were received and discarded since midnight in the local time zone, and the
        closing notices that are waiting for review.
        """
        midnight = self._clock.now().astimezone(self._zone).replace(hour=0, minute=0, second=0, microsecond=0)
        row = await self._database.one(self._queries.today, since=midnight)
        assert row is not None
        return Hoje(**{name: int(row[name]) for name in Hoje.__slots__})


def mensagem_em_palavras(row: Row | Mapping[str, Any], zone: ZoneInfo, *, com_texto: bool) -> dict[str, Any]:
    is_discarded = row["status"] in DESCARTADAS
    done = row["processado_em"]
    document = {
        "id": row["id"],
        "grupo": row["grupo_nome"] or row["grupo_jid"],
        "enviada_em": row["timestamp_msg"].astimezone(zone).isoformat(),
        "status": row["status"],
        "descartada": is_discarded,
        "estagio": estagio_de(row),
        "motivo": (row["motivo_descarte"] or row["status"]) if is_discarded else row["motivo_descarte"],
        "score": row["score_heuristica"],
        "limiar": row["limiar_heuristica"],
        "sinais": row["keywords_encontradas"] or [],
        "categoria": row["categoria"],
        "lida_como": row["motivo_classificacao"],
        "confianca": row["confianca_classificacao"],
        "limiar_confianca": row["limiar_classificacao"],
        "vagas": row["qtd_vagas_extraidas"] or 0,
        "decidida_em": None if done is None else done.astimezone(zone).isoformat(),
    }
    return {**document, "texto": row["texto"]} if com_texto else document


def estagio_de(row: Row | Mapping[str, Any]) -> str:
    """Return the last stage that processed a message, or "entrada" if the message was discarded on arrival."""
    looks = {"extracao": "extracao_ms", "classificacao": "classificacao_ms", "heuristica": "heuristica_ms"}
    return next((name for name, column in looks.items() if row[column] is not None), "entrada")


# Reason code for missing fields. Their names follow the code after a colon.
INCOMPLETO: Final = "match_incompleto"


def campo_em_palavras(texts: Texts, campo: str) -> str:
    """Return the name of a vacancy field in the reader's language."""
    return texts.get(f"grupos.campo.{campo}", campo)


def motivo_em_palavras(texts: Texts, motivo: str | None) -> str:
    """Return a reason code in the reader's language. Free text and unknown codes are returned unchanged."""
    if not motivo:
        return ""
    code, _, lacks = motivo.partition(":")
    if code == INCOMPLETO and lacks:
        fields = (campo_em_palavras(texts, each) for each in lacks.split(","))
        return texts("grupos.motivo.match_incompleto", falta=", ".join(fields))
    return texts.get(f"grupos.motivo.{motivo}", motivo)
