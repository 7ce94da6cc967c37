"""Review of extracted vacancies: an operator sees the source text and approves, corrects or rejects the vacancy.

If the operator corrects the hospital, the name in the message is stored as an alias of that hospital, so that the next
message with the same name needs no review.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.nomes.api import Correcao, Dicionario, MotivoAusente, busca, em_duvida
from app.contexts.vagas.chaves import Chaves
from app.contexts.vagas.importacao import PERIODO_ID, DecisaoDaImportacao, Parecer
from app.contexts.vagas.retificacoes import CAMPOS, MUDOU
from app.contexts.vagas.vagas import Vagas, chave_de
from batuta import BatutaError
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.sql import AuditLog, Database, Query, Row, Transaction, load_queries

LONGEST: Final = 500
REJEITADA: Final = "rejeitada"
PERIODOS: Final = {id: str(periodo) for periodo, id in PERIODO_ID.items()}
# A sort position before every row: creation time and id.
BEFORE_ALL: Final = (datetime(1970, 1, 1, tzinfo=UTC), "00000000-0000-0000-0000-000000000000")


class VagaInexistente(BatutaError):
    sentence = "vacancy {id} does not exist: `batuta grupos revisao` lists those in review"


class VagaDecidida(BatutaError):
    sentence = "vacancy {id} is already decided (status: {status}): `batuta grupos revisao` lists those in review"


class VagaIncompleta(BatutaError):
    sentence = "the vacancy lacks {falta}: approve it with a correction, or reject it"


class VagaPassada(BatutaError):
    sentence = "vacancy {id} is for {data}, which is past: correct the day, or reject it"


class HospitalBloqueado(BatutaError):
    sentence = "{hospital} is blocked: correct the hospital of vacancy {id}, or reject it"


@dataclass(frozen=True, slots=True)
class ReviewQueries:
    waiting: Query
    one: Query
    of_vacancy: Query
    sources: Query
    reasons: Query
    decide: Query
    correct: Query
    is_blocked: Query
    reject: Query
    count: Query
    decided: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Decidida:
    """The result of a review. ``status`` is ``importada``, ``duplicada`` (another extracted vacancy describes the same
    shift) or ``rejeitada``.
    """

    id: str
    status: str
    vaga_id: str | None = None
    aprendido: str | None = None


class Revisao:
    def __init__(
        self, database: Database, dicionario: Dicionario, vagas: Vagas, ids: Ids, zone: ZoneInfo, clock: Clock
    ) -> None:
        self._database = database
        self._audit = AuditLog(database.dialect, ids)
        self._dicionario = dicionario
        self._vagas = vagas
        self._chaves = Chaves(database.dialect)
        self._zone = zone
        self._clock = clock
        self._queries = load_queries(ReviewQueries, "sql/revisao.sql", database.dialect)

    async def pendentes(
        self,
        *,
        limite: int,
        pular: int = 0,
        status: str = "aguardando_revisao",
        motivo: str | None = None,
        depois: tuple[datetime, str] = BEFORE_ALL,
    ) -> Sequence[Row]:
        """List extracted vacancies that are waiting for review, oldest first. The list begins after the row that
        ``depois`` identifies. ``motivo`` restricts the list to one reason.
        """
        return await self._database.all(
            self._queries.waiting,
            limite=limite,
            pular=pular,
            status=status,
            motivo=motivo,
            depois_em=depois[0],
            depois_de=depois[1],
        )

    async def motivos(self) -> Mapping[str, int]:
        """Count the vacancies in review by reason code, most frequent first."""
        counts: Counter[str] = Counter()
        for row in await self._database.all(self._queries.reasons):
            counts[str(row["motivo_status"] or "").partition(":")[0]] += row["items"]
        return dict(counts.most_common())

    async def quantas(self) -> int:
        row = await self._database.one(self._queries.count)
        return 0 if row is None else int(row["items"])

    async def decididas(self) -> Sequence[Row]:
        """Return the reviewed vacancies with the texts of their messages. A message's vacancies are omitted while any
        of them is still waiting for a decision.
        """
        return await self._database.all(self._queries.decided)

    async def ver(self, id: str) -> tuple[Row, Sequence[Row]]:
        """Return an extracted vacancy and its sources. ``id`` is its id, or the id of the vacancy that was imported
        from it.
        """
        row = await self._database.one(self._queries.one, id=id)
        if row is None and (read := await self._database.one(self._queries.of_vacancy, id=id)) is not None:
            row = await self._database.one(self._queries.one, id=read["id"])
        if row is None:
            raise VagaInexistente(id=id)
        return row, await self._database.all(self._queries.sources, id=row["id"])

    async def aprovar(self, id: str, correcao: Correcao, *, por: str, notas: str | None = None) -> Decidida:
        """Import the extracted vacancy, with the operator's corrections if given. If another extracted vacancy already
        has the same deduplication key, mark this one as its duplicate instead.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            vaga = await self._take(transaction, id, por, notas, now)
            correcao.recusar(now.astimezone(self._zone).date())
            if vaga["motivo_status"] == MUDOU and set(correcao.campos) <= set(CAMPOS):
                return await self._apply_correction(transaction, vaga, correcao, por, now)
            former = vaga["hash_dedup"]
            learnt = await self._learn_from_correction(transaction, vaga, correcao, por, now)
            await self._refuse_unfit(transaction, vaga, now)
            if former != vaga["hash_dedup"]:
                await self._chaves.soltar(transaction, id, former)
            holder = await self._chaves.tomar(transaction, id, vaga["hash_dedup"], now)
            if holder != id:
                await transaction.run(self._vagas.queries.repeats, id=id, principal=holder, now=now)
                await self._source(transaction, vaga, holder, now)
                note: dict[str, Json] = {"status": "duplicada", "duplicada_de": holder, "campos": [*correcao.campos]}
                await self._note(transaction, por, "aprovar", id, note, now)
                return Decidida(id=id, status="duplicada", aprendido=learnt)
            vacancy = await self._import(transaction, vaga, por, now)
            note = {"status": "importada", "vaga": vacancy, "campos": [*correcao.campos]}
            await self._note(transaction, por, "aprovar", id, note, now)
        self._dicionario.esquecer()
        return Decidida(id=id, status="importada", vaga_id=vacancy, aprendido=learnt)

    async def rejeitar(self, id: str, motivo: str, *, por: str) -> Decidida:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            vaga = await self._take(transaction, id, por, motivo[:LONGEST], now)
            if not motivo.strip():
                raise MotivoAusente
            await transaction.run(self._queries.reject, id=id, motivo=f"rejeitada: {motivo}"[:LONGEST], now=now)
            await self._chaves.recusada(transaction, vaga, now, mesmo_texto=False)
            await self._note(transaction, por, "rejeitar", id, {"status": "rejeitada"}, now)
        return Decidida(id=id, status="rejeitada")

    async def _apply_correction(
        self, transaction: Transaction, vaga: dict[str, Any], correcao: Correcao, por: str, now: datetime
    ) -> Decidida:
        """Apply an author's correction that an operator approved, with the operator's own changes, to the vacancy from
        the earlier offer.
        """
        id = str(vaga["id"])
        vaga |= {name: said for name in CAMPOS if (said := getattr(correcao, name)) is not None}
        vacancy = await self._vagas.retificacoes.aprovar(transaction, vaga, por=por, now=now)
        note: dict[str, Json] = {"status": "duplicada", "vaga": vacancy, "campos": [*correcao.campos]}
        await self._note(transaction, por, "aprovar", id, note, now)
        return Decidida(id=id, status="duplicada", vaga_id=vacancy)

    async def _import(self, transaction: Transaction, vaga: Mapping[str, Any], por: str, now: datetime) -> str:
        """Write the vacancy that an operator approved and return its id. If another process has already written the
        vacancy, raise an error, which rolls the transaction back.
        """
        score = float(vaga["score_importacao"] or 0.0)
        parecer = Parecer(decisao=DecisaoDaImportacao.IMPORTAR, score=score, motivo="aprovada_por_pessoa")
        made = self._vagas.resultado(vaga, parecer, now, por=por)
        for query, values in made.statements:
            if not await transaction.run(query, **values):
                raise VagaDecidida(id=vaga["id"], status=DecisaoDaImportacao.IMPORTAR.value)
        return next(str(values["vaga_id"]) for _, values in made.statements if "vaga_id" in values)

    async def _note(
        self, transaction: Transaction, by: str, action: str, id: str, after: dict[str, Json], now: datetime
    ) -> None:
        """Record a review in the audit log, with ids and the names of changed fields. Neither the text of the message
        nor the operator's own words are recorded.
        """
        before: dict[str, Json] = {"status": "aguardando_revisao"}
        await self._audit.note(
            transaction, actor=by, action=f"vaga_grupo.{action}", subject=f"vaga_grupo:{id}", before=before, after=after,
            now=now,
        )  # fmt: skip

    async def _take(
        self, transaction: Transaction, id: str, por: str, notas: str | None, now: datetime
    ) -> dict[str, Any]:
        taken = await transaction.run(self._queries.decide, id=id, por=por, notas=notas, now=now)
        row = await transaction.one(self._queries.one, id=id)
        if row is None:
            raise VagaInexistente(id=id)
        if not taken:
            raise VagaDecidida(id=id, status=row["status"])
        return dict(row)

    async def _learn_from_correction(
        self, transaction: Transaction, vaga: dict[str, Any], how: Correcao, por: str, now: datetime
    ) -> str | None:
        """Apply the operator's correction to ``vaga`` in place. Return the hospital name that was stored as an alias,
        or None.
        """
        if how.hospital is not None:
            vaga["hospital_id"] = await self._dicionario.hospital_de_gestor(
                transaction, how.hospital, how.cidade, how.uf, vaga["regiao"], por=por, now=now
            )
        if how.especialidade is not None:
            vaga["especialidade_id"] = await self._dicionario.especialidade_de_gestor(
                transaction, how.especialidade, now=now
            )
        if how.periodo is not None:
            vaga["periodo_id"] = PERIODO_ID[how.periodo]
        if how.valor is not None:
            vaga["valor"], vaga["valor_tipo"] = how.valor, "fixo"
        plain = ("data", "hora_inicio", "hora_fim", "contato_nome", "contato_whatsapp")
        vaga |= {name: said for name in plain if (said := getattr(how, name)) is not None}
        vaga["hash_dedup"] = chave_de(vaga, vaga["hospital_id"], vaga["especialidade_id"], vaga["periodo_id"])
        written = (
            "hospital_id", "especialidade_id", "periodo_id", "data", "hora_inicio", "hora_fim", "valor", "valor_tipo",
            "contato_nome", "contato_whatsapp",
        )  # fmt: skip
        await transaction.run(
            self._queries.correct,
            id=vaga["id"],
            hash=vaga["hash_dedup"],
            now=now,
            **{name: vaga[name] for name in written},
        )
        return await self._teach(transaction, vaga, por, now)

    async def _teach(self, transaction: Transaction, vaga: Mapping[str, Any], por: str, now: datetime) -> str | None:
        """Store the hospital name from the message as an alias of the chosen hospital, unless the text cannot be a
        name.
        """
        raw = vaga["hospital_raw"]
        if vaga["hospital_id"] is None or not raw or not busca(raw):
            return None
        if not em_duvida(raw, await self._dicionario.nomes_em(transaction))[0]:
            return None
        await self._dicionario.ensinar_hospital(
            transaction, vaga["hospital_id"], raw, por=por, regiao=vaga["regiao"], now=now
        )
        return str(raw)

    async def _refuse_unfit(self, transaction: Transaction, vaga: Mapping[str, Any], now: datetime) -> None:
        needed = {"hospital": "hospital_id", "especialidade": "especialidade_id", "data": "data"}
        missing = [name for name, column in needed.items() if vaga[column] is None]
        if missing:
            raise VagaIncompleta(id=vaga["id"], falta=", ".join(missing))
        if vaga["data"] < now.astimezone(self._zone).date():
            raise VagaPassada(id=vaga["id"], data=vaga["data"])
        blocked = await transaction.one(self._queries.is_blocked, hospital=vaga["hospital_id"])
        if blocked is not None:
            raise HospitalBloqueado(id=vaga["id"], hospital=blocked["nome"])

    async def _source(self, transaction: Transaction, vaga: Mapping[str, Any], holder: str, now: datetime) -> None:
        source = {**vaga, "texto": str(vaga["texto"])[:LONGEST]}
        for query, values in self._vagas.fonte(source, holder, now).statements:
            await transaction.run(query, **values)


