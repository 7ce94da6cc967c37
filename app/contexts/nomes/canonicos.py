"""Validate the file ``canonicos.json``, which has a customer's names, before any of the names is stored."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import cache
from typing import Any, Final, TypeGuard

from app.contexts.leitura_grupos.api import Vocabulario, chave, palavras
from app.contexts.nomes.nomes import Conhecido, Nomes, busca
from batuta import BatutaError
from batuta.kernel import is_writable

_UF: Final = re.compile(r"[A-Za-z]{2}")


class NomesErrados(BatutaError):
    """Raised for an invalid ``canonicos.json``.

    ``onde`` is the invalid entry, such as ``hospitais[2].uf``; ``motivo`` is what is wrong with it: form, name, uf, day
    or object.
    """

    sentence = "the file does not have the format of canonicos.json ({onde}: {motivo}): see docs/grupos.md"


def examinados(document: object) -> Mapping[str, Any]:
    """Return the parsed content of ``canonicos.json`` if its format and all its names are valid. Raises NomesErrados
    for the first invalid entry.
    """
    if not isinstance(document, Mapping):
        raise NomesErrados(onde="{}", motivo="object")
    for where, each in _entries(document, "hospitais"):
        for name in ("cidade", "uf"):
            if each.get(name) is not None and not _is_text(each[name]):
                raise NomesErrados(onde=f"{where}.{name}", motivo="form")
        if each.get("uf") is not None and not _UF.fullmatch(each["uf"]):
            raise NomesErrados(onde=f"{where}.uf", motivo="uf")
        _check_names(where, each, _can_be_place)
    for where, each in _entries(document, "especialidades"):
        _check_names(where, each, _can_be_area)
    days = document.get("feriados_nacionais", {})
    if not isinstance(days, Mapping | list):
        raise NomesErrados(onde="feriados_nacionais", motivo="form")
    for day in days:
        if not _is_day(day):
            raise NomesErrados(onde="feriados_nacionais", motivo="day")
    return document


def nomes_conhecidos(document: Mapping[str, Any]) -> Nomes:
    """Return the names that the dictionary will have after ``batuta grupos carregar`` has stored the content of
    ``canonicos.json``.
    """
    by_form: dict[str, list[Conhecido]] = {}
    for each in document.get("hospitais", ()):
        known = Conhecido(each["canonico"], each["canonico"], each.get("cidade"), each.get("uf"), 1.0)
        for form in {busca(name) for name in (each["canonico"], *each.get("aliases", ()))}:
            by_form.setdefault(form, []).append(known)
    vocabulary = Vocabulario.de(document) if document else Vocabulario.padrao()
    return Nomes(versao=0, vocabulario=vocabulary, hospitais=by_form, especialidades={})


def _entries(document: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    listed = document.get(kind, [])
    if not isinstance(listed, list):
        raise NomesErrados(onde=kind, motivo="form")
    for place, each in enumerate(listed):
        if not isinstance(each, Mapping):
            raise NomesErrados(onde=f"{kind}[{place}]", motivo="form")
        yield f"{kind}[{place}]", each


def _check_names(where: str, each: Mapping[str, Any], can_be: Callable[[str], bool]) -> None:
    aliases = each.get("aliases", [])
    if not isinstance(aliases, list):
        raise NomesErrados(onde=f"{where}.aliases", motivo="form")
    named = [(f"{where}.canonico", each.get("canonico"))]
    named.extend((f"{where}.aliases[{place}]", alias) for place, alias in enumerate(aliases))
    for path, name in named:
        if not _is_text(name):
            raise NomesErrados(onde=path, motivo="form")
        if not can_be(name):
            raise NomesErrados(onde=path, motivo="name")


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and is_writable(value)


def _is_day(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(date.fromisoformat(value))
    except ValueError:
        return False


def _can_be_place(name: str) -> bool:
    """Return whether a text such as "HT" or "Santa Casa" may be stored as the name of a place. Words that every offer
    contains are rejected, because they would match all offers.
    """
    return bool(busca(name)) and busca(name) not in _de_toda_oferta()


def _can_be_area(name: str) -> bool:
    is_ours = Vocabulario.padrao().especialidades.valor(name) is not None
    return bool(chave(name)) and (is_ours or chave(name) not in _de_toda_oferta())


@cache
def _de_toda_oferta() -> frozenset[str]:
    listed = (palavras()["sinais"]["plantao"], *palavras()["periodos"].values())
    return frozenset(chave(each) for phrases in listed for each in phrases)
