"""Read messages that only correct the price of an offer: "corrigindo: o valor é 2.000" (correction: the price is
2,000).

The correction applies to the offer to which the message replies, to the offer that it names, or else to the author's
latest offer. If the message contains nothing else, the correction applies immediately. Otherwise an operator decides.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import date
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.comum.ids import id_de
from app.contexts.leitura_grupos.api import (
    Categoria,
    Folha,
    Leitura,
    Periodo,
    Texto,
    Turno,
    Vocabulario,
    apagar,
    chave,
    folha,
    periodo_das_horas,
)
from app.contexts.nomes.api import Dicionario
from app.contexts.vagas.fechamentos import Fechamentos
from app.contexts.vagas.importacao import PERIODO_ID
from app.contexts.vagas.vagas import JANELA, LONGEST, Vagas
from batuta import Snooze
from batuta.kernel import Clock, dataclass
from batuta.queues import Writes
from batuta.sql import AsJson, Database, Query, Row, Transaction, load_queries

# Maximum number of characters of a message that is read as a price correction.
CURTA: Final = 300
# Maximum number of characters of a message that may contain nothing but a price correction.
SIMPLES: Final = 120
# Maximum number of offers that are read per author. If an author has more, older offers are missing, so the match is
# unclear.
MOST: Final = 200
ALHEIAS: Final = frozenset({Categoria.PROCURA, Categoria.PROPAGANDA, Categoria.SPAM})
_CUE: Final = re.compile(
    r"\b(?:corrig\w+|correcao|retific\w+|errata|atualiz\w+|reajust\w+|(?:novo|outro) valor"
    r"|valor (?:d[oa] (?:plantao|vaga) )?(?:novo|certo|correto|mudou|subiu|passou|aumentou|agora|ficou|sera)"
    r"|(?:mudou|mudaram|subiu|subiram|aumentou|aumentaram) o valor)\b"
)
# Words that a simple correction may have in addition to names and the price.
_WORDS: Final = """
corrigindo corrijo corrigido corrigida correcao retificando retifico retificado retificacao errata atualizando atualizado atualizada
atualizados atualizadas atualizacao reajuste reajustado reajustando certo correto mudou subiu aumentou passou ficou fica passa sera
agora hoje valor valores plantao plantoes vaga vagas o a os as e eh de do da dos das no na nos nas para pra pessoal gente colegas oi
ola bom boa dia dias tarde noite ops desculpa desculpem perdao atencao r rs reais cada obrigado obrigada
"""
_SAID: Final = frozenset(_WORDS.split())
_NEW: Final = re.compile(r"\b(?:novo valor|valor novo)\b")
# Matches differences, such as "aumentou 300", which are not prices.
_BY_SO_MUCH: Final = re.compile(r"\b(?:subi|aument|reajust)\w*\b(?!.{0,200}\b(?:para|pra)\b)")
# Matches negations, past prices, and payments for anything other than shifts.
_ELSE: Final = re.compile(
    r"\b(?:nao|nunca|nem|ontem|antes|era|recebi|receberam|pagou|pagaram|paguei|procuro|busco|alug\w+|consult\w+|curs\w+|inscric\w+"
    r"|vend\w+|taxa\w*|mensalidade\w*|anuidade\w*|estacionamento|almoco|jantar|bonus|ajuda de custo|uber|combustivel|planilha\w*)\b"
)
_EXCEPT: Final = re.compile(r"\b(?:menos|exceto|salvo|so|somente|apenas|fora|tirando|sem)\b")
_OF_OFFERS: Final = re.compile(r"\b(?:valor|valores|plantao|plantoes|vagas?)\b")


@dataclass(frozen=True, slots=True)
class Reajuste:
    """A corrected price. ``trecho`` is its position in the text. ``simples`` means that the message contains nothing
    but the correction.

    ``hospitais``, ``dias``, ``periodos`` and ``areas`` have the hospitals, days, periods and specialities that the
    message names.
    """

    valor: float
    trecho: tuple[int, int]
    hospitais: tuple[str, ...] = ()
    dias: tuple[date, ...] = ()
    periodos: tuple[int, ...] = ()
    areas: tuple[str, ...] = ()
    simples: bool = True

    @property
    def names_something(self) -> bool:
        return bool(self.hospitais or self.dias or self.periodos or self.areas)


@dataclass(frozen=True, slots=True)
class Reajustado:
    """The extracted vacancies to which a price correction applies. ``claro`` means that it certainly applies to all of
    them.
    """

    dito: Reajuste
    vagas: tuple[str, ...]
    claro: bool


@dataclass(frozen=True, slots=True)
class AdjustmentQueries:
    offers: Query
    add_repeat: Query


def reajuste(
    texto: str, hoje: date, vocabulario: Vocabulario, regiao: str | None, *, responde: bool = False
) -> Reajuste | None:
    """Read a price correction. Returns None if the text does not have exactly one price. ``responde`` means that the
    message is a reply.
    """
    words = chave(texto)
    if len(texto) > CURTA or "?" in texto or not _CUE.search(words) or _ELSE.search(words):
        return None
    marks = folha(Texto.de(texto, vocabulario.grafias), hoje, vocabulario, regiao)
    plain = [each for each in marks.precos if not (each.por_hora or each.soma or each.plantoes > 1)]
    if len(plain) != len(marks.precos) or len({each.reais for each in plain}) != 1:
        return None
    if not (simple := _is_simple(marks, words)) and not responde and not _OF_OFFERS.search(words):
        return None
    has_exception = _EXCEPT.search(words) is not None  # the named vacancies may be exceptions
    return Reajuste(
        valor=float(plain[0].reais),
        trecho=marks.texto.trecho(plain[0].inicio, plain[0].fim),
        hospitais=tuple(dict.fromkeys(each.nome for each in marks.lugares)),
        dias=() if has_exception else tuple(dict.fromkeys(day.data for each in marks.dias for day in each.dias)),
        periodos=()
        if has_exception
        else tuple(dict.fromkeys(PERIODO_ID[each] for each in map(_periodo, marks.turnos) if each)),
        areas=tuple(dict.fromkeys(each.nome for each in marks.areas if not each.fraca)),
        simples=simple,
    )


def _is_simple(marks: Folha, words: str) -> bool:
    """Return whether the text is a plain price correction: it has one price, known names, and otherwise only words that
    are usual in a correction.
    """
    if len(marks.texto.fonte) > SIMPLES or _BY_SO_MUCH.search(words):
        return False
    if not all(each.dias for each in marks.dias) or not all(map(_periodo, marks.turnos)):
        return False
    named = (*marks.precos, *marks.dias, *marks.turnos, *marks.lugares, *marks.areas)
    rest = _NEW.sub("valor", chave(apagar(marks.texto.plano, named)))
    return _SAID.issuperset(rest.split())


def _periodo(turno: Turno) -> Periodo | None:
    if turno.periodo is not None or turno.das is None or turno.ate is None:
        return turno.periodo
    return periodo_das_horas(turno.das, turno.ate)


def escolher(
    dito: Reajuste,
    lugares: Collection[str | None],
    areas: Collection[str | None],
    ditas: Sequence[Row],
    citada: str | None,
) -> Reajustado | None:
    """Return the offers to which a price correction applies, or None if there are none.

    ``ditas`` has the author's offers, newest first. ``lugares`` and ``areas`` have the ids of the places and
    specialities that the correction names. ``citada`` is the message to which it replies.
    """
    meant = [each for each in ditas if citada in (None, each["citavel"])]
    if dito.names_something:
        meant = [
            each for each in meant
            if (not dito.hospitais or each["hospital_id"] in lugares)
            and (not dito.areas or each["especialidade_id"] in areas)
            and (not dito.dias or each["data"] in dito.dias)
            and (not dito.periodos or each["periodo_id"] in dito.periodos)
        ]  # fmt: skip
    elif citada is None:
        meant = [each for each in meant if each["citavel"] == meant[0]["citavel"]]
    found = {each["id"]: each["valor"] for each in meant}
    if not found:
        return None
    return Reajustado(dito, tuple(found), claro=dito.simples and len(set(found.values())) == 1 and len(ditas) < MOST)


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
        self._queries = load_queries(AdjustmentQueries, "sql/reajustes.sql", database.dialect)

    async def de(self, mensagem: Row, leitura: Leitura) -> Reajustado | Snooze | None:
        """Read the price correction in a message. If an earlier message from its group has not been read yet, return a
        Snooze, which postpones the correction, because the earlier message may contain the offer.
        """
        if leitura.categoria in ALHEIAS or mensagem["contato_id"] is None:
            return None
        nomes, em, regiao = await self._dicionario.nomes(), mensagem["timestamp_msg"], mensagem["regiao"]
        today, answers = em.astimezone(self._zone).date(), mensagem["citada"] is not None
        dito = reajuste(mensagem["texto"], today, nomes.vocabulario, regiao, responde=answers)
        if dito is None:
            return None
        if (early := await self._fechamentos.cedo(mensagem)) is not None:
            return early
        offers = await self._database.all(
            self._queries.offers, grupo=mensagem["grupo_id"], autor=mensagem["contato_id"], mensagem=mensagem["id"], em=em,
            since=em - JANELA, limite=MOST,
        )  # fmt: skip
        places = {(await self._dicionario.achar(each, None, None, regiao)).id for each in dito.hospitais} - {None}
        areas = {nomes.especialidades.get(chave(each)) for each in dito.areas} - {None}
        found = escolher(dito, places, areas, offers, mensagem["citada"])
        return found if found is None or found.claro or not leitura.incompletas else None

    def feito(self, mensagem: Row, achado: Reajustado, junto: Writes) -> Callable[[Transaction], Awaitable[None]]:
        """Return the effect of a price correction: a function that runs the statements in ``junto``, records the
        message as another source of each vacancy, and changes the vacancy's price or asks an operator to decide.
        """

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
                    self._queries.add_repeat, id=vaga["id"], mensagem_id=mensagem["id"], grupo_id=mensagem["grupo_id"],
                    contato_id=mensagem["contato_id"], principal=principal, ordinal=n, valor=achado.dito.valor,
                    trechos=AsJson({"valor": list(achado.dito.trecho)}), now=now,
                )  # fmt: skip
                await self._vagas.retificacoes.dita(transaction, vaga, principal, now, claro=achado.claro)

        return effect
