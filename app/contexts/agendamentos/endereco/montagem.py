"""Build an address's fields from its labelled words."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from app.contexts.agendamentos.endereco.complemento import complementos
from app.contexts.agendamentos.endereco.geografia import TAMBEM_BAIRROS, cidades_de, is_larger, nome_da_cidade, uf_de
from app.contexts.agendamentos.endereco.localidade import bairro_de
from app.contexts.agendamentos.endereco.logradouro import nome_da_rua
from app.contexts.agendamentos.endereco.lugares import CIDADES_E_ESTADOS
from app.contexts.agendamentos.endereco.palavras import STRONG, Palavra
from app.contexts.agendamentos.endereco.reparos import reparar
from app.contexts.agendamentos.endereco.vocabulario import CONJUNTOS, S_N
from app.contexts.agendamentos.texto import titulo

_KM = re.compile(r"km\.?\s?([0-9]{1,4})(?:[,.]([0-9]{1,3}))?", re.IGNORECASE)
_NUMBER = re.compile(r"([0-9][0-9.]*)(?:\s?-?\s?([a-z])(?![a-z])|(-[0-9]{1,5}))?", re.IGNORECASE)
_STATE_OF = re.compile(r"\Aestado\s+d[eoa]\s+", re.IGNORECASE)
_ESTATES: Final = frozenset(CONJUNTOS) - {"vila", "vl"}
_JOINING: Final = ("de", "da", "do", "das", "dos", "e")
CAMPOS: Final = {"logradouro": "L", "numero": "N", "complemento": "C", "bairro": "B", "cidade": "M", "uf": "U"}


def trechos(etiquetas: str) -> dict[str, list[tuple[int, int]]]:
    """Map each field label to the sequences of adjacent words with that label, as pairs of positions (start, end)."""
    runs: dict[str, list[tuple[int, int]]] = {}
    start, before = 0, ""
    for at, label in enumerate(etiquetas):
        if label != before:
            if at:
                runs.setdefault(before, []).append((start, at))
            start, before = at, label
    if before:
        runs.setdefault(before, []).append((start, len(etiquetas)))
    return runs


def escrito(texto: str, lidas: Sequence[Palavra], start: int, end: int) -> str:
    """Return a range of an address's words as written, but joined by single spaces instead of their separators."""
    said = [lidas[start].texto]
    for i in range(start + 1, end):
        gap = texto[lidas[i - 1].fim : lidas[i].inicio]
        said.append(gap if lidas[i].antes in ("g", "h", "/", "s", "d") else " ")
        said.append(lidas[i].texto)
    return "".join(said).replace(S_N, "")


def campo(
    nome: str, texto: str, lidas: Sequence[Palavra], runs: Sequence[tuple[int, int]], uf: str | None
) -> str | None:
    if not runs:
        return None
    start, end = runs[0]
    if nome == "complemento":
        return _complement([_with_commas(texto, lidas, *run) for run in runs])
    if nome in ("bairro", "cidade"):
        end = next((i for i in range(start + 1, end) if lidas[i].antes[0] in STRONG), end)
    said = escrito(texto, lidas, start, end)
    if nome == "logradouro":
        if len(runs) > 1 and _is_label_between(lidas, end, runs[1][0]):
            said = f"{said} {escrito(texto, lidas, *runs[1])}"
        return nome_da_rua(said)
    if nome == "numero":
        return _number(texto[lidas[start].inicio : lidas[end - 1].fim])
    if nome == "bairro":
        return bairro_de(said)
    if nome == "cidade":
        return nome_da_cidade(said, uf)
    return _uf(said)


@lru_cache(maxsize=1024)
def _uf(said: str) -> str | None:
    return uf_de(_STATE_OF.sub("", said)) or uf_de(said.replace(".", "").replace(" ", ""))


def _is_label_between(lidas: Sequence[Palavra], start: int, end: int) -> bool:
    """Return whether a label separates a street type from the street's name, as in "Tipo: AV Nome: BRASIL"."""
    return end - start == 1 and lidas[end].antes == ":"


def _with_commas(texto: str, lidas: Sequence[Palavra], start: int, end: int) -> str:
    said = lidas[start].texto
    for i in range(start + 1, end):
        gap = texto[lidas[i - 1].fim : lidas[i].inicio]
        is_value = lidas[i].antes == ":" and "item" in lidas[i - 1].classe  # apto: 203
        strong = (lidas[i].antes[0] in STRONG and not is_value) or (
            lidas[i].antes == "/" and not lidas[i].texto[0].isdigit()
        )
        said += (", " if strong else " " if is_value else gap) + lidas[i].texto
    return said


