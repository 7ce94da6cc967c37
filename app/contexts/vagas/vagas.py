"""The stages that process an extracted vacancy: normalisation, deduplication, import.

    names become ids ──▶ the first vacancy with a key is the principal ──▶ import, review or discard

Every stage is idempotent: new ids are derived from the input, and each deduplication key belongs to one extracted
vacancy. A retry after a crash therefore writes the same rows.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import md5
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.comum.ids import id_de
from app.contexts.leitura_grupos.api import Periodo, chave
from app.contexts.nomes.api import Achado, Dicionario, busca, onde
from app.contexts.vagas.importacao import PERIODO_ID, Candidata, DecisaoDaImportacao, Parecer, julgar
from app.contexts.vagas.limiares import Limiares
from app.contexts.vagas.retificacoes import MAQUINA, Retificacoes, mesmo_autor, mudancas
from app.contexts.vagas.transicoes import Transicoes
from batuta import Done, Skipped
from batuta.kernel import BatchLoader, Clock, Ids, dataclass
from batuta.pipelines import Next, StageOutcome
from batuta.queues import Lease, Writes
from batuta.sql import AsJson, Database, Query, Row, load_queries

# Another vacancy may claim a key that was claimed longer ago than this.
JANELA: Final = timedelta(hours=48)
CANARIO: Final = "canario"
SEM_VAGA: Final = "vaga_sumiu"
# Maximum number of characters of a message's text that are stored.
LONGEST: Final = 500
DECIDIDA: Final = ("duplicada", "importada", "descartada", "rejeitada")


@dataclass(frozen=True, slots=True)
class VagaQueries:
    vagas: Query
    normalised: Query
    take_keys: Query
    hold: Query
    add_source: Query
    count_sources: Query
    repeats: Query
    send_to_review: Query
    judged: Query
    import_: Query
    free_dropped: Query
    arrived: Query


class Vagas:
    def __init__(
        self, database: Database, dicionario: Dicionario, limiares: Limiares, ids: Ids, zone: ZoneInfo, clock: Clock
    ) -> None:
        self._database = database
        self.retificacoes = Retificacoes(database.dialect, ids)
        self._transicoes = Transicoes(database.dialect, ids)
        self._dicionario = dicionario
        self._limiares = limiares
        self._zone = zone
        self._clock = clock
        self.queries = load_queries(VagaQueries, "sql/vagas.sql", database.dialect)
        self._vagas = BatchLoader(self._of)
        self._keys = BatchLoader(self._take_keys)

    async def normalizacao(self, lease: Lease) -> StageOutcome:
        vaga = await self._vagas.get(lease.row["vaga_grupo_id"])
        if vaga is None:
            return Skipped(SEM_VAGA)
        now = self._clock.now()
        found, hospital_id, learnt = await self._hospital(vaga, now)
        especialidade_id, score, area = await self._especialidade(vaga, now)
        periodo = None if vaga["periodo_raw"] is None else PERIODO_ID[Periodo(vaga["periodo_raw"])]
        there = {
            "hospital": hospital_id,
            "especialidade": especialidade_id,
            "data": vaga["data"],
            "horario": vaga["hora_inicio"] or periodo,
            "valor": vaga["valor"] or vaga["valor_tipo"],
        }
        missing = [name for name, value in there.items() if value is None]
        is_enough = not {"hospital", "especialidade", "data"} & set(missing)
        written: dict[str, object] = {
            "id": vaga["id"],
            "hospital_id": hospital_id,
            "hospital_score": None if hospital_id is None else found.score,
            "criado": found.como == "novo",
            "especialidade_id": especialidade_id,
            "especialidade_score": score,
            "periodo_id": periodo,
            "faltando": AsJson(missing),
            "ok": is_enough,
            "data_valida": vaga["data"] is not None,
            "hash": chave_de(vaga, hospital_id, especialidade_id, periodo),
            "now": now,
        }
        return Next(learnt + area + Writes(((self.queries.normalised, written),)))

    async def deduplicacao(self, lease: Lease) -> StageOutcome:
        vaga = await self._vagas.get(lease.row["vaga_grupo_id"])
        if vaga is None or vaga["hash_dedup"] is None:
            return Skipped(SEM_VAGA) if vaga is None else Next()
        now = self._clock.now()
        if vaga["status"] in DECIDIDA:
            return Done(effect=Writes((self._arrival(vaga, now),)))
        holder = await self._keys.get((vaga["hash_dedup"], vaga["id"]))
        principal = vaga["id"] if holder is None else holder
        if principal == vaga["id"]:
            return Next(self.fonte(vaga, principal, now))
        return await self._add_source_of(vaga, principal, now)

    async def importacao(self, lease: Lease) -> StageOutcome:
        vaga = await self._vagas.get(lease.row["vaga_grupo_id"])
        if vaga is None:
            return Skipped(SEM_VAGA)
        now = self._clock.now()
        if vaga["dona"] not in (None, vaga["id"]):  # the item failed, and another extracted vacancy claimed its key
            return await self._add_source_of(vaga, vaga["dona"], now)
        parecer = julgar(candidata(vaga), now.astimezone(self._zone).date(), self._limiares)
        return Done(effect=self.resultado(vaga, parecer, now) + Writes((self._arrival(vaga, now),)))

    def resultado(
        self, vaga: Row | Mapping[str, Any], parecer: Parecer, now: datetime, *, por: str = MAQUINA
    ) -> Writes:
        """Return the statements that store a decision about an extracted vacancy. An import also stores the vacancy and
        the first line of its history. A discard also releases the deduplication key.
        """
        is_imported = parecer.decisao is DecisaoDaImportacao.IMPORTAR
        vaga_id = id_de("vacancy", vaga["id"])
        judged: dict[str, object] = {
            "id": vaga["id"],
            "status": parecer.decisao.value,
            "motivo": parecer.motivo,
            "score": parecer.score,
            "limiar_importacao": self._limiares.importacao,
            "limiar_revisao": self._limiares.revisao,
            "vaga_id": vaga_id if is_imported else None,
            "importada_em": now if is_imported else None,
            "now": now,
        }
        begun = self._transicoes.comecar(vaga_id, por=por, motivo="importada", now=now)
        made = ((self.queries.import_, _vacancy(vaga, vaga_id, now)), begun) if is_imported else ()
        is_dropped = parecer.decisao is DecisaoDaImportacao.DESCARTAR and vaga["hash_dedup"] is not None
        free = ((self.queries.free_dropped, {"hash": vaga["hash_dedup"], "id": vaga["id"]}),) if is_dropped else ()
        return Writes(((self.queries.judged, judged), *made, *free))

    async def _add_source_of(self, vaga: Row, principal: str, now: datetime) -> Done:
        """Store a duplicate's message as another source of the principal, which is the first extracted vacancy with the
        same deduplication key. If both have the same author, the message may correct the principal.
        """
        repeats = (self.queries.repeats, {"id": vaga["id"], "principal": principal, "now": now})
        review = (self.queries.send_to_review, {"id": vaga["id"], "now": now})
        kept = self.fonte(vaga, principal, now) + Writes((repeats, review, self._arrival(vaga, now)))
        first = await self._vagas.get(principal)
        if first is None or not mesmo_autor(vaga, first) or not mudancas(vaga, first):
            return Done(effect=kept)
        return Done(effect=self.retificacoes.efeito(vaga, principal, kept, now))

    async def _hospital(self, vaga: Row, now: datetime) -> tuple[Achado, str | None, Writes]:
        nome = vaga["hospital_raw"] or ""
        found = await self._dicionario.achar(nome, vaga["cidade"], vaga["estado"], vaga["regiao"])
        match found.como:
            case "alias" | "ambiguo":
                return found, found.id, self._dicionario.usado(found.id or "", nome)
            case "semelhante":
                return found, found.id, self._dicionario.semelhante(found.id or "", nome, found.score, now)
            case "novo":
                id, learnt = self._dicionario.novo_hospital(
                    nome, *onde(vaga["cidade"], vaga["estado"], vaga["regiao"]), found.score, now
                )
                return found, id, learnt
            case _:
                return found, None, Writes()

    async def _especialidade(self, vaga: Row, now: datetime) -> tuple[str | None, float | None, Writes]:
        nome = vaga["especialidade_raw"]
        if not nome:
            return None, None, Writes()
        known = (await self._dicionario.nomes()).especialidades.get(chave(nome))
        if known is not None:
            return known, 1.0, Writes()
        id, learnt = self._dicionario.nova_especialidade(nome, now)
        return id, 1.0, learnt

    def fonte(self, vaga: Row | Mapping[str, Any], principal: str, now: datetime) -> Writes:
        """Return the statements that add an extracted vacancy's message to the sources of the principal (the first
        extracted vacancy with the same key).
        """
        values = {
            "id": principal,
            "mensagem_id": vaga["mensagem_id"],
            "grupo_id": vaga["grupo_origem_id"],
            "contato_id": vaga["contato_responsavel_id"],
            "texto": vaga["texto"],
            "valor": vaga["valor"],
            "contato": vaga["contato_whatsapp"],
            "now": now,
        }
        hold = (self.queries.hold, {"id": principal, "now": now})
        return Writes((hold, (self.queries.add_source, values), (self.queries.count_sources, {"id": principal})))

    def _arrival(self, vaga: Row, now: datetime) -> tuple[Query, dict[str, object]]:
        return self.queries.arrived, {"id": vaga["mensagem_id"], "now": now}

    async def _of(self, ids: Sequence[str]) -> Mapping[str, Row]:
        return {row["id"]: row for row in await self._database.all(self.queries.vagas, ids=AsJson(list(ids)))}

    async def _take_keys(self, asked: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
        """Claim deduplication keys for extracted vacancies, and return the id of the vacancy that owns each key. If
        several vacancies in the batch have the same key, the first one gets it.
        """
        first: dict[str, str] = {}
        for hash, vaga in asked:
            first.setdefault(hash, vaga)
        now = self._clock.now()
        listed = AsJson([{"hash": hash, "vaga": vaga} for hash, vaga in sorted(first.items())])
        rows = await self._database.all(self.queries.take_keys, asked=listed, now=now, since=now - JANELA)
        holders = {row["hash"]: row["vaga"] for row in rows}
        return {(hash, vaga): holders[hash] for hash, vaga in asked}


def chave_de(
    vaga: Row | Mapping[str, Any], hospital_id: str | None, especialidade_id: str | None, periodo_id: int | None
) -> str | None:
    """Return a vacancy's deduplication key, or None if its speciality is unknown. Vacancies with the same place, day,
    period and speciality have the same key.

    A place without an id is compared by its name. If there is no place, the message text is part of the key, so that a
    forwarded copy has the same key.
    """
    if especialidade_id is None:
        return None
    named = f"?{busca(vaga['hospital_raw'])}" if vaga["hospital_raw"] else f"!{chave(vaga['texto'][:LONGEST])}"
    place = hospital_id or named
    parts = (place, vaga["data"] or "sem_data", periodo_id or "sem_periodo", especialidade_id, _canary_mark(vaga))
    return md5("|".join(str(part) for part in parts).encode(), usedforsecurity=False).hexdigest()


def _canary_mark(vaga: Row | Mapping[str, Any]) -> str:
    """Return a text that is part of the deduplication key, so that a canary message (a synthetic offer) never equals a
    real vacancy.
    """
    return CANARIO if vaga["grupo_tipo"] == CANARIO else ""


def candidata(vaga: Row) -> Candidata:
    return Candidata(
        hospital=vaga["hospital_match_score"] if vaga["hospital_id"] is not None else None,
        especialidade=vaga["especialidade_match_score"] if vaga["especialidade_id"] is not None else None,
        data=vaga["data"],
        confianca_data=vaga["confianca_data"],
        periodo=vaga["periodo_id"] is not None,
        valor=vaga["valor"],
        valor_tipo=vaga["valor_tipo"],
        leitura=vaga["confianca_geral"],
        bloqueado=vaga["bloqueado"],
    )


def _vacancy(vaga: Row | Mapping[str, Any], id: str, now: datetime) -> dict[str, object]:
    is_canary = vaga["grupo_tipo"] == CANARIO
    has_contact = vaga["contato_whatsapp"] or vaga["contato_nome"]
    return {
        "id": id,
        "hospital_id": vaga["hospital_id"],
        "especialidade_id": vaga["especialidade_id"],
        "periodo_id": vaga["periodo_id"],
        "data": vaga["data"],
        "forma_pagamento": vaga["forma_pagamento_raw"],
        "status": "cancelada" if is_canary else "aberta",
        "origem": CANARIO if is_canary else "grupo_whatsapp",
        "vaga_grupo_id": vaga["id"],
        "hash": vaga["hash_dedup"],
        # If the message names no contact, its author is the contact.
        "contato_nome": vaga["contato_nome"] if has_contact else vaga["autor_nome"],
        "contato_whatsapp": vaga["contato_whatsapp"] if has_contact else vaga["autor_telefone"],
        "deleted_at": now if is_canary else None,
        "now": now,
    }
