"""A message that offers nothing, and says what an offer of its author pays: "corrigindo: o valor é 2.000".

It counts for the offer it answers, for the one it names, or for what its author told last. Where that is not clear, a person says.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.grupos.dicionario import Dicionario
from app.contexts.grupos.fechamentos import Fechamentos
from app.contexts.grupos.fila import id_de
from app.contexts.grupos.importacao import PERIODO_ID
from app.contexts.grupos.leitura import Periodo, Vocabulario
from app.contexts.grupos.leitura.folha import folha
from app.contexts.grupos.leitura.horas import periodo_das_horas
from app.contexts.grupos.leitura.marcas import Turno
from app.contexts.grupos.leitura.texto import Texto, chave
from app.contexts.grupos.vagas import JANELA, LONGEST, Vagas
from batuta.kernel.clock import Clock
from batuta.queue.outcome import Snooze, Writes
from batuta.stores.sql.database import AsJson, Database, Query, Row, Transaction
from batuta.stores.sql.queries import load

# Whoever writes more than that does more than correct a price.
CURTA: Final = 300
MOST: Final = 20
_CUE: Final = re.compile(
    r"\b(?:corrig\w+|correcao|retific\w+|errata|atualiz\w+|reajust\w+|(?:novo|outro) valor"
    r"|valor (?:novo|certo|correto|mudou|subiu|passou|aumentou|agora|ficou|sera)"
    r"|(?:mudou|mudaram|subiu|subiram|aumentou|aumentaram) o valor)\b"
)


@dataclass(frozen=True, slots=True)
class Reajuste:
    """``trecho``: where the price stands; the rest is what the message names besides."""

    valor: float
    trecho: tuple[int, int]
    hospitais: tuple[str, ...] = ()
    dias: tuple[date, ...] = ()
    periodos: tuple[int, ...] = ()

    @property
    def names_something(self) -> bool:
        return bool(self.hospitais or self.dias or self.periodos)


@dataclass(frozen=True, slots=True)
class Reajustado:
    """The vagas it is of. ``claro``: it is of all of them."""

    dito: Reajuste
    vagas: tuple[str, ...]
    claro: bool


@dataclass(frozen=True, slots=True)
class AdjustmentBook:
    told: Query
    add_repeat: Query


def reajuste(texto: str, hoje: date, vocabulario: Vocabulario, regiao: str | None) -> Reajuste | None:
    """None: it corrects no price, or does not say clearly which one holds."""
    if len(texto) > CURTA or "?" in texto or not _CUE.search(chave(texto)):
        return None
    marks = folha(Texto.de(texto, vocabulario.grafias), hoje, vocabulario, regiao)
    plain = [each for each in marks.precos if not (each.por_hora or each.soma or each.plantoes > 1)]
    if len(plain) != len(marks.precos) or len({each.reais for each in plain}) != 1:
        return None
    return Reajuste(
        valor=float(plain[0].reais),
        trecho=marks.texto.trecho(plain[0].inicio, plain[0].fim),
        hospitais=tuple(dict.fromkeys(each.nome for each in marks.lugares)),
        dias=tuple(dict.fromkeys(day.data for each in marks.dias for day in each.dias)),
        periodos=tuple(dict.fromkeys(PERIODO_ID[period] for each in marks.turnos if (period := _periodo(each)))),
    )


def _periodo(turno: Turno) -> Periodo | None:
    if turno.periodo is not None or turno.das is None or turno.ate is None:
        return turno.periodo
    return periodo_das_horas(turno.das, turno.ate)


def escolher(
    dito: Reajuste, lugares: Sequence[str | None], ditas: Sequence[Row], citada: str | None
) -> Reajustado | None:
    """``ditas``: what its author told, the newest first; ``lugares``: the hospitals it names; ``citada``: what it answers."""
    meant = [each for each in ditas if citada in (None, each["citavel"])]
    if dito.names_something:
        meant = [
            each for each in meant
            if (not lugares or each["hospital_id"] in lugares)
            and (not dito.dias or each["data"] in dito.dias)
            and (not dito.periodos or each["periodo_id"] in dito.periodos)
        ]  # fmt: skip
    elif citada is None:
        meant = [each for each in meant if each["citavel"] == meant[0]["citavel"]]
    found = {each["id"]: each["valor"] for each in meant}
    if not found:
        return None
    return Reajustado(dito, tuple(found)[:MOST], claro=len(set(found.values())) == 1)


class Reajustes:
    def __init__(
        self,
        database: Database,
        dicionario: Dicionario,
        fechamentos: Fechamentos,
        vagas: Vagas,
        zone: ZoneInfo,
        clock: Clock,
    ) -> None:
        self._database = database
        self._dicionario = dicionario
        self._fechamentos = fechamentos
        self._vagas = vagas
        self._zone = zone
        self._clock = clock
        self._book = load(AdjustmentBook, Path(__file__).parent / "reajustes.sql", database.dialect)

    async def de(self, mensagem: Row) -> Reajustado | Snooze | None:
        """What a message corrects. It waits while an earlier one of its group is on its way: that may be the offer."""
        nomes, em, regiao = await self._dicionario.nomes(), mensagem["timestamp_msg"], mensagem["regiao"]
        dito = reajuste(mensagem["texto"], em.astimezone(self._zone).date(), nomes.vocabulario, regiao)
        if dito is None or mensagem["contato_id"] is None:
            return None
        if (early := await self._fechamentos.cedo(mensagem)) is not None:
            return early
        told = await self._database.all(
            self._book.told, grupo=mensagem["grupo_id"], autor=mensagem["contato_id"], mensagem=mensagem["id"], em=em,
            since=em - JANELA,
        )  # fmt: skip
        places = [(await self._dicionario.achar(each, None, None, regiao)).id for each in dito.hospitais]
        return escolher(dito, places, told, mensagem["citada"])

    def feito(self, mensagem: Row, achado: Reajustado, junto: Writes) -> Callable[[Transaction], Awaitable[None]]:
        """What settles the message too: each vaga is told again by its author, at the price he says now."""

        async def effect(transaction: Transaction) -> None:
            now = self._clock.now()
            for query, values in junto.statements:
                await transaction.run(query, **values)
            for n, principal in enumerate(achado.vagas):
                vaga = {
                    "id": id_de("vaga", mensagem["id"], n), "mensagem_id": mensagem["id"], "autor_telefone": None,
                    "grupo_origem_id": mensagem["grupo_id"], "contato_responsavel_id": mensagem["contato_id"],
                    "valor": achado.dito.valor, "hora_inicio": None, "hora_fim": None, "contato_whatsapp": None,
                    "texto": mensagem["texto"][:LONGEST],
                }  # fmt: skip
                for query, values in self._vagas.fonte(vaga, principal, now).statements:
                    await transaction.run(query, **values)
                await transaction.run(
                    self._book.add_repeat, id=vaga["id"], mensagem_id=mensagem["id"], grupo_id=mensagem["grupo_id"],
                    contato_id=mensagem["contato_id"], principal=principal, ordinal=n, valor=achado.dito.valor,
                    trechos=AsJson({"valor": list(achado.dito.trecho)}), now=now,
                )  # fmt: skip
                await self._vagas.retificacoes.dita(transaction, vaga, principal, now, claro=achado.claro)

        return effect
