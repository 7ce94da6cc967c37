"""Evaluate each conversation once, after it has ended or become quiet. A person can correct the score.

no model, or its budget is spent  ──▶ the rules evaluate (``avaliador = regras``)
the model fills in the form       ──▶ its evaluation is stored (``avaliador = modelo``)
the answer is unreadable          ──▶ a later run queries again; after three unreadable answers the rules evaluate
the model does not answer         ──▶ the run ends with the reason; the conversation waits
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final

from app.contexts.comum.prazo import OUT_OF_TIME
from app.contexts.llm.service import (
    MODEL_HELD,
    Calou,
    Consulta,
    Pergunta,
    Respondeu,
    SemVerba,
    entre_marcas,
    silence_reason,
)
from app.contexts.qualidade.notas import (
    COM_ORIENTACAO,
    INSTRUCAO,
    LISTAS,
    LLM,
    REGRAS,
    SCHEMA,
    Notas,
    ler_resposta,
    por_regras,
    sem_nomes,
    transcrever,
)
from app.contexts.qualidade.orientacao import Orientacoes
from batuta import BatutaError, Done, Outcome, Partial
from batuta.guards import Hold
from batuta.jobs import JobCall
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.reasons import define
from batuta.sql import AsJson, AuditLog, Database, Query, Row, load_queries

USO: Final = "qualidade"
LOTE: Final = 50
MOST_MESSAGES: Final = 60
MOST_UNREAD: Final = 3
# Shortest remaining time in which another conversation is evaluated. A query to the model may take 30 seconds.
MARGIN: Final = timedelta(seconds=40)
BEST: Final = 10
LONGEST_CORRECTION: Final = 500
REMAINING = define(
    "avaliacoes_restantes", "{count} conversations remain: `batuta run avaliar_conversas_pendentes` continues"
)
UNREADABLE = define("avaliacoes_ilegiveis", "{count} answers from the model could not be read and were ignored")
ILEGIVEL: Final = "ilegivel"


class AvaliacaoDesconhecida(BatutaError):
    sentence = "evaluation {id} does not exist: `batuta qualidade listar` lists the existing ones"


class AvaliacaoMudou(BatutaError):
    sentence = "another person has just corrected evaluation {id}: `batuta qualidade ver {id}` shows the correction"


@dataclass(frozen=True, slots=True)
class EvaluationQueries:
    pending: Query
    remaining: Query
    said: Query
    add: Query
    unread: Query
    listed: Query
    one: Query
    correct: Query


class Avaliacoes:
    def __init__(
        self,
        database: Database,
        orientacoes: Orientacoes,
        llm: Consulta | None,
        quieta_apos: timedelta,
        ids: Ids,
        clock: Clock,
    ) -> None:
        """Create the service that evaluates conversations. If ``llm`` is None, rules evaluate the conversations. An
        open conversation is treated as quiet when ``quieta_apos`` has passed since its last message.
        """
        self._database = database
        self._orientacoes = orientacoes
        self._llm = llm
        self._quieta_apos = quieta_apos
        self._ids = ids
        self._clock = clock
        self._audit = AuditLog(database.dialect, ids)
        self._queries = load_queries(EvaluationQueries, "sql/avaliacoes.sql", database.dialect)

    async def avaliar_conversas_pendentes(self, call: JobCall) -> Outcome:
        """Evaluate up to 50 conversations. The result counts the evaluations by rules and by the model, and the
        conversations that remain.
        """
        counted: Counter[str] = Counter()
        stopped: str | None = None
        rows = await self._database.all(self._queries.pending, quiet_since=self._quiet_since(), limite=LOTE)
        for row in rows:
            stopped = (
                OUT_OF_TIME() if self._clock.now() >= call.deadline - MARGIN else await self._evaluate(row, counted)
            )
            if stopped is not None:
                break
        remaining = await self._database.one(self._queries.remaining, quiet_since=self._quiet_since())
        left = 0 if remaining is None else int(remaining["items"])
        figures: dict[str, Json] = {
            REGRAS: counted[REGRAS], LLM: counted[LLM], "ilegiveis": counted[ILEGIVEL], "restantes": left,
        }  # fmt: skip
        if stopped is None and counted[ILEGIVEL]:
            stopped = UNREADABLE(count=counted[ILEGIVEL])
        if stopped is None and left:
            stopped = REMAINING(count=left)
        made = counted[REGRAS] + counted[LLM]
        return Done(items=made, result=figures) if stopped is None else Partial(stopped, items=made, result=figures)

    async def listar(
        self, *, avaliador: str | None = None, ate: int = BEST, limite: int, pular: int = 0
    ) -> Sequence[Row]:
        """List evaluations with a score of at most ``ate``, newest first."""
        values = {"avaliador": avaliador, "ate": ate, "limite": limite, "pular": pular}
        return await self._database.all(self._queries.listed, **values)

    async def ver(self, id: str) -> Row:
        row = await self._database.one(self._queries.one, id=id)
        if row is None:
            raise AvaliacaoDesconhecida(id=id)
        return row

    async def corrigir(self, id: str, nota: int, *, por: str, motivo: str) -> Row:
        """Store the score that a person gives a conversation, with the reason. Personal data in the reason is masked. A
        later correction replaces an earlier one.
        """
        before, now = await self.ver(id), self._clock.now()
        reason = sem_nomes(motivo, [before["primeiro_nome"], before["sobrenome"]])[:LONGEST_CORRECTION]
        async with self._database.transaction() as transaction:
            values = {
                "id": id,
                "nota": nota,
                "correcao": reason,
                "por": por,
                "antes": before["corrigida_em"],
                "now": now,
            }
            if not await transaction.run(self._queries.correct, **values):
                raise AvaliacaoMudou(id=id)
            await self._audit.note(
                transaction,
                actor=por,
                action="avaliacao.corrigir",
                subject=f"avaliacao:{id}",
                before={"nota": before["nota_corrigida"] or before["score_geral"]},
                after={"nota": nota, "motivo": reason},
                now=now,
            )
        return await self.ver(id)

    async def _evaluate(self, row: Row, counted: Counter[str]) -> str | None:
        """Evaluate one conversation and count the result. Return a reason if the run must stop."""
        newest = await self._database.all(self._queries.said, id=row["id"], limite=MOST_MESSAGES)
        messages, version = newest[::-1], None
        notas, avaliador = por_regras(row["stage"], messages), REGRAS
        if self._llm is not None and row["ilegiveis"] < MOST_UNREAD:
            guidance = await self._orientacoes.em_vigor()
            version = None if guidance is None else int(guidance["versao"])
            match await self._llm.responder(USO, _question(row, messages, guidance)):
                case Respondeu(documento=document):
                    if (read := ler_resposta(document)) is None:
                        await self._database.run(self._queries.unread, conversa_id=row["id"], now=self._clock.now())
                        counted[ILEGIVEL] += 1
                        return None
                    notas, avaliador = read, LLM
                case Hold(reason=why):
                    return MODEL_HELD(why=why)
                case Calou(report=report):
                    return silence_reason(report)
                case SemVerba():
                    version = None
        counted[avaliador] += await self._store(row["id"], avaliador, notas, len(messages), version)
        return None

    async def _store(self, conversa_id: str, avaliador: str, notas: Notas, count: int, version: int | None) -> int:
        values: dict[str, Any] = asdict(notas)
        lists = {name: AsJson(list(values.pop(name))) for name in LISTAS}
        model = None if self._llm is None or avaliador == REGRAS else self._llm.nome
        return await self._database.run(
            self._queries.add, id=self._ids.new(), conversa_id=conversa_id, avaliador=avaliador, modelo=model, **values,
            **lists, mensagens=count, prompt_versao=version, now=self._clock.now(),
        )  # fmt: skip

    def _quiet_since(self) -> datetime:
        return self._clock.now() - self._quieta_apos


def _question(row: Row, messages: Sequence[Row], guidance: Row | None) -> Pergunta:
    order = INSTRUCAO
    if guidance is not None:
        order = COM_ORIENTACAO.format(instrucao=INSTRUCAO, versao=guidance["versao"], conteudo=guidance["conteudo"])
    said = transcrever(messages, [row["primeiro_nome"], row["sobrenome"]])
    return Pergunta(instrucao=order, dados=entre_marcas(said), schema=SCHEMA)
