"""The stages that process a message: heuristic, classification, extraction. Each stage stores its result and the
threshold that it applied.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar
from zoneinfo import ZoneInfo

from app.contexts.comum.ids import id_de
from app.contexts.grupos.api import RELEITURA, Estagio, da_vaga
from app.contexts.leitura_grupos.api import Campo, Leitura, Nota, Trecho, VagaDita
from app.contexts.nomes.api import Dicionario
from app.contexts.vagas.api import NADA, Fechamentos, Limiares, Reajustado, Reajustes, alcanca
from batuta import Skipped, Snooze
from batuta.kernel import BatchLoader, Clock, dataclass
from batuta.pipelines import FanOut, Jump, Next, StageOutcome
from batuta.queues import ItemEffect, Lease, NewItem, Writes
from batuta.sql import AsJson, Database, Query, Row, load_queries

# Reasons for which the heuristic discards a message whatever its score.
FINAIS: Final = frozenset({"texto_vazio", "muito_curta", "keyword_negativa"})
DIAS: Final = ("segunda", "terça", "quarta", "quinta", "sexta", "sábado", "domingo")
# Maximum number of vacancies of one message. A longer list is implausible: the rest is dropped, and the message records
# that.
MOST_VAGAS: Final = 200
MOST_UNEXPLAINED: Final = 40
REMEMBERED: Final = 2_000
# Maximum number of characters that are read; people write less. Reading SHORT characters takes about 30 ms.
LONGEST_READ: Final = 64 * 1024
SHORT: Final = 2_000
T = TypeVar("T")
# Signal of the heuristic that a message says that a vacancy is taken. Such a message is read even if its score is low.
FECHADO: Final = "fechado"


@dataclass(frozen=True, slots=True)
class GroupMessageQueries:
    messages: Query
    scored: Query
    classified: Query
    extracted: Query
    offered: Query
    posted: Query
    add_vaga: Query
    known: Query
    read_again: Query


class Leitor(Protocol):
    """Reads a message with rules, and possibly with a language model. If the message cannot be read now, the result is
    a Snooze, which postpones the message.
    """

    async def __call__(self, texto: str, mensagem: Row) -> Leitura | Snooze: ...


def passa(nota: Nota, limiares: Limiares) -> tuple[bool, bool, str | None]:
    """Apply the heuristic to a message. Return whether the message looks like an offer, whether the next stage reads
    the message, and the reason if that stage does not. The next stage also reads notices that a vacancy is taken.
    """
    looks_so = nota.motivo not in FINAIS and alcanca(nota.score, limiares.heuristica)
    passed = looks_so or FECHADO in nota.sinais
    return looks_so, passed, None if passed else nota.motivo if nota.motivo in FINAIS else "score_baixo"


def ofertadas(leitura: Leitura) -> Sequence[VagaDita]:
    """Return the vacancies that the next stages process; if the message is not an offer, there are none. Complete
    vacancies may be imported automatically; operators review incomplete ones.
    """
    return (*leitura.vagas[:MOST_VAGAS], *leitura.incompletas) if leitura.eh_oferta else ()


async def _beside(read: Callable[..., T], texto: str, **facts: Any) -> T:
    """Read a group message's text. A long text is read in a thread, so that the event loop is not blocked."""
    if len(texto) <= SHORT:
        return read(texto, **facts)
    return await asyncio.to_thread(read, texto, **facts)


