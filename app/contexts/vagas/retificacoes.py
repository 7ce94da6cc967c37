"""Apply the corrections that an author posts to an offer, so that an open vacancy has the values from the author's
latest message.

If the vacancy was already offered to a doctor, it changes only if an operator approves the change. The first message
stays recorded as one of the vacancy's sources.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

from app.contexts.comum.telefone import forms
from batuta import BatutaError
from batuta.kernel import Ids, Json, dataclass
from batuta.queues import Writes
from batuta.sql import AuditLog, Dialect, Query, Row, Transaction, load_queries

MAQUINA: Final = "grupos"
# Reason for review: the vacancy to change was already offered to a doctor.
MUDOU: Final = "valor_mudou"
CAMPOS: Final = ("valor", "hora_inicio", "hora_fim")
A_DECIDIR: Final = ("nova", "normalizada", "aguardando_revisao")
OFERECIDA: Final = ("anunciada", "reservada", "aguardando_confirmacao", "pendente_confirmacao", "confirmada")


class MudancaSemVaga(BatutaError):
    sentence = "{id} corrects a vacancy that is now {status}: reject the correction"


class OfertaPorDecidir(MudancaSemVaga):
    sentence = "{id} corrects vacancy {principal}, which is still in review: approve {principal} first"


class MudancaSuperada(MudancaSemVaga):
    sentence = "the author posted a later version of vacancy {id}: reject {id}"


@dataclass(frozen=True, slots=True)
class RectificationQueries:
    standing: Query
    hold: Query
    hold_vacancy: Query
    rewrite: Query
    rewrite_vacancy: Query
    send_to_review: Query
    supersede: Query
    settled: Query


def mesmo_autor(vaga: Row | Mapping[str, Any], principal: Row | Mapping[str, Any]) -> bool:
    """Return whether two vacancies have the same author. Authors are compared by id and by phone number. The contact
    that ``principal`` names also counts as its author.
    """
    author = vaga["contato_responsavel_id"]
    if author is not None and author == principal["contato_responsavel_id"]:
        return True
    lines = set(forms(vaga["autor_telefone"])) if vaga["autor_telefone"] else set()
    return any(
        said and not lines.isdisjoint(forms(said))
        for said in (principal["autor_telefone"], principal["contato_whatsapp"])
    )


def mudancas(dita: Row | Mapping[str, Any], antes: Row | Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a new message changes in an earlier offer, with their new values. A field that the new
    message omits keeps its value.
    """
    return {name: dita[name] for name in CAMPOS if dita[name] is not None and dita[name] != antes[name]}


