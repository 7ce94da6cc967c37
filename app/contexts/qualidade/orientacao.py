"""The guidance for the language model: a text that summarises evaluations and people's corrections. Every version is
kept.

Rules compose the guidance from stored sentences, so that it contains only what evaluations say. If there are no new
evaluations, the active version remains.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from batuta import Done, Outcome, Skipped
from batuta.jobs import JobCall
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.reasons import define
from batuta.sql import AsJson, Database, Query, Row, load_queries

NOME: Final = "orientacao_conversas"
SISTEMA: Final = "sistema"
RECENT: Final = timedelta(days=90)
MOST_EVALUATIONS, MOST_LINES, MOST_VERSIONS = 1_000, 10, 50
GOOD, BAD = 8, 4
NOTHING_TO_CONDENSE = define(
    "orientacao_sem_base",
    "no evaluation from the last 90 days has a sentence or a correction: the active guidance stays unchanged; "
    "`batuta qualidade corrigir ID SCORE --motivo REASON` adds a correction",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensada:
    """The guidance text, and the number of evaluations and corrections that it summarises."""

    texto: str
    base: Mapping[str, Json]


def condensar(avaliacoes: Sequence[Row | Mapping[str, Any]]) -> Condensada | None:
    """Summarise evaluations, which are given newest first. The summary has people's corrections, followed by the most
    frequent sentences. Return None if there is nothing to summarise.
    """
    corrected = [each for each in avaliacoes if each["nota_corrigida"] is not None and each["correcao"]]
    good = [each for each in avaliacoes if each["nota"] >= GOOD]
    bad = [each for each in avaliacoes if each["nota"] <= BAD]
    parts = {
        "Correções da equipe": [f"(nota {each['nota']}) {each['correcao']}" for each in corrected[:MOST_LINES]],
        "Continuar": _most_frequent(good, "positivos"),
        "Evitar": _most_frequent(bad, "negativos"),
        "Melhorar": _most_frequent(avaliacoes, "sugestoes"),
    }
    said = [f"{title}:\n" + "\n".join(f"- {line}" for line in lines) for title, lines in parts.items() if lines]
    if not said:
        return None
    base: dict[str, Json] = {
        "avaliacoes": len(avaliacoes),
        "correcoes": len(corrected),
        "exemplos_bons": len(good),
        "exemplos_ruins": len(bad),
    }
    return Condensada(texto="\n".join(said), base=base)


def _most_frequent(avaliacoes: Sequence[Row | Mapping[str, Any]], name: str) -> list[str]:
    """Return the most frequent sentences in the column ``name``. Sentences with the same frequency are in alphabetical
    order.
    """
    counted = Counter(line for each in avaliacoes for line in each[name])
    return [line for line, _ in sorted(counted.items(), key=lambda each: (-each[1], each[0]))[:MOST_LINES]]


@dataclass(frozen=True, slots=True)
class GuidanceQueries:
    evaluated: Query
    active: Query
    versions: Query
    close: Query
    add: Query


class Orientacoes:
    def __init__(self, database: Database, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._ids = ids
        self._clock = clock
        self._queries = load_queries(GuidanceQueries, "sql/orientacao.sql", database.dialect)

    async def em_vigor(self) -> Row | None:
        """Return the active version of the guidance, or None if none exists yet."""
        return await self._database.one(self._queries.active, nome=NOME)

    async def versoes(self) -> Sequence[Row]:
        """Return the last 50 versions of the guidance, newest first."""
        return await self._database.all(self._queries.versions, nome=NOME, limite=MOST_VERSIONS)

    async def atualizar_prompt_feedback(self, call: JobCall) -> Outcome:
        """Write a new version of the guidance if the text composed from the evaluations differs from the active
        version.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            rows = await transaction.all(self._queries.evaluated, since=now - RECENT, limite=MOST_EVALUATIONS)
            made = condensar(rows)
            if made is None:
                return Skipped(NOTHING_TO_CONDENSE())
            known = await transaction.all(self._queries.versions, nome=NOME, limite=1)
            version, changed = (known[0]["versao"], False) if known else (0, False)
            if not known or known[0]["conteudo"] != made.texto:
                version += 1
                await transaction.run(self._queries.close, nome=NOME, now=now)
                # No row changed, so another run has written this version.
                changed = bool(await transaction.run(
                    self._queries.add, id=self._ids.new(), nome=NOME, versao=version, conteudo=made.texto,
                    base=AsJson(dict(made.base)), por=call.by or SISTEMA, now=now,
                ))  # fmt: skip
        return Done(items=int(changed), result={"versao": version, "mudou": changed, **made.base})
