"""Describe a vacancy by features: how it was derived, which words no rule matched, and whether a second, simpler
reading agrees.

The second reading takes the place, the shift, the speciality and the price that are nearest to the day.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from math import log1p

from app.contexts.leitura_grupos.juizo.contradicoes import contraditorias
from app.contexts.leitura_grupos.juizo.duvidas import mensagem_incerta, nomes_incertos, sem_maiusculas
from app.contexts.leitura_grupos.juizo.sinais import Sinal
from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.horas import periodo_do_inicio
from app.contexts.leitura_grupos.marcas.marca import Lugar, Marca, Turno, entre, linha_de
from app.contexts.leitura_grupos.montagem.condicoes_de_preco import periodo_de
from app.contexts.leitura_grupos.texto.texto import Palavra, contem
from app.contexts.leitura_grupos.texto.vocabulario import palavras_soltas, todas_as_palavras
from app.contexts.leitura_grupos.tipos import Forma, Periodo, VagaLida
from batuta.kernel import dataclass

SUSPEITA = 0.5
# Number of days. A date without a year that is farther away is often misread.
LONGE = 45
_SIGNS = ("conversa", "aviso", "procura", "troca", "venda", "emprego", "nao_medico", "golpe")
COMUNS = (
    "vagas", "inexplicadas", "parte_inexplicada", "numeros", "multiplicadas", "precos", "preco_sem_uso",
    "preco_faltando",
    "sem_preco", "lugares", "areas", "fechados", "fechado_sem_dia", "riscados", "correcoes", "dias_mistos",
    "layout_por_ler", "palavras",
    *_SIGNS, "chance_de_oferta", "palavra_de_oferta",
)  # fmt: skip
PROPRIAS = (
    "titulo", "respectivamente", "produto", "tabela", "multiplicadas_na_linha", "tamanho", "herdados", "abaixo",
    "padroes", "preco_longe",
    "preco_unico", "preco_nenhum",
    "preco_em_disputa", "preco_estranho", "so_dia_da_semana", "longe", "area_padrao", "area_apesar_de_outras",
    "periodo_padrao", "so_inicio", "so_inicios", "inexplicadas_na_linha", "numeros_na_linha", "letras_na_linha",
    "lugares_na_linha", "dias_na_linha", "turnos_do_dia", "areas_do_dia", "precos_do_dia", "medico_na_linha",
    "fechado_na_linha", "nao_na_linha", "excecao_na_linha", "pergunta_na_linha", "separadores", "outro_lugar",
    "outro_turno", "outra_area", "outro_preco", "ou_na_linha", "inexplicada_ao_lado", "nome_minusculo", "duvida",
    "hospital", "hospital_conhecido",
)  # fmt: skip
# Features that may only raise the confidence. All others may only lower it.
AJUDAM = frozenset(("chance_de_oferta", "palavra_de_oferta", "hospital", "hospital_conhecido"))
_WORD = re.compile(r"[a-z]{3,}|\d+")
_CORRECTED = re.compile(r"\b(?:corrig|correcao|errata|retific|ops|digo|errad[oa]|atualiza|edit|mudou|nao)\w*")
# Parts of words. A text that contains none of them cannot match ``_CORRECTED`` and is not searched.
_CORRECTS = ("corr", "err", "retific", "ops", "digo", "atualiza", "edit", "mudou", "nao")
_DOCTOR = re.compile(r"\bdra?\b|\bdoutora?\b")
_EXCEPT = re.compile(r"\b(?:exceto|menos|tirando|fora|so|somente|apenas|salvo)\b")
_OR = re.compile(r"\bou\b")
_NOT = re.compile(r"\bnao\b")
_LETTER = re.compile(r"\b[dnmt]\b")
# A text that contains none of these signs cannot match ``_CELLS`` and is not searched.
_CELL_SIGNS = ("|", ";", ">", "   ")
_CELLS = re.compile(r"\||;[^;\n]*;|>[^>\n]*>|\S {3,}\S[^\n]* {3,}\S")


def inexplicadas(folha: Folha, found: Sequence[Sinal]) -> list[Palavra]:
    """Return the words and numbers of a message that no rule matched."""
    people = [each.nome for each in folha.contatos if each.nome is not None]
    marks: list[Marca | Sinal] = [
        *folha.dias, *folha.turnos, *folha.lugares, *folha.areas, *folha.precos, *folha.condicoes, *folha.combinar,
        *folha.pagamentos, *folha.fechados, *folha.cidades, *folha.riscados, *people, *found,
    ]  # fmt: skip
    marks.sort(key=_inicio)
    known, common = todas_as_palavras(), palavras_soltas("comuns")
    left: list[Palavra] = []
    at = until = 0
    for word in folha.texto.palavras:
        while at < len(marks) and marks[at].inicio <= word.inicio:
            until = max(until, marks[at].fim)
            at += 1
        if word.inicio < until or word.texto in known or word.texto in common or not _WORD.fullmatch(word.texto):
            continue
        if folha.livre[word.inicio : word.fim] == word.texto:
            left.append(word)
    return left


def _inicio(each: Marca | Sinal) -> int:
    return each.inicio


@dataclass(frozen=True, slots=True)
class Evidencia:
    """Facts about a whole message, which become features of each of its vacancies. ``chance`` is the probability that
    the message is an offer.
    """

    folha: Folha
    sinais: Counter[str]
    inexplicadas: Sequence[Palavra]
    chance: float
    hoje: date

    def de(self, vagas: Sequence[VagaLida]) -> list[tuple[float, ...]]:
        """Return the features of each vacancy in the message."""
        if not vagas:
            return []
        shared = tuple(self._comuns(vagas))
        small, is_unsure = sem_maiusculas(self.folha), mensagem_incerta(self.folha)
        doubtful = nomes_incertos(self.folha, self.inexplicadas)
        disputed = contraditorias(self.folha, vagas)
        strong = [each for each in self.folha.areas if not each.fraca]
        lines: dict[int, _Linha] = {}
        found = []
        for place, each in enumerate(vagas):
            assert each.derivacao is not None
            line = lines.get(each.derivacao.do_bloco[0])
            if line is None:
                line = lines[each.derivacao.do_bloco[0]] = _Linha(
                    self.folha, self.inexplicadas, each.derivacao.do_bloco
                )
            name = each.hospital.valor
            named = (float(name in small), float(is_unsure or name in doubtful or place in disputed))
            found.append((*shared, *self._proprias(each, line, bool(strong), named)))
        return found

    @property
    def limite(self) -> float:
        """The highest confidence that a vacancy in the message may get. If the message looks like a scam, this limit is
        so low that a person decides.
        """
        has_link = "http" in self.folha.texto.plano or "www." in self.folha.texto.plano
        return SUSPEITA if self.sinais["golpe"] > 1 or (self.sinais["golpe"] and has_link) else 1.0

    def _comuns(self, vagas: Sequence[VagaLida]) -> Iterator[float]:
        folha, plano = self.folha, self.folha.texto.plano
        words = max(1, len(folha.texto.palavras))
        prices = {(each.reais, each.por_hora) for each in folha.precos[:60]}
        used = {each.valor.trecho for each in vagas if each.valor is not None}
        priced = sum(each.valor is not None for each in vagas)
        stated = sum(len({day.inicio for day in each.dias}) for each in folha.dias[:200])
        yield log1p(len(vagas))
        yield log1p(len(self.inexplicadas))
        yield len(self.inexplicadas) / words
        yield log1p(sum(each.texto[0].isdigit() for each in self.inexplicadas))
        yield log1p(max(0, len(vagas) / max(1, stated) - 1))
        yield log1p(len(prices))
        yield float(len(prices) > len(used))
        yield float(bool(folha.precos) and priced < len(vagas))
        yield float(not folha.precos and not folha.combinar)
        yield log1p(len({each.nome for each in folha.lugares[:200]}))
        yield log1p(len({each.nome for each in folha.areas[:200]}))
        yield log1p(len(folha.fechados))
        yield float(any(not each.sinal and not self._tem_dia(each) for each in folha.fechados[:20]))
        yield float(bool(folha.riscados))
        yield log1p(len(_CORRECTED.findall(plano, 0, 4000)) if contem(plano, _CORRECTS) else 0)
        yield float(any(each.solto for each in folha.dias) and any(not each.solto for each in folha.dias))
        yield log1p(sum(_CELLS.search(each) is not None for each in self._linhas_escritas()))
        yield log1p(words) / 5
        yield from (float(min(self.sinais[name], 2)) for name in _SIGNS)
        yield self.chance
        yield float(bool(self.sinais["oferta"] + self.sinais["cede"]))

    def _tem_dia(self, mark: Marca) -> bool:
        """Return whether a day is named on the same line as a word that says that a shift is taken. Without a day, it
        is unclear which shift is taken.
        """
        return bool(entre(self.folha.dias, *linha_de(self.folha.texto.plano, mark.inicio)))

    def _linhas_escritas(self) -> list[str]:
        """Return the lines of the text, except those that were made from table cells."""
        lines = self.folha.texto.plano[:8000].split("\n")
        return [each for place, each in enumerate(lines) if place not in self.folha.texto.tabelas]

    def _proprias(
        self, vaga: VagaLida, line: "_Linha", has_areas: bool, named: tuple[float, float]
    ) -> tuple[float, ...]:
        derived = vaga.derivacao
        assert derived is not None
        form, size, price = derived.forma, derived.produto, derived.preco
        multiplied = max(1.0, size / max(1, line.ditos))
        starts_only = vaga.hora_inicio is not None and vaga.hora_fim is None
        is_default, sure = vaga.especialidade.confianca < 1.0, vaga.hospital.confianca
        return (
            float(form is Forma.TITULO),
            float(size > 1 and "respectiv" in self.folha.texto.plano),
            float(form is Forma.PRODUTO and multiplied > 1),
            float(form is Forma.TABELA),
            log1p(multiplied - 1),
            log1p(size - 1),
            float(derived.herdados),
            float(derived.abaixo),
            float(derived.padroes),
            float(price in (2, 3)),
            float(price == 4),
            float(price > 4),
            float(min(derived.disputa, 2)),
            float(vaga.valor is not None and not 400 <= vaga.valor.valor <= 6000),
            float(derived.de_semana),
            float((vaga.data.valor - self.hoje).days > LONGE),
            float(is_default),
            float(is_default and has_areas),
            float(vaga.periodo.confianca < 1.0),
            float(starts_only),
            float(starts_only and size > 1),
            *line.comuns,
            float(form is not Forma.TABELA and line.separada),
            *line.segunda_leitura(vaga, derived.dia),
            *line.estranhas,
            *named,
            sure,
            float(sure == 1.0),
        )


class _Linha:
    """The line from which a vacancy was read. The line's days, places, shifts and prices are compared with
    the vacancy.
    """

    __slots__ = (
        "_areas",
        "_dias",
        "_folha",
        "_lugares",
        "_precos",
        "_turnos",
        "comuns",
        "ditos",
        "estranhas",
        "separada",
    )

    def __init__(self, folha: Folha, unexplained: Sequence[Palavra], line: tuple[int, int]) -> None:
        self._folha = folha
        text = folha.texto.plano[slice(*line)]
        self._lugares = entre(folha.lugares, *line)
        self._dias = [each for each in entre(folha.dias, *line) if not each.feriado]
        # Number of days that the line writes. A range such as "10 a 14/08" counts once.
        self.ditos = len({day.inicio for each in self._dias for day in each.dias})
        self._turnos = [each for each in entre(folha.turnos, *line) if each.periodo or each.das]
        self._areas = [each for each in entre(folha.areas, *line) if not each.fraca]
        self._precos = entre(folha.precos, *line)
        first, last = (bisect_left(unexplained, at, key=_palavra) for at in line)
        self.estranhas = (
            float("ou" in text and _OR.search(text) is not None),
            float(self._tem_vizinha(unexplained[first:last])),
        )
        self.separada = contem(text, _CELL_SIGNS) and _CELLS.search(text) is not None
        self.comuns = (
            log1p(last - first),
            log1p(sum(each.texto.isdigit() for each in unexplained[first:last])),
            log1p(len(_LETTER.findall(folha.livre, *line))),
            log1p(max(0, len({each.nome for each in self._lugares}) - 1)),
            log1p(max(0, len(self._dias) - 1)),
            log1p(max(0, len(self._turnos) - 1)),
            log1p(max(0, len({each.nome for each in self._areas}) - 1)),
            log1p(max(0, len({each.reais for each in self._precos}) - 1)),
            float(("dr" in text or "doutor" in text) and self._outro_medico(text, line[0])),
            float(bool(entre(folha.fechados, *line))),
            float("nao" in text and _NOT.search(text) is not None),
            float(_EXCEPT.search(text) is not None),
            float("?" in text),
        )

    def _tem_vizinha(self, unexplained: Sequence[Palavra]) -> bool:
        """Return whether a word that no rule matched is directly next to a day or price on the line."""
        starts = {each.inicio for each in (*self._dias, *self._precos)}
        ends = {each.fim for each in (*self._dias, *self._precos)}
        return any(word.fim + 1 in starts or word.inicio - 1 in ends for word in unexplained)

    def _outro_medico(self, text: str, start: int) -> bool:
        """Return whether the line names a doctor other than the contact person."""
        people = [each.nome.inicio for each in self._folha.contatos if each.nome is not None]
        doctors = (start + each.end() for each in _DOCTOR.finditer(text))
        return any(not any(0 <= name - end < 4 for name in people) for end in doctors)

    def segunda_leitura(self, vaga: VagaLida, at: int) -> tuple[float, float, float, float]:
        """Compare the vacancy with the values nearest to the day at the position ``at``. Return one number each for
        place, shift, speciality and price: 1.0 if the vacancy has a different value, otherwise 0.0.
        """
        start, end = self._trecho_do_dia(at)
        shifts = entre(self._turnos, at, end) or entre(self._turnos, start, at)
        areas = [each.nome for each in entre(self._areas, start, end)]
        prices = entre(self._precos, at, end)
        price = None if vaga.valor is None else vaga.valor.valor
        near = self._lugar(at)
        return (
            float(near is not None and near.nome != vaga.hospital.valor),
            float(bool(shifts) and vaga.periodo.valor not in map(_periodo, shifts)),
            float(bool(areas) and vaga.especialidade.valor not in areas),
            float(bool(prices) and price is not None and all(_is_other(each.reais, price) for each in prices)),
        )

    def _trecho_do_dia(self, at: int) -> tuple[int, int]:
        """Return the range of the text around the day at the position ``at``: from the end of the previous day to the
        start of the next day.
        """
        place = bisect_left(self._dias, at + 1, key=_inicio)
        start = self._dias[place - 2].fim if place > 1 else 0
        end = self._dias[place].inicio if place < len(self._dias) else len(self._folha.texto.plano)
        return start, end

    def _lugar(self, at: int) -> Lugar | None:
        before = [each for each in self._lugares if each.inicio < at]
        if before or self._lugares:
            return before[-1] if before else self._lugares[0]
        everywhere = self._folha.lugares
        place = bisect_left(everywhere, at, key=_inicio)
        return everywhere[max(0, place - 1)] if everywhere else None


def _palavra(word: Palavra) -> int:
    return word.inicio


def _periodo(mark: Turno) -> Periodo | None:
    period = periodo_de(mark)
    return periodo_do_inicio(mark.das, mark.horas) if period is None and mark.das is not None else period


def _is_other(stated: object, chosen: object) -> bool:
    """Return whether a price on the line contradicts the chosen price. If the chosen price is a multiple of the price
    on the line, there is no contradiction, because the latter may be the price per hour.
    """
    return stated != chosen and float(str(chosen)) % float(str(stated)) != 0


__all__ = ["AJUDAM", "COMUNS", "PROPRIAS", "Evidencia", "inexplicadas"]