class LeitorPorRegras:
    """Reads messages with rules alone and never queries a language model. Results are cached: if the same text arrives
    again on the same day, in a group with the same name and region, it is not read again.
    """

    def __init__(self, dicionario: Dicionario, zone: ZoneInfo) -> None:
        self._dicionario = dicionario
        self._zone = zone
        self._read: OrderedDict[tuple[object, ...], Leitura] = OrderedDict()

    async def __call__(self, texto: str, mensagem: Row) -> Leitura:
        from app.contexts.leitura_grupos.api import ler  # takes 1.5 MB, which most processes never need

        nomes = await self._dicionario.nomes()
        sent: datetime = mensagem["timestamp_msg"]
        key = (texto, sent.astimezone(self._zone).date(), mensagem["grupo"], mensagem["regiao"], nomes.versao)
        if (known := self._read.get(key)) is not None:
            self._read.move_to_end(key)
            return known
        read = await _beside(
            ler,
            texto[:LONGEST_READ],
            enviado_em=sent,
            grupo=mensagem["grupo"],
            regiao=mensagem["regiao"],
            vocabulario=nomes.vocabulario,
        )
        self._read[key] = read
        if len(self._read) > REMEMBERED:
            self._read.popitem(last=False)
        return read


class Leituras:
    def __init__(
        self,
        database: Database,
        dicionario: Dicionario,
        leitor: Leitor,
        fechamentos: Fechamentos,
        reajustes: Reajustes,
        limiares: Limiares,
        clock: Clock,
    ) -> None:
        self._database = database
        self._fechamentos = fechamentos
        self._reajustes = reajustes
        self._dicionario = dicionario
        self._leitor = leitor
        self._limiares = limiares
        self._clock = clock
        self._queries = load_queries(GroupMessageQueries, "sql/mensagens.sql", database.dialect)
        self._messages = BatchLoader(self._of)

    async def heuristica(self, lease: Lease) -> StageOutcome:
        from app.contexts.leitura_grupos.api import heuristica

        mensagem = await self._messages.get(lease.row["mensagem_id"])
        if mensagem is None or not mensagem["texto"].strip():
            return Skipped("sem_texto")
        began = self._clock.monotonic()
        names = await self._dicionario.nomes()
        nota = await _beside(heuristica, mensagem["texto"][:LONGEST_READ], vocabulario=names.vocabulario)
        limits = self._limiares
        looks_so, passed, why = passa(nota, limits)
        seen = {
            "id": mensagem["id"],
            "status": "heuristica_passou" if passed else "heuristica_rejeitou",
            "passou": looks_so,
            "score": nota.score,
            "sinais": AsJson(list(nota.sinais)),
            "motivo": why,
            "limiar": limits.heuristica,
            "ms": self._milliseconds_since(began),
            "processado_em": None if passed else self._clock.now(),
        }
        kept = Writes(((self._queries.scored, seen),))
        if not passed:
            return Skipped("heuristica_baixa", kept)
        return Jump(Estagio.EXTRACAO, kept) if looks_so and alcanca(nota.score, limits.alta) else Next(kept)

    async def classificacao(self, lease: Lease) -> StageOutcome:
        mensagem = await self._messages.get(lease.row["mensagem_id"])
        if mensagem is None:
            return Skipped("sem_texto")
        began = self._clock.monotonic()
        leitura = await self._leitor(mensagem["texto"], mensagem)
        if isinstance(leitura, Snooze):
            return leitura
        is_sure = alcanca(leitura.confianca, self._limiares.classificacao)
        is_offer = leitura.eh_oferta and is_sure
        seen = {
            **self._judgement(mensagem, leitura, is_offer=is_offer),
            "status": "classificada_oferta" if is_offer else "classificada_nao_oferta",
            "limiar": self._limiares.classificacao,
            "ms": self._milliseconds_since(began),
        }
        kept = Writes(((self._queries.classified, seen),))
        if is_offer:
            return Next(kept)
        changed = await self._muda(mensagem, leitura)
        if isinstance(changed, Snooze):
            return changed
        effect = await self._com_fechamento(mensagem, leitura, kept, changed)
        return effect if isinstance(effect, Snooze) else Skipped("nao_eh_oferta", effect)

    async def extracao(self, lease: Lease) -> StageOutcome:
        mensagem = await self._messages.get(lease.row["mensagem_id"])
        if mensagem is None:
            return Skipped("sem_texto")
        began = self._clock.monotonic()
        leitura = await self._leitor(mensagem["texto"], mensagem)
        if isinstance(leitura, Snooze):
            return leitura
        if lease.row["chave"].startswith(RELEITURA):
            return await self._read_again(mensagem, leitura)
        changed = await self._muda(mensagem, leitura)
        if isinstance(changed, Snooze):
            return changed
        vagas = ofertadas(leitura) if changed is None else ()
        status = "extraida" if vagas else "descartada" if leitura.eh_oferta else "classificada_nao_oferta"
        seen = {
            **self._judgement(mensagem, leitura, is_offer=leitura.eh_oferta),
            "status": status,
            "vagas": len(vagas),
            "ms": self._milliseconds_since(began),
        }
        if not vagas:
            why = "extracao_falhou" if leitura.eh_oferta and changed is None else "nao_eh_oferta"
            gone = {"motivo": why, "processado_em": self._clock.now()}
            kept = Writes(((self._queries.extracted, {**seen, **gone}),))
            effect = await self._com_fechamento(mensagem, leitura, kept, changed)
            return effect if isinstance(effect, Snooze) else Skipped(why, effect)
        seen["motivo"] = "vagas_cortadas" if len(leitura.vagas) > MOST_VAGAS else None
        extracted = (self._queries.extracted, {**seen, "processado_em": None})
        items, kept = self._fan_out(mensagem, vagas, extracted, leitura.inexplicadas)
        effect = await self._com_fechamento(mensagem, leitura, kept)
        return effect if isinstance(effect, Snooze) else FanOut(items, effect)

    async def _read_again(self, mensagem: Row, leitura: Leitura) -> StageOutcome:
        """Add the vacancies that an earlier reading of the message did not find. Closing notices and price changes in
        the message are ignored, because they were already applied.
        """
        known = await self._database.all(self._queries.known, id=mensagem["id"])
        there = {(row["hospital_raw"], row["especialidade_raw"], row["data"], row["periodo_raw"]) for row in known}
        new = [vaga for vaga in ofertadas(leitura) if _identity(_escrita(vaga)) not in there]
        if not new:
            return Skipped("sem_vaga_nova")
        again = (self._queries.read_again, {"id": mensagem["id"], "vagas": len(new)})
        first = 1 + max((row["ordinal"] for row in known), default=-1)
        items, kept = self._fan_out(mensagem, new, again, leitura.inexplicadas, first=first)
        return FanOut(items, kept)

    async def _muda(self, mensagem: Row, leitura: Leitura) -> Reajustado | Snooze | None:
        """Return the price change that a message announces, or None if it announces none. A message that contains a
        complete vacancy or a closing notice is not read as a price change. If an earlier message must be read first,
        return a Snooze, which postpones this message.
        """
        return None if leitura.vagas or leitura.fechamento is not None else await self._reajustes.de(mensagem, leitura)

    async def _com_fechamento(
        self, mensagem: Row, leitura: Leitura, kept: Writes, changed: Reajustado | None = None
    ) -> ItemEffect | Snooze:
        """Return the database changes that store the result of reading a message, and close or change the vacancies
        that the message names. If an earlier message must be read first, return a Snooze, which postpones this message.
        """
        if changed is not None:
            return self._reajustes.feito(mensagem, changed, kept)
        dito = leitura.fechamento
        decisao = await self._fechamentos.de(mensagem, dito)
        if isinstance(decisao, Snooze) or dito is None or decisao == NADA:
            return decisao if isinstance(decisao, Snooze) else kept
        return self._fechamentos.feito(mensagem, dito, decisao, kept)

    def _fan_out(
        self,
        mensagem: Row,
        vagas: Sequence[VagaDita],
        extracted: tuple[Query, dict[str, object]],
        unexplained: Sequence[Trecho],
        *,
        first: int = 0,
    ) -> tuple[tuple[NewItem, ...], Writes]:
        """Return one new item per vacancy, and the statements that store the vacancies.

        The statements lock author, message and group in the same order as ``Grupos.ingerir``, which prevents deadlocks.
        """
        now, ids = self._clock.now(), [id_de("vaga", mensagem["id"], first + n) for n in range(len(vagas))]
        rows = [
            (
                self._queries.add_vaga,
                {**_escrita(vaga, unexplained), **_da_mensagem(mensagem), "id": id, "ordinal": n, "now": now},
            )
            for n, (id, vaga) in enumerate(zip(ids, vagas, strict=True), start=first)
        ]
        posted = (self._queries.posted, {"id": mensagem["contato_id"], "vagas": len(vagas)})
        author = () if mensagem["contato_id"] is None else (posted,)
        offered = () if first else ((self._queries.offered, {"id": mensagem["grupo_id"]}),)
        return tuple(da_vaga(mensagem["id"], id) for id in ids), Writes((*author, extracted, *rows, *offered))

    def _judgement(self, mensagem: Row, leitura: Leitura, *, is_offer: bool) -> dict[str, object]:
        why = None if is_offer else "confianca_baixa" if leitura.eh_oferta else "nao_eh_oferta"
        return {
            "id": mensagem["id"],
            "eh_oferta": is_offer,
            "confianca": leitura.confianca,
            "categoria": leitura.categoria.value,
            "porque": leitura.motivo[:200],
            "motivo": why,
            "processado_em": None if is_offer else self._clock.now(),
        }

    def _milliseconds_since(self, began: float) -> float:
        return round((self._clock.monotonic() - began) * 1000, 3)

    async def _of(self, ids: Sequence[str]) -> Mapping[str, Row]:
        return {row["id"]: row for row in await self._database.all(self._queries.messages, ids=AsJson(list(ids)))}


