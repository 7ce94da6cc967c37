"""The morning job: answer the messages that arrived outside the sending hours.

Each conversation gets one answer to all its messages. The transaction that queues the answer also links these messages
to it, so that a crash neither loses nor repeats an answer. The messages are marked as processed when the answer was
sent, or when it is certain that it will not be sent.
"""

from datetime import datetime, timedelta
from typing import Final

from app.contexts.comum.prazo import OUT_OF_TIME, must_stop
from app.contexts.comum.saude import report_count
from app.contexts.conversas.api import MotivoDaPendencia
from app.contexts.leitura_conversas.api import ler
from app.contexts.mensagens.service import Mensagens
from app.contexts.respostas import textos
from app.contexts.respostas.decisao import Reacao, Reservar, decidir
from app.contexts.respostas.service import MensagemDoMedico, Respostas
from batuta import Done, Outcome, Partial, Skipped
from batuta.health import JOBS_AND_WORKERS, Check, Report, Severity
from batuta.jobs import JobCall
from batuta.kernel import Clock, Json
from batuta.reasons import define
from batuta.sql import Database, Row, Transaction

CLOSED = define("retomadas_fora_do_horario", "messages that arrive outside the sending hours are answered within them")
REMOVED: Final = "[removido]"
# Messages that the job has not answered within this time, weekends included, are reported.
LATE: Final = timedelta(hours=72)


class Retomadas:
    def __init__(self, database: Database, respostas: Respostas, mensagens: Mensagens, clock: Clock) -> None:
        self._database = database
        self._respostas = respostas
        self._mensagens = mensagens
        self._clock = clock

    async def processar_retomadas(self, call: JobCall) -> Outcome:
        """Queue the morning answers, starting with the conversation that has been waiting longest. The job's result
        counts the conversations by what was done.
        """
        if not self._respostas.is_open(self._clock.now()):
            return Skipped(CLOSED())
        counted: dict[str, int] = {}
        for row in await self._database.all(self._respostas.queries.waiting):
            if must_stop(call, self._clock.now()):
                return Partial(OUT_OF_TIME(), items=sum(counted.values()), result=_figures(counted))
            if (done := await self._resume(str(row["conversa_id"]), str(row["cliente_id"]))) is not None:
                counted[done] = counted.get(done, 0) + 1
        return Done(items=sum(counted.values()), result=_figures(counted))

    async def ask(self) -> Report:
        """Report messages received outside the sending hours that no run of the job has answered."""
        rows, now = await self._database.all(self._respostas.queries.waiting), self._clock.now()
        late = [row for row in rows if row["desde"] < now - LATE]
        since = min((row["desde"] for row in late), default=None)
        return report_count(Severity.ERROR, "respostas", "retomadas_atrasadas", len(late), since, lost=5)

    @property
    def check(self) -> Check:
        return Check(name="retomadas", section=JOBS_AND_WORKERS, ask=self.ask)

    async def _resume(self, conversa_id: str, cliente_id: str) -> str | None:
        """Answer one conversation in the morning. Return the name of the result, or None if another process has already
        handled the conversation.
        """
        now, queries = self._clock.now(), self._respostas.queries
        async with self._database.transaction() as transaction:
            await self._mensagens.travar(transaction, cliente_id)
            nights = await transaction.all(queries.night, conversa_id=conversa_id)
            doctor = await transaction.one(queries.doctor, cliente_id=cliente_id)
            if not nights or doctor is None:
                return None
            last = nights[-1]
            came = MensagemDoMedico(
                message_id=last["inbound_message_id"],
                cliente_id=cliente_id,
                conversa_id=conversa_id,
                telefone=doctor["telefone"],
                em=last["recebida_em"],
            )
            readable = [night for night in nights if night["conteudo"] not in (None, REMOVED)]
            if doctor["parou"] or doctor["deleted_at"] is not None or not readable:
                return await self._close(transaction, conversa_id, "optout" if doctor["parou"] else "removida", now)
            if last["com_pessoa"]:
                await self._respostas.pedir_pessoa(transaction, came, MotivoDaPendencia.COM_PESSOA, now)
                return await self._close(transaction, conversa_id, "com_pessoa", now)
            reactions = [await self._react(transaction, came, night, now) for night in readable]
            await self._respostas.retomar(transaction, came, nights, reactions, now)
            return "enfileiradas"

    async def _react(self, transaction: Transaction, came: MensagemDoMedico, night: Row, now: datetime) -> Reacao:
        """Decide the answer to one message that arrived outside the sending hours. If no rule fits, the message is left
        to a person.
        """
        fatos = await self._respostas.fatos(transaction, came.cliente_id, now)
        decided = decidir(ler(night["conteudo"]), night["conteudo"], fatos)
        if isinstance(decided, Reservar):
            return await self._respostas.reservar(transaction, came, decided.vaga, fatos)
        return decided or Reacao(texto=textos.PARA_PESSOA, motivo=MotivoDaPendencia.SEM_RESPOSTA)

    async def _close(self, transaction: Transaction, conversa_id: str, result: str, now: datetime) -> str:
        await transaction.run(self._respostas.queries.close, conversa_id=conversa_id, resultado=result, now=now)
        return result


def _figures(counted: dict[str, int]) -> dict[str, Json]:
    queued = counted.get("enfileiradas", 0)
    people = counted.get("com_pessoa", 0)
    return {"enfileiradas": queued, "com_pessoa": people, "ignoradas": sum(counted.values()) - queued - people}