class Retificacoes:
    def __init__(self, dialect: Dialect, ids: Ids) -> None:
        self._queries = load_queries(RectificationQueries, "sql/retificacoes.sql", dialect)
        self._audit = AuditLog(dialect, ids)

    def efeito(
        self, vaga: Row, principal: str, junto: Writes, now: datetime
    ) -> Callable[[Transaction], Awaitable[None]]:
        """Return the effect of an author's correction: a function that first runs the statements in ``junto``, which
        lock the row of the vacancy to correct, and then applies the correction.
        """

        async def effect(transaction: Transaction) -> None:
            for query, values in junto.statements:
                await transaction.run(query, **values)
            await self.dita(transaction, vaga, principal, now)

        return effect

    async def aprovar(self, transaction: Transaction, vaga: Mapping[str, Any], *, por: str, now: datetime) -> str:
        """Apply a correction that an operator approved, and return the id of the changed vacancy."""
        id, principal = str(vaga["id"]), str(vaga["duplicada_de"])
        await transaction.run(self._queries.hold, id=principal, now=now)
        antes = await self._standing(transaction, vaga, principal)
        if antes is not None and antes["vaga_status"] is None and antes["status"] in A_DECIDIR:
            raise OfertaPorDecidir(id=id, principal=principal)
        if antes is not None and antes["superada"]:
            raise MudancaSuperada(id=id)
        if antes is None or antes["vaga_id"] is None or not await self._rewrite(transaction, vaga, antes, por, now):
            raise MudancaSemVaga(id=id, status="" if antes is None else antes["vaga_status"] or antes["status"])
        await transaction.run(self._queries.settled, id=vaga["id"], now=now)
        await self._supersede(transaction, vaga, principal, now)
        return str(antes["vaga_id"])

    async def dita(
        self,
        transaction: Transaction,
        vaga: Row | Mapping[str, Any],
        principal: str,
        now: datetime,
        *,
        claro: bool = True,
    ) -> None:
        """Apply a message in which an author repeats an offer with other values. If it is unclear whether the message
        refers to this offer (``claro`` is False), an operator decides.
        """
        antes = await self._standing(transaction, vaga, principal)
        if antes is None or antes["posterior"] or antes["duas"]:
            return
        changed, status = mudancas(vaga, antes), antes["vaga_status"]
        is_free = status == "aberta" or (status is None and antes["status"] in A_DECIDIR)
        done = claro and is_free and await self._rewrite(transaction, vaga, antes, MAQUINA, now)
        if not done and (is_free or status in OFERECIDA) and any(antes[name] is not None for name in changed):
            await transaction.run(self._queries.send_to_review, id=vaga["id"], motivo=MUDOU, now=now)
        if claro:
            await self._supersede(transaction, vaga, principal, now)

    async def _standing(self, transaction: Transaction, vaga: Row | Mapping[str, Any], principal: str) -> Row | None:
        lines = forms(vaga["autor_telefone"]) if vaga["autor_telefone"] else ("",)
        return await transaction.one(
            self._queries.standing, principal=principal, id=vaga["id"], autor=vaga["contato_responsavel_id"],
            telefone=lines[0], sem_nono=lines[-1],
        )  # fmt: skip

    async def _supersede(
        self, transaction: Transaction, vaga: Row | Mapping[str, Any], principal: str, now: datetime
    ) -> None:
        """Mark the author's earlier corrections that are still awaiting a decision as superseded."""
        await transaction.run(
            self._queries.supersede, principal=principal, mensagem=vaga["mensagem_id"], motivo=MUDOU, now=now,
            com_horas=vaga["hora_inicio"] is not None, **{name: vaga[name] for name in CAMPOS},
        )  # fmt: skip

    async def _rewrite(
        self, transaction: Transaction, vaga: Row | Mapping[str, Any], antes: Row, por: str, now: datetime
    ) -> bool:
        """Write a vacancy's changed fields. Return whether the vacancy now matches the message.

        If the vacancy has already been offered to a doctor, only an operator may change it, not the pipeline.
        """
        by_operator = por != MAQUINA
        if antes["vaga_id"] is not None and not await transaction.run(
            self._queries.hold_vacancy, id=antes["vaga_id"], oferecida=by_operator, now=now
        ):
            return False
        changed = mudancas(vaga, antes)
        if not changed:
            return True
        said = {name: changed.get(name, antes[name]) for name in CAMPOS}
        kind = "fixo" if "valor" in changed else antes["valor_tipo"]
        await transaction.run(self._queries.rewrite, id=antes["id"], **said, valor_tipo=kind, now=now)
        if antes["vaga_id"] is not None:
            await transaction.run(self._queries.rewrite_vacancy, id=antes["vaga_id"], principal=antes["id"], now=now)
        what = f"vaga_grupo:{antes['id']}" if antes["vaga_id"] is None else f"vaga:{antes['vaga_id']}"
        before: dict[str, Json] = {name: antes[name] for name in changed}
        after: dict[str, Json] = {**changed, "por_causa_de": str(vaga["mensagem_id"])}
        await self._audit.note(
            transaction, actor=por, action=f"{what.partition(':')[0]}.corrigir", subject=what, before=before, after=after,
            now=now,
        )  # fmt: skip
        return True
