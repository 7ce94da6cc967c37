"""Find lines in a message whose shifts are taken, according to a word, a sign or a heading above them."""

import re
from collections.abc import Sequence
from datetime import date

from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Fechado, Marca, entre
from app.contexts.leitura_grupos.montagem.condicoes_de_preco import periodo_de
from app.contexts.leitura_grupos.montagem.linhas import Bloco
from app.contexts.leitura_grupos.tipos import Periodo

_OPEN = re.compile(r"^[ •>*-]{0,4}[🔴🟢🟡🟠⚪⬜🔵⭕❗🚨🆓🆘❓◻🔲]")
RESTA = re.compile(
    r"\b(?:restam?|restantes?|demais|faltam?|ainda|sobrou|sobra|so (?:1|uma)|(?<!nada )em aberto|mais (?:1|uma) vaga"
    r"|(?<!nao )precis(?:o|a|amos|ando)|quem (?:pode|assume|cobre|quer|topa))\b"
)
_ABERTAS = re.compile(r"\b(?:abert[ao]s?|disponive(?:l|is))\b")
# Matches words for "taken" that the taken shift follows: "já consegui o SN".
_GOT = re.compile(r"(?:ja )?(?:consegui|fech(?:ei|ou|amos)|peg(?:uei|aram)|pass(?:ei|ado)|preenche)")
_TICK_ENDS = re.compile(r"✅[ a-z]{0,12}$|✅ ?(?:ok )?dra?\b")
_NUMBERS_BEFORE = re.compile(
    r"(?<![\w/:.,])(?:(?P<um>\d{1,2}) {0,2}(?:e|,) {0,2})?(?P<dois>\d{1,2})(?P<so> ?\(|[ ,:-]{1,2})$"
)


class Fechadas:
    def __init__(self, folha: Folha, blocos: Sequence[Bloco]) -> None:
        self._folha, self._blocos = folha, blocos
        numbers_of = {id(mark): numbers for mark in folha.fechados if (numbers := self._numeros(mark))}
        self._de_numeros = frozenset(numbers_of)
        self.numeros = frozenset(number for numbers in numbers_of.values() for number in numbers)

    def _numeros(self, mark: Fechado) -> tuple[int, ...]:
        """Return the numbers before a word that means "taken" if they are days: the 11 in "de 10 a 12/08 …, 11 já foi",
        both numbers in "10 e 11 fechados".
        """
        found = _NUMBERS_BEFORE.search(self._folha.texto.plano, max(0, mark.inicio - 14), mark.inicio)
        if found is None or mark.sinal or entre(self._folha.dias, found.start("dois"), mark.inicio):
            return ()
        if any(
            each.inicio <= found.start("dois") < each.fim
            for each in entre(self._folha.dias, mark.inicio - 60, mark.inicio)
        ):
            return ()
        both = found["um"] and "(" not in found["so"]
        numbers = (int(found["um"]), int(found["dois"])) if both else (int(found["dois"]),)
        return tuple(each for each in numbers if 1 <= each <= 31)

    def blocos(self) -> frozenset[int]:
        if not self._folha.fechados:
            return frozenset()
        dated = [place for place, each in enumerate(self._blocos) if each.dias is not None]
        ticked = [place for place in dated if any(mark.sinal == "✅" for mark in self._blocos[place].fechados)]
        crossed = any(mark.sinal and mark.sinal != "✅" for block in self._blocos for mark in block.fechados)
        tick_closes = 0 < len(ticked) < len(dated) and not crossed and self._ticks_tell(dated)
        found = set()
        for place in dated:
            block = self._blocos[place]
            own = (each for each in block.fechados if id(each) not in self._de_numeros)
            marks = [each for each in own if each.sinal != "✅" or tick_closes]
            if marks and not self.turnos(block) and not self._sobra(block):
                found.add(place)
        return frozenset(found | self._secoes_fechadas())

    def fecha_o_dia(self, mark: Fechado) -> bool:
        """Return whether a word says that the whole day is taken. It does not if the text after it names a shift that
        is still open: "o SD já foi, só resta o SN".
        """
        left = RESTA.search(self._folha.texto.plano, mark.fim, mark.fim + 30)
        return not mark.sinal and (left is None or not entre(self._folha.turnos, left.end(), left.end() + 10))

    def _sobra(self, block: Bloco) -> bool:
        """Return whether the line still offers a shift: "2 vagas (1 preenchida), resta uma", "preciso de alguém"."""
        return RESTA.search(self._folha.texto.plano, block.inicio, block.fim) is not None

    def _ticks_tell(self, dated: Sequence[int]) -> bool:
        """Return whether a tick (✅) means that a shift is taken. It does if a line with a day begins with the sign for
        an open shift, or if such a line ends with a tick. Otherwise ticks are only bullets.
        """
        lines = [self._folha.texto.plano[self._blocos[at].inicio : self._blocos[at].fim] for at in dated]
        return any(_OPEN.search(line) for line in lines) or any(_TICK_ENDS.search(line) for line in lines)

    def _secoes_fechadas(self) -> set[int]:
        """Return the indexes of the message's blocks below a heading such as "PREENCHIDAS:" (taken), up to the next
        heading. If the message's headline says that everything is taken, return the indexes of all blocks.
        """
        if not self._folha.fechados:
            return set()
        plain = self._folha.texto.plano
        left = _ABERTAS.search(plain)
        until = 0 if RESTA.search(plain) else len(plain) if left is None else left.start()
        found: set[int] = set()
        closing = headline = False
        for place, each in enumerate(self._blocos):
            if each.dias is None:
                line = plain[each.inicio : each.fim].strip(" *_.!")
                heads = len(line.strip(":").split()) <= 4 and "~" not in line
                closing = bool(each.fechados) and not each.fechados[0].sinal and heads
                headline = headline or (closing and place == 0 and line[-1:] != ":")
            elif closing or (headline and each.inicio < until):
                found.add(place)
        return found

    def turnos(self, block: Bloco) -> set[int]:
        """Return the taken shifts on a line with several shifts. A shift is taken if a sign or word with this meaning
        directly follows it.
        """
        if len(block.turnos) < 2:
            return set()
        found = set()
        for mark in block.fechados:
            said = self._folha.texto.plano[mark.inicio : mark.fim]
            if _GOT.match(said):
                after = [each for each in block.turnos if mark.inicio < each.inicio <= mark.fim + 4]
                if after:
                    found.add(id(after[0]))
                    continue
            before = [each for each in block.turnos if each.fim <= mark.inicio]
            if mark.sinal == "✅" or said.endswith(("os", "as")) or not before or mark.inicio - before[-1].fim > 6:
                continue
            found.add(id(before[-1]))
        return found


def riscadas(inteira: Folha, riscados: Sequence[Marca]) -> frozenset[tuple[date, Periodo | None]]:
    """Return the days and periods that a message strikes out. ``inteira`` has the marks of the text without the
    strike-through signs. The period None means the whole day.
    """
    found: set[tuple[date, Periodo | None]] = set()
    for each in riscados:
        days = [day.data for run in entre(inteira.dias, each.inicio, each.fim) for day in run.dias]
        periods = [periodo_de(shift) for shift in entre(inteira.turnos, each.inicio, each.fim)]
        found.update((day, period) for day in days for period in periods or (None,))
    return frozenset(found)
