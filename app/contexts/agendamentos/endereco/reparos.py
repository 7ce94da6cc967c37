"""Repair the labels that the tagger gives to the words of an address, where a rule is more reliable than a label: a name
that the tagger split, a kilometre, a code of Brasília.
"""

from collections.abc import Sequence
from typing import Final

from app.contexts.agendamentos.endereco.geografia import PARTICULAS, cidades_de
from app.contexts.agendamentos.endereco.palavras import STRONG, Palavra

_LONGEST_CITY: Final = 5  # number of words by which the name of a city is extended at most
_JOINING: Final = ("de", "da", "do", "das", "dos")
_DIRECTIONS: Final = ("norte", "sul", "leste", "oeste")
# Rural places that are a complement next to a street.
_RURAL: Final = frozenset(["ramal", "gleba", "assentamento", "assent", "vicinal", "vic", "travessao", "colocacao"])
_ESTATES: Final = frozenset(["conjunto", "conj", "cj", "residencial", "res", "resid", "loteamento", "lot"])
_NO_NAMES: Final = frozenset(["projetada", "proj"])  # "Rua Projetada 7" is a street with a number as its name
# Kinds of words that begin another part of the address, even without a separator.
_BEGINNINGS: Final = ("tipo", "item", "bairro", "predio", "longe", "marca", "km", "sitio", "rotulo", "perto")