# Labelled messages made from decisions, in the format of the reader's labelled data.


def rotuladas(rows: Sequence[Row | Mapping[str, Any]], zone: ZoneInfo) -> list[dict[str, Any]]:
    """Convert reviewed vacancies to labelled messages, one label per message. ``rows`` must be ordered by message.

    If all vacancies in a message were rejected, the message is labelled as not being an offer. Its category is unknown,
    because the operator does not state one.
    """
    return [_rotulo([*own], zone) for _, own in groupby(rows, key=lambda row: row["mensagem_id"])]


def _rotulo(rows: Sequence[Row | Mapping[str, Any]], zone: ZoneInfo) -> dict[str, Any]:
    message = rows[0]
    approved = [_vaga(row) for row in rows if row["status"] != REJEITADA]
    return {
        "id": str(message["mensagem_id"]),
        "texto": message["texto"],
        "enviado_em": message["timestamp_msg"].astimezone(zone).isoformat(),
        "grupo": message["grupo_nome"],
        "regiao": message["regiao"],
        "eh_oferta": bool(approved),
        "categoria": "oferta" if approved else None,
        "vagas": approved,
    }


def _vaga(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    price = None if row["valor"] is None else float(row["valor"])
    return {
        "hospital": row["hospital_nome"],
        "cidade": row["cidade"],
        "uf": row["estado"],
        "especialidade": row["especialidade_nome"],
        "data": row["data"].isoformat(),
        "periodo": PERIODOS.get(row["periodo_id"]),
        "hora_inicio": row["hora_inicio"],
        "hora_fim": row["hora_fim"],
        "valor": int(price) if price is not None and price.is_integer() else price,
        "valor_tipo": row["valor_tipo"],
        "forma_pagamento": row["forma_pagamento_raw"],
        "contato_nome": row["contato_nome"],
        "contato_whatsapp": row["contato_whatsapp"],
    }