def _da_mensagem(mensagem: Row) -> dict[str, object]:
    return {
        "mensagem_id": mensagem["id"],
        "grupo_id": mensagem["grupo_id"],
        "contato_id": mensagem["contato_id"],
    }


def _identity(written: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(written[name] for name in ("hospital", "especialidade", "data", "periodo"))


def _escrita(vaga: VagaDita, unexplained: Sequence[Trecho] = ()) -> dict[str, object]:
    """Return the columns to store for a vacancy. The columns include the positions of each field in the text, and the
    positions of the words that no rule matched.
    """
    fields: dict[str, Campo[Any] | None] = {
        name: getattr(vaga, name)
        for name in (
            "hospital", "especialidade", "data", "periodo", "cidade", "uf", "hora_inicio", "hora_fim", "valor", "valor_tipo",
            "forma_pagamento", "contato_nome", "contato_whatsapp",
        )
    }  # fmt: skip
    said = {name: None if field is None else field.valor for name, field in fields.items()}
    return {
        **said,
        "periodo": None if vaga.periodo is None else vaga.periodo.valor.value,
        "dia_semana": None if vaga.data is None else DIAS[vaga.data.valor.weekday()],
        "hora_inicio": None if vaga.hora_inicio is None else f"{vaga.hora_inicio.valor:%H:%M}",
        "hora_fim": None if vaga.hora_fim is None else f"{vaga.hora_fim.valor:%H:%M}",
        "valor": None if vaga.valor is None else float(vaga.valor.valor),
        "valor_tipo": None if vaga.valor_tipo is None else vaga.valor_tipo.valor.value,
        "trechos": AsJson(
            {name: list(field.trecho) for name, field in fields.items() if field and field.trecho}
            | {"inexplicado": [list(each) for each in unexplained[:MOST_UNEXPLAINED]]}
        ),
        "confianca": vaga.confianca,
        "confianca_hospital": None if vaga.hospital is None else vaga.hospital.confianca,
        "confianca_especialidade": vaga.especialidade.confianca,
        "confianca_data": None if vaga.data is None else vaga.data.confianca,
        "confianca_valor": None if vaga.valor is None else vaga.valor.confianca,
    }