def reparar(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Repair the labels in place."""
    kinds = {each.classe for each in lidas}
    if "km" in kinds and "N" not in labels:
        _label_kilometre(lidas, labels)
    if "brasilia" in kinds:
        _join_codes(lidas, labels)
    if any("sitio" in each for each in kinds):
        _join_properties(lidas, labels)
    _extend_city(lidas, labels)
    _join_words_of_names(lidas, labels)
    _move_rural_places(lidas, labels)
    if "B" not in labels:
        _find_estate(lidas, labels)
    _split_house_number(lidas, labels)


def is_beside(lidas: Sequence[Palavra], i: int) -> bool:
    """Return whether no strong separator, such as a comma, separates a word from the previous word."""
    return 0 < i < len(lidas) and lidas[i].antes[0] not in STRONG


def _begins_part(palavra: Palavra) -> bool:
    return any(kind in palavra.classe for kind in _BEGINNINGS)


def _label_kilometre(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Label "km 12" as the number if the address has no other number."""
    for i in range(len(lidas) - 1):
        if lidas[i].classe == "km" and labels[i] != "L" and lidas[i + 1].plana[0].isdigit() and is_beside(lidas, i + 1):
            labels[i : i + 2] = "NN"
            return


def _join_codes(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Label the number of a street in Brasília, such as the 405 of "SCLN 405", as a part of the street."""
    for i in range(len(lidas) - 1):
        if "brasilia" in lidas[i].classe and labels[i] == "L" and labels[i + 1] != "L":
            block = i + 2 < len(lidas) and lidas[i + 1].plana in ("q", "qd", "quadra")
            end = i + 3 if block else i + 2
            if lidas[end - 1].plana[0].isdigit():
                labels[i:end] = "L" * (end - i)


def _join_properties(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Give all words in the name of a rural property the label of its first word, such as "Sítio" or "Fazenda"."""
    for i in range(len(lidas) - 1):
        if (
            "sitio" not in lidas[i].classe
            or labels[i] not in "LCX"
            or (i and is_beside(lidas, i) and labels[i - 1] == labels[i])
        ):
            continue
        end = i + 1
        while is_beside(lidas, end) and labels[end] in "LCBX" and (end == i + 1 or not _begins_part(lidas[end])):
            end += 1
        if end > i + 1 and not lidas[i + 1].plana[0].isdigit() and any(each != labels[i] for each in labels[i:end]):
            others = labels[:i] + labels[end:]
            labels[i:end] = ("C" if "L" in others else "L") * (end - i)


def _extend_city(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Label all words in the name of a city as the city if the tagger labelled only the last ones: "Feira de"
    before "Santana".
    """
    if "M" not in labels:
        return
    end = len(labels) - labels[::-1].index("M")
    start = end - 1
    while is_beside(lidas, start) and labels[start - 1] == "M":
        start -= 1
    first = start
    while is_beside(lidas, first) and start - first < _LONGEST_CITY and labels[first - 1] not in "LNU":
        first -= 1
    for i in range(first, start):
        words = [each.plana + "." * (each.texto[-1] == ".") for each in lidas[i:end]]
        if cidades_de(words) and words[0] not in PARTICULAS:
            labels[i:start] = "M" * (start - i)
            return


def _join_words_of_names(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Join the parts of a name that the tagger split: the words around "de", "da" or "do", the part after a hyphen
    ("Shangri-lá"), and the direction after a block ("Quadra 104 Norte"). Separate "b." (bairro) from a house number.
    """
    for i in range(1, len(lidas)):
        left, own, right = labels[i - 1], labels[i], labels[i + 1] if i + 1 < len(labels) else ""
        if left == own == right or not is_beside(lidas, i):
            continue
        word, has_next = lidas[i], is_beside(lidas, i + 1)
        if word.plana in _JOINING and word.texto[-1] != "." and has_next:
            if left == own != right and left in "LCB" and right in "BMXC" and "rotulo" not in lidas[i + 1].classe:
                _spread(lidas, labels, i + 1, left)
            elif own == right != left and own in "LB" and left in "LMB" and lidas[i - 1].classe[0] != "n":
                _spread_back(lidas, labels, i - 1, own)
        elif word.antes == "h" and word.texto.islower() and left in "LCB" and _continues_name(lidas[i - 1]):
            labels[i] = left
        elif word.plana in _DIRECTIONS and left == "C" and own in "BX" and lidas[i - 1].plana.isdigit():
            labels[i] = "C"
        elif word.texto in ("b.", "B.") and own == "N" and has_next and right in "BM":
            labels[i] = "B"


def _continues_name(palavra: Palavra) -> bool:
    return palavra.texto[0].isupper() or palavra.antes == "h"


def _spread(lidas: Sequence[Palavra], labels: list[str], start: int, label: str) -> None:
    """Give this label to a word, and to the words beside it that have the same label and begin no other part."""
    before, end = labels[start], start + 1
    while is_beside(lidas, end) and labels[end] == before and not _begins_part(lidas[end]):
        end += 1
    if before == "M" and labels[end : end + 1] == ["U"]:
        labels[start - 1] = "X"  # "Zona Rural de Sobral/CE" ends with a city
    else:
        labels[start:end] = label * (end - start)


def _spread_back(lidas: Sequence[Palavra], labels: list[str], last: int, label: str) -> None:
    before, start = labels[last], last
    while is_beside(lidas, start) and labels[start - 1] == before and not _begins_part(lidas[start]):
        start -= 1
    labels[start : last + 1] = label * (last + 1 - start)


def _move_rural_places(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Label a rural place such as "Ramal 16" as a complement if the address also has a street."""
    if "L" not in labels:
        return
    for i, each in enumerate(lidas):
        if each.plana in _RURAL and labels[i] in "BX" and not is_beside(lidas, i):
            end = i + 1
            while is_beside(lidas, end) and labels[end] in "BNX" and lidas[end].classe != "km":
                end += 1
            labels[i:end] = "C" * (end - i)


def _find_estate(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Label a housing estate such as "Conjunto Tangará" as the neighbourhood if the address has no other one."""
    for i, each in enumerate(lidas):
        if each.plana in _ESTATES and labels[i] == "C" and not is_beside(lidas, i) and is_beside(lidas, i + 1):
            end = i + 1
            while is_beside(lidas, end) and labels[end] == "C":
                end += 1
            if len(lidas[i + 1].plana) > 2 and not any(word.plana[0].isdigit() for word in lidas[i:end]):
                labels[i:end] = "B" * (end - i)
                return


def _split_house_number(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Label the last word of a street, such as the 18 of "Rua Caracas 18", as the number if the address has no other
    number.
    """
    if "N" in labels or "L" not in labels:
        return
    end = len(labels) - labels[::-1].index("L")
    start = labels.index("L")
    if end - start < 3 or any(each != "L" for each in labels[start:end]):
        return
    last, before = lidas[end - 1], lidas[end - 2]
    is_street = "tipo" in lidas[start].classe and "br" not in lidas[start].classe
    is_name = before.plana.isalpha() and before.plana not in _NO_NAMES and before.classe not in ("km", "uf", "br", "de")
    if is_street and is_name and last.plana.isdigit() and last.antes == "s":
        labels[end - 1] = "N"
