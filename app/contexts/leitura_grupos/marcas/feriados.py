"""Find named holidays, and compute the dates of national holidays."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache

from app.contexts.leitura_grupos.marcas.marca import Condicao, Dia, Dias
from app.contexts.leitura_grupos.texto.texto import achados


@cache
def feriados(year: int) -> frozenset[date]:
    """Return a year's national holidays and Corpus Christi."""
    easter = _easter(year)
    fixed = ((1, 1), (4, 21), (5, 1), (9, 7), (10, 12), (11, 2), (11, 15), (11, 20), (12, 25))
    return frozenset({date(year, *each) for each in fixed} | {easter - timedelta(days=2), easter + timedelta(days=60)})


_STATE_BEHIND = re.compile(r" ?[/,(-]? ?rn\b")
_NOMES = re.compile(
    r"\b(?:(?P<natal>natal)|(?P<santa>sex(?:ta)?(?:[- ]feira)? (?:santa|da paixao))|(?P<pascoa>pascoa)|(?P<corpus>corpus christi)"
    r"|(?P<finados>finados)|(?P<carnaval>carnaval)|(?P<novo>ano novo)|(?P<virada>reveillon))\b"
)


def feriados_com_nome(livre: str, hoje: date) -> Iterator[Condicao]:
    """Yield each holiday that the text names, with the holiday's next dates, as the condition of a price. In "Páscoa
    160", for example, the price 160 applies to Easter.
    """
    for each in achados(
        _NOMES, livre, "natal", "santa", "paixao", "pascoa", "christi", "finados", "carnaval", "ano novo", "reveillon"
    ):
        years = (hoje.year, hoje.year + 1)
        days = (day for year in years for day in _datas_do_nome(each.lastgroup or "", year) if day >= hoje)
        yield Condicao(each.start(), each.end(), datas=frozenset(days))


def dias_de_feriados(livre: str, hoje: date) -> Iterator[Dias]:
    """Yield the date of each named holiday that lasts one day, as if the text had stated the date. Call this function
    only if the message names no other day.
    """
    for each in feriados_com_nome(livre, hoje):
        is_town = livre.endswith(("em ", "natal/", "/", "("), 0, each.inicio) or _STATE_BEHIND.match(livre, each.fim)
        if each.datas and not is_town and livre[each.inicio : each.fim] not in ("carnaval", "reveillon"):
            yield Dias(each.inicio, each.fim, (Dia(each.inicio, each.fim, min(each.datas)),))


def _datas_do_nome(name: str, year: int) -> tuple[date, ...]:
    easter = _easter(year)
    away = {"santa": (-2,), "pascoa": (0,), "corpus": (60,), "carnaval": (-50, -49, -48, -47)}.get(name)
    if away is not None:
        return tuple(easter + timedelta(days=count) for count in away)
    return {
        "natal": (date(year, 12, 25),),
        "finados": (date(year, 11, 2),),
        "novo": (date(year, 1, 1),),
        "virada": (date(year, 1, 1), date(year, 12, 31)),
    }.get(name, ())


def _easter(year: int) -> date:
    """Return Easter Sunday by the Gregorian computus."""
    century, golden = year // 100, year % 19
    leap = (
        (century - 15) // 2
        + 202
        - 11 * golden
        - (1 if century in (21, 24, 25, 27, 28, 29, 30, 31, 32, 34, 35, 38) else 0)
    )
    if century in (33, 36, 37, 39, 40):
        leap -= 2
    moon = leap % 30
    full = 21 + moon - (1 if moon == 29 or (moon == 28 and golden > 10) else 0)
    sunday = (full - 19) % 7
    until = (40 - century) % 4
    until += 1 if until == 3 else 0
    until += 1 if until > 1 else 0
    rest = year % 100
    step = (20 - sunday - until - (rest + rest // 4) % 7) % 7 + 1
    day = full + step
    return date(year, 3, day) if day <= 31 else date(year, 4, day - 31)