def _number(said: str) -> str | None:
    if said.isascii() and said.isdigit():
        return said
    if S_N in said:
        return "S/N"
    if (km := _KM.search(said)) is not None:
        return f"km {km[1]}" + (f",{km[2]}" if km[2] else "")
    found = _NUMBER.search(said)
    return None if found is None else f"{found[1].replace('.', '')}{(found[2] or '').upper()}{found[3] or ''}"


def _complement(runs: Sequence[str]) -> str | None:
    itens: list[str] = []
    for said in ", ".join(runs).replace(S_N, "").split(", "):
        rest = said.strip(" ,;-/.")
        while rest:
            found = complementos(rest)
            itens += found.itens
            head, rest = _first(found.resto)
            if head:
                itens.append(bairro_de(head) or titulo(head))
    return ", ".join(itens) or None


def _first(resto: str) -> tuple[str, str]:
    """Split a text before its first complement: "Res. Vida Nova bl 12 ap 3" becomes "Res. Vida Nova" and "bl 12 ap 3"."""
    words = resto.split(" ")
    for place in range(1, len(words)):
        if len(words[place].strip(".")) > 1 and complementos(" ".join(words[place:])).itens:
            return " ".join(words[:place]), " ".join(words[place:])
    return resto, ""


def _separate(lidas: Sequence[Palavra], etiquetas: str) -> str:
    """Keep the label of one street and one city. Relabel all other words that are labelled as a street or a city. If
    the address has a street and a rural property, the rural property becomes a complement. If it has a neighbourhood
    and a housing estate, the housing estate becomes a complement.
    """
    labels = list(etiquetas)
    reparar(lidas, labels)
    if "C" in labels:
        _keep_values(lidas, labels)
    etiquetas = "".join(labels)
    streets = _parts(lidas, etiquetas, "L")
    if len(streets) > 1 and not _is_type(lidas, streets[0]):
        kept = _street(lidas, etiquetas, streets)
        for part in streets:
            if part != kept:
                is_property = "sitio" in lidas[part[0]].classe
                _move(labels, part, "C" if is_property else "B" if "B" not in labels else "X")
    cities = _parts(lidas, etiquetas, "M")
    if len(cities) > 1:
        kept = next((each for each in reversed(cities) if "U" in etiquetas[each[1] : each[1] + 1]), cities[-1])
        for part in cities:
            if part != kept:
                _move(labels, part, "B" if "B" not in labels else "X")
    places = _parts(lidas, "".join(labels), "B")
    estates = [each for each in places if lidas[each[0]].plana in _ESTATES]
    if len(estates) < len(places):
        for part in estates:
            _move(labels, part, "C")
    _repair_city(lidas, labels)
    if "M" not in labels:
        _find_city(lidas, labels)
    elif "B" not in labels and "U" not in labels:
        _find_neighbourhood(lidas, labels)
    return "".join(labels)


