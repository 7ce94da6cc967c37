"""Find specialities in a text, and hospital sectors that imply a speciality."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from app.contexts.leitura_grupos.marcas.marca import DATADO, Area, Lugar
from app.contexts.leitura_grupos.texto.texto import Texto, chave
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario, municipios, palavras

_REQUIRED = re.compile(
    r"\b(?:experiencia|titulo|residencia|rqe|especialista|especialidade|pos|curso|formacao|especializacao|titulad[oa]|vivencia|noc(?:ao|oes))"
    r"(?: (?:em|de|na|no|com|minima|previa|anos|especialista)){1,3} (?:[a-z]{2,20} (?:e|ou) )?$"
)
# Matches words after a doctor who is already at the hospital: "anestesista no local".
_PRESENT = re.compile(
    r" (?:ja )?(?:24 ?h(?:oras)? )?(?:no local|na casa(?! de)|presente|de (?:retaguarda|apoio|suporte))\b"
)
_PLACE_BEFORE = frozenset(("na", "da", "nossa", "uma", "minha", "a", "nas"))
_BULLET = re.compile(r"[^\w\n]{0,8}")
_STATE = re.compile(r"(?: ?[/,-] ?| ?\()$")


def areas(texto: Texto, livre: str, vocabulario: Vocabulario) -> list[Area]:
    return list(_areas(texto, livre, vocabulario))


def _areas(texto: Texto, livre: str, vocabulario: Vocabulario) -> Iterator[Area]:
    weak, loud, never = _listas()
    words = texto.palavras
    flat = not any(char.isupper() for char in texto.fonte)
    for each in vocabulario.especialidades.todas(words):
        start, end = words[each.inicio].inicio, words[each.fim - 1].fim
        said = texto.plano[start:end]
        if livre[start:end] != said or "\n" in said or said in never:
            continue
        if said in loud and not _is_loud(texto, start, end, flat, livre, vocabulario):
            continue
        if said == "clinica" and each.inicio and words[each.inicio - 1].texto in _PLACE_BEFORE:
            continue
        if (
            said == "pa"
            and (link := _STATE.search(livre, max(0, start - 3), start))
            and livre[link.start() - 1].isalpha()
        ):
            continue
        if _REQUIRED.search(livre[max(0, start - 60) : start]):
            continue
        if said == "uti n" and livre[end : end + 3].lstrip(" :")[:1] == DATADO:
            # "UTI N 15/08" is the night at the intensive care unit; "UTI N" alone is the one for newborns.
            yield Area(start, start + 3, vocabulario.especialidades.valor("uti") or each.valor, False)
            continue
        is_weak = " ".join(word.texto for word in words[each.inicio : each.fim]) in weak
        yield Area(start, end, each.valor, is_weak and not _heads(livre, start, end))


@cache
def _listas() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    lists = palavras()["areas"]
    return frozenset(lists["fracas"]), frozenset(lists["so_maiusculas"]), frozenset(lists["nunca"])


def sem_apoio(areas: list[Area], livre: str) -> list[Area]:
    """Remove the specialities of doctors who only support the shift: "com cirurgião de retaguarda" (with a surgeon on
    call). If the message names no other speciality, remove nothing.
    """
    return [each for each in areas if _PRESENT.match(livre, each.fim) is None] or areas


def sem_iniciais_da_cidade(areas: Sequence[Area], places: Sequence[Lugar], plano: str) -> list[Area]:
    """Remove specialities that are really a town's initials, such as the "CG" in "Santa Casa CG" (Campo Grande). A
    town's initials follow the hospital's name or the word "em".
    """
    ends: dict[str, set[int]] = {}  # maps the initials of a town to the end positions of its places
    initials = {city: _initials(city) for city in {place.cidade for place in places} if city}
    for place in places:
        if place.cidade and len(initials[place.cidade]) > 1:
            ends.setdefault(initials[place.cidade], set()).add(place.fim)
    return [each for each in areas if not _is_town(each, ends, plano)]


def _initials(city: str) -> str:
    return "".join(word[0] for word in chave(city).split() if len(word) > 2)


def _is_town(area: Area, ends: Mapping[str, set[int]], plano: str) -> bool:
    places = ends.get(plano[area.inicio : area.fim])
    if places is None:
        return False
    follows = area.inicio - 1 in places and plano[area.inicio - 1] == " "
    return follows or plano.endswith(" em ", 0, area.inicio)


def _heads(livre: str, start: int, end: int) -> bool:
    """Return whether a sector is the heading of its line: "PA: 17/01 SD"."""
    is_first = _BULLET.fullmatch(livre, livre.rfind("\n", 0, start) + 1, start) is not None
    return is_first and livre[end : end + 1] == ":" and not livre.startswith(("medic", "plantonista"), start)


def _is_loud(texto: Texto, start: int, end: int, flat: bool, livre: str, vocabulario: Vocabulario) -> bool:
    """Return whether an abbreviation is used as a speciality. It must be in upper case, unless the text has no
    capitals, and must not be the state code that follows a town's name, as in "Anápolis/GO".
    """
    first, last = texto.trecho(start, end)
    if texto.plano[start:end] == "go" and _is_state(texto, livre, start, vocabulario):
        return False
    if flat:
        return texto.plano[start:end] not in ("us", "usa", "cad", "psi", "pai", "aps", "radio")
    return texto.fonte[first:last].isupper()


def _is_state(texto: Texto, livre: str, start: int, vocabulario: Vocabulario) -> bool:
    """Return whether "GO" is the state code directly after a town in Goiás: "Anápolis/GO", "(Jataí - GO)". After a town
    in another state, "GO" is a speciality.
    """
    link = _STATE.search(livre, max(0, start - 4), start)
    if link is None:
        words = [word.texto for word in texto.palavras_entre(max(0, start - 40), start)]
        names = (" ".join(words[-count:]) for count in range(1, 5))
        return livre[start - 1 : start] == " " and any("GO" in municipios().get(name, ()) for name in names)
    before = texto.palavras_entre(max(0, link.start() - 40), link.start())
    towns = (vocabulario.cidades.em(before, place) for place in range(len(before)))
    for town in towns:
        if town is not None and town.fim == len(before):
            return "GO" in municipios().get(chave(town.valor[0]), ("GO",))
    return link[0] in ("/", "-") and livre[link.start() - 1 : link.start()].isalpha()
