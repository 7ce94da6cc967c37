"""Assemble the blocks of a message into vacancies. A block is a line, or a part of a line, whose recognised fields
belong together. A field that a block lacks is taken from a heading above the block or a note after it.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import islice, product
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from app.contexts.leitura_grupos.marcas.feriados import feriados
from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.horas import periodo_das_horas, periodo_do_inicio
from app.contexts.leitura_grupos.marcas.marca import Area, Dia, Lugar, Marca, Turno, entre, linha_de
from app.contexts.leitura_grupos.marcas.pagamentos import forma
from app.contexts.leitura_grupos.montagem.areas_da_vaga import alternativas, fortes, setor_da_linha
from app.contexts.leitura_grupos.montagem.condicoes_de_preco import (
    Alvo,
    Regra,
    horas_do,
    periodo_de,
    por_plantao,
    regras,
    rivais,
    servem,
)
from app.contexts.leitura_grupos.montagem.contato_da_vaga import Pessoas
from app.contexts.leitura_grupos.montagem.linhas import Bloco, blocos
from app.contexts.leitura_grupos.montagem.ocupadas import Fechadas
from app.contexts.leitura_grupos.montagem.onde import Onde, Planta
from app.contexts.leitura_grupos.montagem.ordem import em_ordem, em_paralelo, por_area, repetidos
from app.contexts.leitura_grupos.texto.texto import chave, contem
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario, palavras
from app.contexts.leitura_grupos.tipos import Campo, Derivacao, Forma, Periodo, VagaDita, VagaLida, ValorTipo
from batuta.kernel import dataclass

GERAL = "Clínica Médica"
# Value of ``Derivacao.preco`` for a vacancy without a price.
SEM_PRECO = 5
# Specialities that the name of a place implies.
_PELO_NOME = (
    (re.compile(r"(?:ubs|usf|psf|esf|ubsf)\b"), "medicina de família e comunidade"),
    (re.compile(r"\A(?!.*\bmatern).*\b(?:infantil|criancas?|pediatrico)\b"), "pediatria"),
    (re.compile(r"\A.*\b(?:samu|remocoes|remocao|ambulancias?|resgates?|uti movel)\b"), "medicina de emergência"),
)
MAIS = 1000
# Largest number of vacancies without a place or a day per message, because an operator reads each of them.
MAIS_INCOMPLETAS = 20
_T = TypeVar("_T")
_Nomeado = TypeVar("_Nomeado", Area, Lugar)
_Valor: TypeAlias = tuple[Campo[Decimal] | None, Campo[ValorTipo] | None]
_LEFT = re.compile(
    r"\b(?:rest(?:a|am|ou|aram)|sobr(?:a|am|ou|aram)|falta(?:m|ndo)?)(?: agora)? (?:so|apenas|somente)\b"
    r"|\bso (?:rest|sobr|falt|fic)[a-z]{1,4}\b"
)
# Parts of words. A text that contains none of them cannot match ``_LEFT`` and is not searched.
_LEAVES = ("rest", "sobr", "falt", "so fic")
_EVERYWHERE = re.compile(
    r"[ ,:*_-]{1,3}(?:(?:n[oa]s|para?|pra|p/|em) )?(?:(?:os|as) )?(?:dois|duas|tres|ambos|ambas|tod[oa]s)\b"
)
_SAME = re.compile(r"[^\n]{0,25}\b(?:tbm|tb|tambem|idem|mesm[oa]s? (?:horarios?|turnos?|esquema|coisa))\b")


@dataclass(frozen=True, slots=True)
class Montagem:
    """The vacancies that were assembled from a message. ``abertas`` has the open vacancies. ``fechadas`` and
    ``passadas`` count the mentions of taken and of past shifts. ``incompletas`` is computed on first access.
    """

    abertas: tuple[VagaLida, ...]
    fechadas: int
    passadas: int
    incompletas: Iterator[VagaDita]


def montar(folha: Folha, vocabulario: Vocabulario) -> Montagem:
    return _Montador(folha, vocabulario).montar()


@dataclass(slots=True, unsafe_hash=True)
class _Turno:
    """The shift of a vacancy: its period and the hours as written."""

    periodo: Periodo
    das: time | None
    ate: time | None
    horas: int
    marca: Turno | None


class _Montador:
    def __init__(self, folha: Folha, vocabulario: Vocabulario) -> None:
        self._folha, self._vocabulario = folha, vocabulario
        self._regras, days = regras(folha)
        self._blocos = blocos(folha, days, self._regras)
        loose = [turno for each in self._blocos for turno in _turnos_sem_dia(each)]
        self._horas = {periodo_de(each): each for each in reversed(loose) if each.das and periodo_de(each)}
        self._duracao = _duracao(folha.turnos)
        self._pessoas = Pessoas(folha)
        self._forma = forma(folha.pagamentos)
        self._fins: list[int] | None = None
        self._tem_dias = any(each.dias is not None for each in self._blocos)
        if self._tem_dias:
            self._ligar_blocos()

    def _ligar_blocos(self) -> None:
        """Determine which places, specialities, shifts and prices apply to which block of the message. A message
        without days has no vacancies, so this step is skipped for it.
        """
        em_ordem(self._folha, self._regras, self._blocos)
        planta = Planta(self._blocos)
        self._onde_lugares = Onde(planta, attrgetter("lugares"))
        self._onde_areas = Onde(planta, fortes)
        self._onde_turnos = Onde(planta, _turnos_sem_dia)
        self._onde_regras = Onde(planta, attrgetter("regras"))
        self._fechamentos = Fechadas(self._folha, self._blocos)
        self._fechados = self._fechamentos.blocos()
        self._de_todos = self._area_de_todos()
        self._tomados = self._quais_tomados()

    def montar(self) -> Montagem:
        if not self._tem_dias:
            return Montagem((), 0, 0, islice(self._sem_dia(), MAIS_INCOMPLETAS))
        found: dict[tuple[str, date, Periodo, str], VagaLida] = {}
        closed = passed = 0
        left = self._restantes()
        for place, block in enumerate(self._blocos):
            if block.dias is None:
                continue
            if left and place not in left:
                closed += 1
                continue
            if place in self._fechados:
                closed += 1
                continue
            passed += block.dias.passou
            for each in islice(self._vagas(place, block), MAIS - len(found)):
                key = (each.hospital.valor, each.data.valor, each.periodo.valor, each.especialidade.valor)
                found.setdefault(key, each)
        vagas = tuple(found.values())
        lacking = self._ao_lado(vagas) if found else iter(()) if closed or passed else self._incompletas()
        return Montagem(vagas, closed, passed, islice(lacking, MAIS_INCOMPLETAS))

    def _restantes(self) -> frozenset[int]:
        """Return the indexes of the blocks on the line that says which of the shifts above it are still open: "restam
        só: 25 SD e 31 SN".
        """
        plano = self._folha.texto.plano
        said = _LEFT.search(plano) if contem(plano, _LEAVES) else None
        if said is None:
            return frozenset()
        dated = [place for place, each in enumerate(self._blocos) if each.dias is not None]
        line = linha_de(self._folha.texto.plano, said.end())
        left = [place for place in dated if said.end() <= self._blocos[place].dias.inicio < line[1]]  # type: ignore[union-attr]
        return frozenset(left) if left and left[0] != dated[0] else frozenset()

    def _vagas(self, place: int, block: Bloco) -> Iterator[VagaLida]:
        assert block.dias is not None
        places, days = self._lugares(place), self._dias(block)
        areas: Sequence[Area | None] = self._areas(place) or (None,)
        combined = self._combinadas(block, places, days, areas, self._turnos(place, block))
        for where, day, area, shift in combined:
            if day.data.day in self._fechamentos.numeros:
                continue
            if not self._tomados or not self._tomados & {
                (where.nome, day.data, None),
                (where.nome, day.data, shift.periodo),
            }:
                yield self._vaga(place, block, where, area, day, shift, len(combined))

    def _combinadas(
        self,
        block: Bloco,
        places: Sequence[Lugar],
        days: Sequence[Dia],
        areas: Sequence[Area | None],
        shifts: Sequence[_Turno],
    ) -> Sequence[tuple[Lugar, Dia, Area | None, _Turno]]:
        """Combine the places, days, specialities and shifts of a block of the message: in every combination, or item by
        item in order if the line says "respectivamente" (respectively).
        """
        lists: tuple[Sequence[Any], ...] = (places, days, areas, repetidos(self._folha, block, days, shifts))
        size = em_paralelo(self._folha, block, lists)
        if size:
            rows = (
                product(*(each[at : at + 1] if len(each) == size else each for each in lists)) for at in range(size)
            )
            return [each for row in rows for each in islice(row, MAIS)]
        pairs = self._pares(block, areas, shifts)
        return [(where, day, *pair) for where, day, pair in islice(product(places, days, pairs), MAIS)]

    def _pares(
        self, block: Bloco, areas: Sequence[Area | None], shifts: Sequence[_Turno]
    ) -> Sequence[tuple[Area | None, _Turno]]:
        """Combine each speciality with each shift, unless the text pairs them.

        Examples of pairs: "clínica SN e pediatria SD", "SN clínica e SD pediatria".
        """
        if len(shifts) < 2:
            return list(product(areas, shifts))
        marks: list[Area | Turno] = sorted((*fortes(block), *block.turnos), key=lambda mark: mark.inicio)
        if (listed := por_area(marks, shifts)) is not None:
            return listed
        if len(marks) != 2 * len(shifts):
            return list(product(areas, shifts))
        by_mark = {id(each.marca): each for each in shifts}
        pairs: list[tuple[Area | None, _Turno]] = []
        first = type(marks[0])
        for one, two in zip(marks[::2], marks[1::2], strict=True):
            area, shift = (one, two) if isinstance(one, Area) else (two, one)
            if (
                type(one) is not first
                or not isinstance(area, Area)
                or id(shift) not in by_mark
                or two.inicio - one.fim > 4
            ):
                return list(product(areas, shifts))
            pairs.append((area, by_mark[id(shift)]))
        return pairs

    def _dias(self, block: Bloco) -> tuple[Dia, ...]:
        assert block.dias is not None
        return block.dias.dias

    # Fields that a block lacks.

    def _lugares(self, place: int) -> Sequence[Lugar]:
        found = self._onde_lugares.de(place, segue=True)
        return _uma_vez(found)

    def _area_de_todos(self) -> Sequence[Area]:
        """If a message names only one speciality and says that it applies everywhere ("pediatria nas duas"), return
        this speciality.
        """
        strong = [each for each in self._folha.areas[:50] if not each.fraca]
        if len({each.nome for each in strong}) != 1:
            return ()
        return strong[:1] if _EVERYWHERE.match(self._folha.texto.plano, strong[-1].fim) else ()

    def _areas(self, place: int) -> Sequence[Area]:
        if self._de_todos:
            return self._de_todos
        weak = [each for each in self._blocos[place].areas if each.fraca]
        own = fortes(self._blocos[place])
        alone = weak and not own and not self._onde_areas.soltos
        sector = setor_da_linha(self._folha, self._blocos, place, self._onde_areas.bloco(place))
        found = sector or (weak[:1] if alone else ()) or self._setor(place) or self._areas_perto(place) or weak[:1]
        return _uma_vez(alternativas(found, self._folha))

    def _areas_perto(self, place: int) -> Sequence[Area]:
        """Return the specialities that apply to a block of the message. A speciality that belongs to a shift at another
        place does not apply. A line such as "PS" ends the effect of the heading "UTI" above it.
        """
        at = self._onde_areas.bloco(place)
        if at is None:
            return ()
        if at < place and (weak := self._subtitulo_fraco(at, place)):
            return weak
        if at != place and (self._blocos[at].dias is not None or at > place):
            own = self._lugares(place)
            other = self._lugares(at) if self._blocos[at].dias is not None else self._blocos[at].lugares
            if other and {each.nome for each in own} != {each.nome for each in other}:
                return ()
            if at > place and self._ha_outro_lugar(place, at, own):
                return ()
        return fortes(self._blocos[at])

    def _ha_outro_lugar(self, place: int, below: int, own: Sequence[Lugar]) -> bool:
        """Return whether the block ``below`` is part of the heading of another place, and days follow it directly."""
        named = {each.nome for each in own}
        headings = [each for each in self._blocos[place + 1 : below + 1] if each.lugares]
        follows = self._blocos[below + 1 : below + 2]
        is_other = bool(headings) and any(each.nome not in named for each in headings[-1].lugares)
        return is_other and bool(follows) and follows[0].dias is not None

    def _subtitulo_fraco(self, above: int, place: int) -> Sequence[Area]:
        """Return the word that stands alone on a line between a heading and a block of the message and fits any doctor,
        such as "plantonista" (doctor on shift).
        """
        for block in reversed(self._blocos[above + 1 : place]):
            alone = not (block.lugares or block.regras or block.turnos or block.dias)
            if block.areas and alone and all(each.fraca for each in block.areas):
                return block.areas[:1]
        return ()

    def _setor(self, place: int) -> Sequence[Area]:
        """Return the hospital sector that the heading above a day names, such as "PS (porta)". Only a sector that
        implies no speciality is returned.
        """
        heading = self._onde_lugares.bloco(place, segue=True)
        if heading is None or heading >= place or self._blocos[heading].dias is not None or self._blocos[place].areas:
            return ()
        said = self._blocos[heading].areas
        between = self._onde_areas.bloco(place)
        is_nearest = between is None or between <= heading
        return said[:1] if said and is_nearest and all(each.fraca for each in said) else ()

    def _turnos(self, place: int, block: Bloco) -> list[_Turno]:
        closed = self._fechamentos.turnos(block)
        own = [each for each in block.turnos if id(each) not in closed]
        if block.turnos and not any(each.periodo or each.das for each in own):
            own = [*own, *self._onde_turnos.de(place)] if not closed else own
        marks = own or ([] if block.turnos else self._onde_turnos.de(place) or self._os_mesmos(place, block))
        if not marks and block.turnos:
            return []
        return self._distintos(marks)

    def _os_mesmos(self, place: int, block: Bloco) -> Sequence[Turno]:
        """Return the previous block's shifts if a block refers to them: "ou então dia 11, no mesmo horário"."""
        assert block.dias is not None
        end = block.dias.fim
        if place == 0 or _SAME.match(self._folha.texto.plano, end, end + 40) is None:
            return ()
        return self._blocos[place - 1].turnos

    def _distintos(self, marks: Sequence[Turno]) -> list[_Turno]:
        """Return one shift for each period. A mention of a period with hours replaces a mention without hours."""
        length = next((each.horas for each in marks if each.horas), None) or self._duracao
        shifts = [_lido(each, length) for each in marks if each.periodo or each.das]
        found: dict[Periodo, _Turno] = {}
        for each in shifts:
            if each.periodo not in found or (found[each.periodo].das is None and each.das is not None):
                found[each.periodo] = each
        if Periodo.H24 in found and "divid" in self._folha.texto.plano:
            found = {Periodo.H24: found[Periodo.H24]}
        if not found:
            first = next(iter(marks), None)
            return [_Turno(Periodo.DIURNO, None, None, length or 12, first)]
        return [each if each.das else self._com_horas(each) for each in found.values()]

    def _com_horas(self, shift: _Turno) -> _Turno:
        """Add hours to a shift that has only a period, if a separate line states the hours for this period: "SD 7-19h /
        SN 19-7h".
        """
        mark = self._horas.get(shift.periodo)
        if mark is None:
            return shift
        return _Turno(shift.periodo, mark.das, mark.ate, horas_do(mark, shift.periodo), mark)

    # Closed vacancies.

    def _quais_tomados(self) -> frozenset[tuple[str, date, Periodo | None]]:
        """Return the place, day and period of each shift that another line in the message declares taken: "04, 06 e 08
        SD; obs: dia 04 preenchido".
        """
        return frozenset(
            (where.nome, day.data, period)
            for place in self._fechados
            if any(self._fechamentos.fecha_o_dia(mark) for mark in self._blocos[place].fechados)
            for where in self._lugares(place)
            for day in self._dias(self._blocos[place])
            for period in self._periodos(place)
        )

    def _periodos(self, place: int) -> Sequence[Periodo | None]:
        """Return the periods of the shifts in a block of the message. None stands for the whole day."""
        if self._blocos[place].turnos:
            return [each.periodo for each in self._distintos(self._blocos[place].turnos)]
        above = self._onde_turnos.bloco(place)
        is_heading = above is not None and above < place and self._blocos[above].dias is None
        return [each.periodo for each in self._distintos(self._onde_turnos.de(place))] if is_heading else (None,)

    # A single vacancy.

    def _vaga(
        self, place: int, block: Bloco, where: Lugar, area: Area | None, day: Dia, shift: _Turno, total: int
    ) -> VagaLida:
        holiday = self._feriado(day.data, block)
        speciality = self._padrao(where) if area is None or self._is_weak(area) else area.nome
        target = Alvo(
            where.nome, where.cidade, speciality, self._dia_do_preco(day, shift), shift.periodo, shift.horas, holiday
        )
        price, kind, scope, rivals = self._valor(place, block, target)
        name, phone = self._pessoas.de(where, block)
        town = where.cidade_em or (where.inicio, where.fim)
        pays = self._folha.pagamentos
        return VagaLida(
            hospital=self._campo(where.nome, where, where.confianca),
            especialidade=self._campo(speciality, area, 1.0 if area is not None and not area.fraca else 0.8),
            data=self._campo(day.data, day),
            periodo=self._campo(shift.periodo, shift.marca, 1.0 if shift.marca is not None else 0.6),
            cidade=None
            if where.cidade is None
            else Campo(where.cidade, self._folha.texto.trecho(*town), where.confianca),
            uf=None if where.uf is None else Campo(where.uf, self._folha.texto.trecho(*town), where.confianca),
            hora_inicio=None if shift.das is None else self._campo(shift.das, shift.marca),
            hora_fim=None if shift.ate is None else self._campo(shift.ate, shift.marca),
            valor=price,
            valor_tipo=kind,
            forma_pagamento=None if self._forma is None else self._campo(self._forma, pays[0]),
            contato_nome=name,
            contato_whatsapp=phone,
            derivacao=self._derivacao(block, (where, area, shift.marca), day, total, (scope, rivals)),
        )

    def _dia_do_preco(self, day: Dia, shift: _Turno) -> date:
        """Return the day whose price applies: the Saturday, if the shift is a Friday night that counts as weekend."""
        is_weekend = self._folha.sexta_no_fds and day.data.weekday() == 4 and shift.periodo is Periodo.NOTURNO
        return day.data + timedelta(days=1) if is_weekend else day.data

    def _derivacao(
        self, block: Bloco, marks: tuple[Marca | None, ...], day: Dia, total: int, price: tuple[int, int]
    ) -> Derivacao:
        assert block.dias is not None
        line = linha_de(self._folha.texto.plano, block.inicio)
        stated = [each.inicio for each in marks if each is not None]
        below = len([each for each in stated if each >= line[1]])
        inherited = below + len([each for each in stated if each < line[0]])
        is_cell = bool(self._folha.texto.tabelas) and self._numero(block.inicio) in self._folha.texto.tabelas
        form = Forma.TABELA if is_cell else Forma.PRODUTO if total > 1 else Forma.TITULO if inherited else Forma.LINHA
        defaults = len(marks) - len(stated)
        weekday = bool(block.dias.semana)
        return Derivacao(form, inherited, defaults, total, *price, weekday, below, line, day.inicio)

    def _numero(self, at: int) -> int:
        """Return the number of the line that contains a position."""
        if self._fins is None:
            self._fins = [each for each, char in enumerate(self._folha.texto.plano) if char == "\n"]
        return bisect_left(self._fins, at)

    def _padrao(self, where: Lugar) -> str:
        """Return the speciality that a place implies if the message names none. A health centre needs a family doctor;
        the emergency department of a children's hospital needs a paediatrician.
        """
        name = chave(where.nome)
        implied = next((area for pattern, area in _PELO_NOME if pattern.match(name)), None)
        return (self._vocabulario.especialidades.valor(implied) if implied is not None else None) or GERAL

    def _is_weak(self, area: Area) -> bool:
        """Return whether a speciality is only a word that fits any doctor, such as "Porta" in "Porta: 17/01 SD"."""
        said = self._folha.texto.plano[area.inicio : area.fim]
        return area.fraca or (area.nome == GERAL and said in palavras()["areas"]["fracas"])

    # Vacancies without a place or a day.

    def _incompletas(self) -> Iterator[VagaDita]:
        if self._folha.lugares:
            return  # place and day are stated, so no field is missing although no vacancy was read
        for place, block in enumerate(self._blocos):
            if block.dias is None:
                continue
            areas: Sequence[Area | None] = self._areas(place) or (None,)
            for area, day, shift in product(areas, self._dias(block), self._turnos(place, block)):
                target = Alvo(
                    "", None, _nome(area), day.data, shift.periodo, shift.horas, self._feriado(day.data, block)
                )
                yield self._incompleta(None, area, day, shift, self._valor(place, block, target)[:2])

    def _sem_dia(self) -> Iterator[VagaDita]:
        places: Sequence[Lugar | None] = _uma_vez(self._folha.lugares) or (None,)
        strong = [each for each in self._folha.areas if not each.fraca] or self._folha.areas[:1]
        areas: Sequence[Area | None] = _uma_vez(alternativas(strong, self._folha)) or (None,)
        for where, area, shift in product(places, areas, self._distintos(self._folha.turnos)):
            yield self._incompleta(where, area, None, shift, self._unico_valor(shift, self._regras))

    def _ao_lado(self, vagas: Collection[VagaLida]) -> Iterator[VagaDita]:
        """Yield incomplete vacancies from a message that also has complete ones. They come from lines with a shift or a
        price but without a day, about a place that no complete vacancy has.
        """
        named = {each.hospital.valor for each in vagas}
        dated = (at for at, each in enumerate(self._blocos) if each.dias is not None)
        headings = {self._onde_lugares.bloco(at, segue=True) for at in dated}
        for at, block in enumerate(self._blocos):
            if block.dias is not None or block.fechados or at in headings or not _oferece(block):
                continue
            places = [each for each in _uma_vez(block.lugares) if each.nome not in named]
            areas: Sequence[Area | None] = _uma_vez(alternativas(fortes(block) or block.areas[:1], self._folha))
            shifts = self._distintos(entre(self._folha.turnos, block.inicio, block.fim))
            for where, area, shift in product(places, areas or (None,), shifts):
                yield self._incompleta(where, area, None, shift, self._unico_valor(shift, block.regras))

    def _incompleta(
        self, where: Lugar | None, area: Area | None, day: Dia | None, shift: _Turno, price: _Valor
    ) -> VagaDita:
        mark = shift.marca if shift.marca is not None and (shift.marca.periodo or shift.marca.das) else None
        name, phone = self._pessoas.primeira()
        return VagaDita(
            hospital=None if where is None else self._campo(where.nome, where, where.confianca),
            especialidade=self._campo(_nome(area), area, 0.8 if area is None or area.fraca else 1.0),
            data=None if day is None else self._campo(day.data, day),
            periodo=None if mark is None else self._campo(shift.periodo, mark),
            hora_inicio=None if mark is None or shift.das is None else self._campo(shift.das, mark),
            hora_fim=None if mark is None or shift.ate is None else self._campo(shift.ate, mark),
            valor=price[0],
            valor_tipo=price[1],
            forma_pagamento=None if self._forma is None else self._campo(self._forma, self._folha.pagamentos[0]),
            contato_nome=name,
            contato_whatsapp=phone,
        )

    def _unico_valor(self, shift: _Turno, rules: Sequence[Regra]) -> _Valor:
        """Return the price that all ``rules`` have in common. Several different prices would be ambiguous."""
        if len({rule.preco.reais for rule in rules[:50]}) == 1:
            preco = rules[0].preco
            return self._campo(por_plantao(preco, shift.horas), preco), self._campo(ValorTipo.FIXO, preco)
        agreed = next(iter(self._folha.combinar), None)
        return None, None if agreed is None else self._campo(ValorTipo.A_COMBINAR, agreed)

    def _campo(self, value: _T, mark: Marca | None, sure: float = 1.0) -> Campo[_T]:
        return Campo(value, None if mark is None else self._folha.texto.trecho(mark.inicio, mark.fim), sure)

    def _feriado(self, day: date, block: Bloco) -> bool:
        """Return whether a day is a holiday. If a line contains a word for "holiday" but none of its days is a known
        holiday, all days on the line count as holidays.
        """
        if (is_holiday := self._e_feriado(day)) or not block.feriado:
            return is_holiday
        return not any(self._e_feriado(each.data) for each in (block.dias.dias if block.dias else ()))

    def _e_feriado(self, day: date) -> bool:
        return day in feriados(day.year) or day in self._vocabulario.feriados

    def _valor(self, place: int, block: Bloco, target: Alvo) -> tuple[*_Valor, int, int]:
        """Return a vacancy's price and the kind of price. Also return the scope in which the price was found (0 is the
        vacancy's own line), and how many other prices in this scope apply equally well.
        """
        for distance, scope in enumerate(self._escopos(place, block)):
            fitting = servem(scope, target)
            if fitting:
                chosen = fitting[0]
                amount = por_plantao(chosen.preco, target.horas)
                rivals = rivais(fitting)
                sure = 1.0 if chosen.preco.certo else 0.8
                where = self._folha.texto.trecho(chosen.preco.inicio, chosen.preco.fim)
                fixed = Campo(ValorTipo.FIXO, where, sure)
                return Campo(amount, where, sure), fixed, min(distance, SEM_PRECO - 1), rivals
        agreed = next(iter(block.combinar), None) or next(iter(self._folha.combinar), None)
        return None, None if agreed is None else self._campo(ValorTipo.A_COMBINAR, agreed), SEM_PRECO, 0

    def _escopos(self, place: int, block: Bloco) -> Iterator[Sequence[Regra]]:
        """Yield the prices of each scope, from the narrowest to the widest: the vacancy's line, the hospital's line,
        the section, the message, and finally the only price in the message.
        """
        # A missing scope is yielded as an empty one, so that the index of a scope is its distance.
        yield block.regras
        heading = self._onde_lugares.bloco(place, segue=True)
        if heading is not None and heading < place and self._blocos[heading].dias is None:
            yield self._blocos[heading].regras
        else:
            yield ()
        yield self._onde_regras.secao(place)
        yield self._onde_regras.soltos
        if len({rule.preco.reais for rule in self._regras[:50]}) == 1:
            yield [Regra(self._regras[0].preco)]


