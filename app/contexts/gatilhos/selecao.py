"""Select doctors or vacancies for a trigger with one statement, which also counts the excluded candidates.

For each candidate, the statement finds the first reason that prevents a message. The statement returns the selected
candidates, and for each reason the number of excluded candidates and some of their ids. If earlier messages from the
trigger are still queued, it selects fewer candidates.
"""

from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.gatilhos.model import (
    ASK_WITHIN,
    ATTEMPTS,
    OFFER_AHEAD,
    REGRAS,
    RETRY_AFTER,
    SILENT_FOR,
    TALKING,
    Gatilho,
    Selecao,
)
from app.contexts.mensagens.api import CONTACTS_IN_A_WEEK, IMPEDIMENTOS
from batuta.kernel import dataclass
from batuta.sql import Dialect, Query, Reading, load_text

# If a trigger's message was not sent, the trigger waits before it queues the message again. After several attempts, it
# gives up.
TENTATIVAS: Final = """
WHEN EXISTS (SELECT 1 FROM gatilhos_contatos AS failed WHERE failed.cliente_id = doctor.id AND failed.gatilho = :gatilho
             AND failed.created_at > :retry_since) THEN 'tentado_ha_pouco'
WHEN (SELECT count(*) FROM gatilhos_contatos AS failed WHERE failed.cliente_id = doctor.id AND failed.gatilho = :gatilho
      AND failed.enviada_em IS NULL AND failed.created_at > coalesce(state.last_inbound_at, doctor.created_at)) >= :attempts
     THEN 'tentativas_esgotadas'
""".strip()
INICIO: Final = """
SELECT id, telefone, primeiro_nome, vaga_id, hospital, data AS "data [DATE]", impedimento, quantos,
       impedimento IS NULL AND posicao <= room AS "escolhido [BOOLEAN]" FROM (
    SELECT considered.*, count(*) OVER (PARTITION BY impedimento) AS quantos,
           row_number() OVER (PARTITION BY impedimento ORDER BY ordem, id) AS posicao,
           :limite - (SELECT count(*) FROM fila_mensagens AS live WHERE live.tipo = :tipo
                      AND live.status IN ('pendente', 'processando')) / :cada AS room
    FROM (
""".strip()
FIM: Final = """
    ) AS considered
) AS placed
WHERE posicao = 1 OR posicao <= CASE WHEN impedimento IS NULL THEN room ELSE :exemplos END
ORDER BY impedimento IS NOT NULL, impedimento, posicao
""".strip()


@dataclass(frozen=True, slots=True)
class SelectionQueries:
    discovery: Query
    reativacao: Query
    feedback: Query
    oferta: Query


class Seletor:
    def __init__(self, dialect: Dialect, zone: ZoneInfo) -> None:
        text = (Path(__file__).parent / "sql" / "selecao.sql").read_text(encoding="utf-8")
        parts = {"inicio": INICIO, "fim": FIM, "impedimentos": IMPEDIMENTOS, "tentativas": TENTATIVAS}
        for name, part in parts.items():
            text = text.replace(f"{{{name}}}", part)
        queries = load_text(SelectionQueries, text, "selecao.sql", dialect)
        self._zone = zone
        self._queries = {
            Gatilho.DISCOVERY: queries.discovery,
            Gatilho.REATIVACAO: queries.reativacao,
            Gatilho.FEEDBACK: queries.feedback,
            Gatilho.OFERTA: queries.oferta,
        }

    async def selecionar(self, reading: Reading, gatilho: Gatilho, *, exemplos: int = 0, now: datetime) -> Selecao:
        """Select the doctors or vacancies for one run of a trigger. ``exemplos`` is how many ids of excluded candidates
        are returned for each reason.
        """
        rows = await reading.all(self._queries[gatilho], **self._values(gatilho, exemplos, now))
        counted: dict[str | None, int] = {row["impedimento"]: int(row["quantos"]) for row in rows}
        shown: dict[str, list[str]] = defaultdict(list)
        for row in rows:
            if row["impedimento"] is not None and exemplos:
                shown[row["impedimento"]].append(str(row["id"]))
        return Selecao(
            escolhidos=tuple(row for row in rows if row["escolhido"]),
            aptos=counted.get(None, 0),
            impedidos={reason: count for reason, count in counted.items() if reason is not None},
            exemplos={reason: tuple(ids) for reason, ids in shown.items()},
        )

    def _values(self, gatilho: Gatilho, exemplos: int, now: datetime) -> dict[str, object]:
        rule, today = REGRAS[gatilho], now.astimezone(self._zone).date()
        every = {"limite": rule.limite, "cada": rule.cada, "tipo": rule.tipo.value, "exemplos": exemplos}
        if gatilho is Gatilho.OFERTA:
            return {**every, "hoje": today, "ate": today + OFFER_AHEAD}
        doctors = {
            **every,
            "automatico": True,
            "contatos": CONTACTS_IN_A_WEEK,
            "now": now,
            "week_ago": now - RETRY_AFTER,
        }
        tries = {"gatilho": gatilho.value, "retry_since": now - RETRY_AFTER, "attempts": ATTEMPTS}
        match gatilho:
            case Gatilho.DISCOVERY:
                return {**doctors, **tries, "talking": now - TALKING}
            case Gatilho.REATIVACAO:
                return {**doctors, **tries, "silent_since": now - SILENT_FOR}
            case Gatilho.FEEDBACK:
                return {**doctors, "asked_since": now - ASK_WITHIN, "talking": now - TALKING}
