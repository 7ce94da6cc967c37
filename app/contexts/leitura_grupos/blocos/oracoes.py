"""Split prose about several places into one line for each clause that has its own place and days.

no Hospital A, dia 10/08 à noite, e na UPA B, dia 11/08     →     no Hospital A, dia 10/08 à noite,
                                                                  e na UPA B, dia 11/08
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter

from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Dias, Lugar, Marca, entre, linha_de
from app.contexts.leitura_grupos.texto.texto import Texto

# Patterns for the end of a clause, the clearest first. The first character of a match becomes the line break.
_FINS = tuple(
    re.compile(each)
    for each in (
        r";",
        r"(?<!\bdr)(?<!\bdra)(?<!\bn)(?<!\bs)(?<!\bsta)(?<!\bh)\.(?= )",
        r"[|•]|(?<= )[/+](?= )",
        r",(?= e\b)| (?=e\b)",
        r",(?= )",
        r" (?=-)",
        r" ",
    )
)
_FRASE = _FINS[1]
_SEPARADOR = re.compile(r"[^\w\n\x01]{1,6}")
# Matches words such as "todos" (all): the text after such a word applies to all places before it.
_COMUM = re.compile(r"\b(?:ambos|ambas|todos|todas|tudo)\b")
_inicio = attrgetter("inicio")


def em_oracoes(folha: Folha) -> Texto | None:
    """Split each line that names several hospitals or towns, each with its own days, into one line per clause. Return
    the new text, or None if the text has no such line.
    """
    if len(folha.lugares) < 2 or not folha.dias:
        return None
    cuts = sorted({at for line in _linhas(folha) for at in (*_cortes(folha, line), *_cortes_de_turnos(folha, line))})
    if not cuts:
        return None
    return folha.texto.em_linhas(cuts)


def _linhas(folha: Folha) -> Iterator[tuple[int, int]]:
    """Yield the range of each line that contains at least two places."""
    lines = [linha_de(folha.texto.plano, each.inicio) for each in folha.lugares]
    yield from (one for one, two in pairwise(lines) if one == two)


def _cortes(folha: Folha, line: tuple[int, int]) -> Iterator[int]:
    places = entre(folha.lugares, *line)
    days = [each for each in entre(folha.dias, *line) if not each.feriado]
    plano, first = folha.livre, places[0].inicio
    head = plano.rfind(":", line[0], first)
    groups = _grupos(sorted((*places, *(each for each in days if each.inicio > head)), key=lambda each: each.inicio))
    if len(groups) < 2 or len({each[0].nome for each in groups}) < 2:
        return
    marks: Sequence[Marca] = folha.areas
    if head >= 0 and (entre(marks, line[0], head) or entre(folha.dias, line[0], head)):
        yield head
    for (_, last), (place, _) in pairwise(groups):
        if (at := _fim(plano, last.fim, place.inicio)) is not None:
            yield at
    if (end := _FRASE.search(plano, groups[-1][1].fim, line[1])) is not None:
        yield end.start()


def _cortes_de_turnos(folha: Folha, line: tuple[int, int]) -> Iterator[int]:
    """Yield the positions at which to split a line that begins with days and then names several places, each with its
    own shifts: "10/08: UPA Norte SD + Hospital Vida SN", "10/08: SD na UPA Norte e SN no Hospital Vida".
    """
    places = entre(folha.lugares, *line)
    days = [each for each in entre(folha.dias, *line) if not each.feriado]
    shifts = [each for each in entre(folha.turnos, *line) if each.periodo or each.das]
    if len(places) < 2 or not days or not shifts or len({each.nome for each in places}) < len(places):
        return
    if days[-1].inicio > min(places[0].inicio, shifts[0].inicio):
        return
    groups = [[*group] for _, group in groupby(sorted((*places, *shifts), key=_inicio), key=type)]
    if len(groups) != 2 * len(places) or any(isinstance(each[0], Lugar) and len(each) > 1 for each in groups):
        return
    pairs = [(one[0], two[-1]) for one, two in zip(groups[::2], groups[1::2], strict=True)]
    cuts = [_fim(folha.livre, last.fim, first.inicio) for (_, last), (first, _) in pairwise(pairs)]
    if any(
        at is None or _COMUM.search(folha.livre, last.fim, first.inicio)
        for at, ((_, last), (first, _)) in zip(cuts, pairwise(pairs), strict=True)
    ):
        return
    yield from (at for at in (_fim_do_dia(folha.livre, days[-1].fim), *cuts) if at is not None)


def _fim_do_dia(plano: str, start: int) -> int | None:
    """Return the position directly before the word that follows a day, or None if no separator follows the day."""
    found = _SEPARADOR.match(plano, start)
    return None if found is None else found.end() - 1


def _grupos(marks: Sequence[Lugar | Dias]) -> list[tuple[Lugar, Dias]]:
    """Return the first place and the last days of each clause. A place that follows days begins a new clause. A place
    without days after it belongs to no clause. If the line begins with days, return an empty list.
    """
    found: list[tuple[Lugar, Dias]] = []
    place: Lugar | None = None
    for each in marks:
        if isinstance(each, Lugar):
            place = each if place is None else place
        elif place is not None:
            found.append((place, each))
            place = None
        elif found:
            found[-1] = (found[-1][0], each)
        else:
            return []
    return found


def _fim(plano: str, start: int, end: int) -> int | None:
    for pattern in _FINS:
        found = [*pattern.finditer(plano, start, end)]
        if found:
            return found[-1].start()
    return None