def _nome(area: Area | None) -> str:
    return GERAL if area is None else area.nome


def _uma_vez(found: Sequence[_Nomeado]) -> list[_Nomeado]:
    """Return one place or speciality per name, in the order of first mention."""
    if len(found) < 2:
        return list(found)
    names = {each.nome: each for each in reversed(found)}
    return list(names.values())[::-1]


def _oferece(block: Bloco) -> bool:
    """Return whether a line has everything that an offer needs except a day."""
    signs = (
        fortes(block),
        [each for each in block.turnos if each.periodo or each.das],
        block.regras or block.combinar,
    )
    return bool(block.lugares) and sum(map(bool, signs)) > 1


def _turnos_sem_dia(block: Bloco) -> list[Turno]:
    if block.dias is not None or not block.turnos:
        return []
    return [each for each in block.turnos if each.periodo or each.das]


def _duracao(turnos: Sequence[Turno]) -> int | None:
    """Return the length of the shifts ("12h cada") if exactly one length is stated."""
    lengths = {each.horas for each in turnos if each.horas and not each.periodo}
    return lengths.pop() if len(lengths) == 1 else None


def _lido(mark: Turno, length: int | None) -> _Turno:
    period = mark.periodo
    if mark.das is not None and mark.ate is not None and period not in (Periodo.CINDERELA, Periodo.H24):
        period = periodo_das_horas(mark.das, mark.ate)
    elif mark.das is not None and period is None:
        period = periodo_do_inicio(mark.das, mark.horas or length)
    assert period is not None
    return _Turno(period, mark.das, mark.ate, horas_do(mark, period), mark)