def _find_city(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Find the city in an address in which no word is labelled as a city. If "São Paulo" or "Rio de Janeiro" is
    labelled as the state, it becomes the city. Otherwise, if the address has several neighbourhoods and the state
    follows the last one, that neighbourhood becomes the city.
    """
    for start, end in _parts(lidas, "".join(labels), "U"):
        if " ".join([each.plana for each in lidas[start:end]]) in CIDADES_E_ESTADOS:
            _move(labels, (start, end), "M")
            return
        places = _parts(lidas, "".join(labels), "B")
        if len(places) > 1 and places[-1][1] == start:
            _move(labels, places[-1], "M")
            return


def _find_neighbourhood(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Relabel a city as a neighbourhood if the address names no state. A larger city keeps its label, unless its name
    is also a common neighbourhood name.
    """
    (start, end), *others = _parts(lidas, "".join(labels), "M")
    words = tuple(each.plana + "." * (each.texto[-1] == ".") for each in lidas[start:end])
    is_labelled = lidas[start].antes == ":"
    is_city = any(map(is_larger, cidades_de(words))) and " ".join(words) not in TAMBEM_BAIRROS
    if "L" in labels and not is_city and not is_labelled and not others:
        _move(labels, (start, end), "B")


def _keep_values(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Give a complement's value, such as the B of "Conj. B", the same label as the complement."""
    for i in range(1, len(labels)):
        is_value = lidas[i].plana.isdigit() or len(lidas[i].plana) == 1
        is_beside = lidas[i].antes in ("s", "g", ".", "h")
        if (
            labels[i - 1] == "C"
            and is_value
            and is_beside
            and "item" in lidas[i - 1].classe
            and lidas[i].plana not in ("e", "o")
        ):
            labels[i] = "C"


def _move(labels: list[str], part: tuple[int, int], label: str) -> None:
    labels[slice(*part)] = label * (part[1] - part[0])


def _is_type(lidas: Sequence[Palavra], part: tuple[int, int]) -> bool:
    """Return whether a sequence of words is only a street type without a name, such as the "R" of the exported row
    "R;DAS FLORES".
    """
    return part[1] - part[0] == 1 and "tipo" in lidas[part[0]].classe


def _street(lidas: Sequence[Palavra], etiquetas: str, parts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Choose the street if several sequences of words are labelled as a street. Prefer a street with a type ("Rua"),
    then a street that a house number follows.
    """
    typed = [
        each
        for each in parts
        if any(kind in lidas[each[0]].classe for kind in ("tipo", "rural", "brasilia", "ordinal"))
    ]
    left = typed or parts
    return next((each for each in left if etiquetas[each[1] : each[1] + 2].strip("X")[:1] == "N"), left[0])


def _repair_city(lidas: Sequence[Palavra], labels: list[str]) -> None:
    """Relabel words that precede a city's name and do not belong to it, such as "VELHA" before "MARABA"."""
    runs = _parts(lidas, "".join(labels), "M")
    if not runs:
        return
    start, end = runs[0]
    words = tuple(each.plana + "." * (each.texto[-1] == ".") for each in lidas[start:end])
    if len(words) < 2 or cidades_de(words):
        return
    for place in range(1, len(words)):
        if cidades_de(words[place:]) and len(words[place]) > 3 and words[place - 1] not in _JOINING:
            is_beside = start > 0 and labels[start - 1] == "B" and lidas[start].antes[0] not in STRONG
            labels[start : start + place] = ("B" if is_beside or "B" not in labels else "X") * place
            return


def _parts(lidas: Sequence[Palavra], etiquetas: str, label: str) -> list[tuple[int, int]]:
    """Return the start and the end of each sequence of adjacent words with the label ``label``. A strong separator,
    such as a comma, also ends a sequence.
    """
    if label not in etiquetas:
        return []
    found: list[tuple[int, int]] = []
    for i, its in enumerate(etiquetas):
        if its != label:
            continue
        if found and found[-1][1] == i and lidas[i].antes[0] not in STRONG:
            found[-1] = (found[-1][0], i + 1)
        else:
            found.append((i, i + 1))
    return found


def referencia_de(texto: str, lidas: Sequence[Palavra], etiquetas: str) -> str | None:
    """Return the landmarks that an address mentions: "próx. ao mercado" (near the market)."""
    found: list[str] = []
    for start, end in trechos(etiquetas)["X"] if "XX" in etiquetas else ():
        if end - start > 1 and any("perto" in each.classe for each in lidas[start : start + 2]):
            first = start + 1 if lidas[start + 1].antes == ":" else start
            found.append(texto[lidas[first].inicio : lidas[end - 1].fim])
    return "; ".join(" ".join(each.replace(S_N, "").split()) for each in found) or None


def campos_de(texto: str, lidas: Sequence[Palavra], etiquetas: str) -> dict[str, str | None]:
    etiquetas = _separate(lidas, etiquetas)
    found_runs = trechos(etiquetas)
    runs = {name: found_runs.get(label, []) for name, label in CAMPOS.items()}
    uf = campo("uf", texto, lidas, runs["uf"], None)
    found = {name: uf if name == "uf" else campo(name, texto, lidas, runs[name], uf) for name in CAMPOS}
    is_block = found["logradouro"] is None and (found["complemento"] or "").startswith("Quadra ")
    if is_block and (uf == "DF" or lidas[0].classe.startswith("rotulo")):
        # in Brasília the block takes the place of the street
        found["logradouro"], _, rest = str(found["complemento"]).partition(", ")
        found["complemento"] = rest or None
    return found
