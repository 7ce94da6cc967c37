"""Combine the places that were found in a message: keep each place once, resolve short references, and assign the
message's only town to places without a town.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from app.contexts.leitura_grupos.marcas.lugares import LINKS, Cidade, estado_dito, listas
from app.contexts.leitura_grupos.marcas.marca import Lugar, entre
from app.contexts.leitura_grupos.texto.texto import Texto, chave
from app.contexts.leitura_grupos.texto.vocabulario import municipios

_PRICED = re.compile(r"[ *_]{0,2}(?:[:=-] {0,2})?(?:r\$|\d)|[ *_]{0,2}:")
_EQUALS = re.compile(r"\b([a-z]{2,6}) ?= ?$")
_BRACKETED = re.compile(r" ?\(([a-z]{3,6})\)")
# Matches words that describe a place whose name the author does not state: "hospital particular de Belém".
_DESCRIBED = re.compile(
    r"[a-z]+ (?:particular|privad[oa]|public[oa]|conhecid[oa]|renomad[oa]) (?:d[eoa]|em) (?P<onde>.+)"
)
_OF_A_TOWN = re.compile(r"(?:hospital|hosp|clinica|maternidade|empresa) (?:de|em) (?P<onde>.+)")
_LABEL = re.compile(r"(?:\A|\n)[^a-z0-9\n]{0,8}(?:hospital|unidade|clinica|local)[ *_]{0,2}:")
_SAME_AS = re.compile(
    r" {0,2}= {0,2}|[ .,*_]{1,5}(?:digo|alias|quer dizer|corrigindo)[ :,.*_]{1,3}(?:(?:n?[oa]|e n[oa]) )?"
)


def sem_dito_duas_vezes(plano: str, known: Sequence[Lugar], new: Sequence[Lugar]) -> list[Lugar]:
    """Return all places in text order, each only once. "Hospital Geral do Estado (HGE)" is one place. If two places are
    joined by "=" or by a word of correction such as "digo" (I mean), only the second one is returned.
    """
    again = {each.inicio for each in known}
    kept = (each for each in new if not (plano[each.fim : each.fim + 2] == " (" and each.fim + 2 in again))
    found = sorted((*known, *kept), key=lambda each: each.inicio)
    return [
        each
        for each, after in zip_longest(found, found[1:])
        if after is None or _SAME_AS.fullmatch(plano, each.fim, after.inicio) is None
    ]


def sem_descritos(texto: Texto, places: Sequence[Lugar]) -> list[Lugar]:
    """Remove places that a message describes but does not name: "hospital particular de Belém", and "hospital de Belém"
    with a lower-case "h". "Hospital de Belém" with a capital "H" is a name and is kept.
    """
    return [
        each
        for each in places
        if not (so_da_cidade(each) and texto.fonte[texto.trecho(each.inicio, each.fim)[0]].islower())
        if (said := _DESCRIBED.fullmatch(chave(each.nome))) is None
        or not (said["onde"] in municipios() or said["onde"] in ("capital", "interior", "regiao"))
    ]


def so_da_cidade(place: Lugar) -> bool:
    """Return whether a place has no name of its own, only a kind and a town: "hospital de Belém"."""
    said = _OF_A_TOWN.fullmatch(chave(place.nome)) if place.confianca < 1.0 else None
    return said is not None and said["onde"] in municipios()


def referencias(texto: Texto, livre: str, places: Sequence[Lugar]) -> list[Lugar]:
    """Return short references to places that the message names in full elsewhere. A short reference is an abbreviation
    that the message explains, the first word of a name ("na UPA"), or another word of a name with a price after it
    ("Norte 1.800").
    """
    named = {each.nome: each for each in reversed(places)}
    if len(named) < 2:
        return []
    short = _abreviados(texto, places)
    heads: dict[str, list[Lugar]] = {}
    for each in named.values():
        for word in set(chave(each.nome).split(" ")) - LINKS:
            heads.setdefault(word, []).append(each)
    again = [
        replace(short[word.texto], inicio=word.inicio, fim=word.fim, confianca=0.8)
        for word in (texto.palavras if short else ())
        if word.texto in short and word.inicio > short[word.texto].fim and livre[word.inicio : word.fim] == word.texto
    ]
    taken = {each.inicio for each in again}
    return again + [
        replace(heads[word.texto][0], inicio=word.inicio, fim=word.fim, confianca=0.8)
        for word in texto.palavras
        if len(heads.get(word.texto, ())) == 1
        and word.inicio not in taken
        and word.inicio > heads[word.texto][0].fim
        and livre[word.inicio : word.fim] == word.texto
        and not _LABEL.search(livre, max(0, word.inicio - 12), word.fim + 3)
        and (
            heads[word.texto][0].nome.lower().startswith(word.texto)
            or (word.texto not in listas()[0] and _PRICED.match(livre, word.fim))
        )
    ]


def _abreviados(texto: Texto, places: Sequence[Lugar]) -> dict[str, Lugar]:
    """Return the abbreviations that the message explains: "VC = Hospital Vale Claro", "Hospital Vale Claro (HVC)"."""
    found: dict[str, Lugar] = {}
    for each in places:
        said = _EQUALS.search(texto.plano, max(0, each.inicio - 12), each.inicio)
        if said is None and (said := _BRACKETED.match(texto.plano, each.fim)) is not None:
            initials = "".join(word[0] for word in chave(each.nome).split() if word not in LINKS)
            said = said if said[1] == initials else None
        if said is None:
            continue
        first, last = texto.trecho(*said.span(1))
        if texto.fonte[first:last].isupper():
            found.setdefault(said[1], each)
    return found


def com_a_unica_cidade(texto: Texto, places: Sequence[Lugar], towns: Sequence[Cidade]) -> list[Lugar]:
    """If a message names only one town, assign the town to all places without a town."""
    outside = [town for town in towns if not _is_inside(town.inicio, places)]
    if len({(town.nome, town.uf) for town in outside}) != 1:
        return list(places)
    town = outside[0]
    where = (town.inicio, town.fim)
    state = next((said for each in outside if (said := estado_dito(texto, texto.plano, each.fim)) is not None), None)
    return [
        each if each.cidade is not None else replace(each, cidade=town.nome, uf=state, cidade_em=where)
        for each in places
    ]


def _is_inside(at: int, places: Sequence[Lugar]) -> bool:
    before = entre(places, at - 200, at + 1)
    return bool(before) and at < before[-1].fim
