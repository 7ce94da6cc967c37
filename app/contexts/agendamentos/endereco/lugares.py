"""Find names of municipalities and states among the words of an address."""

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from app.contexts.agendamentos.endereco.geografia import (
    ABREVIADAS,
    ESTADOS,
    SHORT,
    TAMBEM_BAIRROS,
    Cidade,
    cidades_abreviadas,
    cidades_por_extenso,
    is_larger,
    nomes_das_cidades,
)
from app.contexts.agendamentos.texto import plano

_STATES: Final = {
    **{plano(name): uf for uf, name in ESTADOS.items()},
    "minas": "MG",
    "s catarina": "SC",
    "sta catarina": "SC",
}
CIDADES_E_ESTADOS: Final = ("sao paulo", "rio de janeiro")
SAINT_OR_NEW: Final = ("s", "n")  # the letters with which the names of many small towns are abbreviated
_LONGEST: Final = 6  # number of words of the longest name
_INSIDE: Final = frozenset(["s", "h", "g", "."])  # separators that may occur inside a name
# Kinds of names, from the weakest to the strongest evidence: ``x`` a municipality of another state than the written
# one, ``o`` a small municipality while no state is written, ``T`` a larger one that shares its name with
# neighbourhoods, ``E`` a state, ``L`` a larger municipality, ``A`` a municipality of the written state.
_KINDS: Final = "xoTELA"


class _Nome(NamedTuple):
    inicio: int
    fim: int
    nome: str
    tipo: str
    cidades: tuple[Cidade, ...]


def lugares(planas: Sequence[str], pontos: Sequence[bool], antes: Sequence[str]) -> list[str]:
    """Return one code per word. If the word belongs to the name of a municipality or state, the code describes the
    word's position in that name; otherwise the code is empty.

    A code has four parts: the kind of name (``_KINDS``), the word's position in the name (``B`` begin, ``I`` inside,
    ``E`` end, ``S`` single word), a character that describes the text after the name, and ``|`` if a separator precedes
    the name. ``pontos`` says which words end with a full stop.
    """
    found = _names(planas, pontos, antes)
    codes = [""] * len(planas)
    if not found:
        return codes
    short = {each.upper() for each in planas if len(each) == 2} & ESTADOS.keys()
    written = short | {_STATES[each.nome] for each in found if each.tipo in "DE"}
    ranks = [-1] * len(planas)
    for nome in sorted(found, key=lambda each: each.fim - each.inicio) if len(found) > 1 else found:
        kind, last = nome.tipo, nome.fim - 1
        if kind == "D":
            kind = _state_or_city(nome, found, short)
        elif kind == "?":
            kind = _kind(nome, written)
        rank, around = _KINDS.index(kind), _describe_neighbours(nome, planas, antes)
        for i in range(nome.inicio, nome.fim):
            if rank >= ranks[i]:
                place = "S" if nome.inicio == last else "B" if i == nome.inicio else "E" if i == last else "I"
                codes[i], ranks[i] = f"{kind}{place}{around}", rank
    return codes


def _names(planas: Sequence[str], pontos: Sequence[bool], antes: Sequence[str]) -> list[_Nome]:
    """Find all names of municipalities and states. ``tipo`` is ``E`` for a state, ``D`` for a name that a state and a
    city share, and ``?`` for a municipality.
    """
    beginnings, words_of_names = _beginnings(), _words_of_names()
    is_short = [dot or word in ABREVIADAS for word, dot in zip(planas, pontos, strict=True)]
    found: list[_Nome] = []
    for i, word in enumerate(planas):
        longest = _LONGEST if is_short[i] else beginnings.get(word, 0)
        if not longest:
            continue
        nome, has_short = word, is_short[i]
        for end in range(i + 1, min(i + longest, len(planas)) + 1):
            if end > i + 1:
                following = planas[end - 1]
                if antes[end - 1] not in _INSIDE or not (is_short[end - 1] or following in words_of_names):
                    break
                nome = f"{nome} {following}"
                has_short = has_short or is_short[end - 1]
            cities = cidades_por_extenso(nome)
            if not cities and has_short and end > i + 1:
                cities = cidades_abreviadas([f"{planas[j]}." if pontos[j] else planas[j] for j in range(i, end)])
                if len(word) == 1 and word not in SAINT_OR_NEW:  # "V. Nova" is rather a neighbourhood
                    cities = tuple(filter(is_larger, cities))
            if nome in _STATES:
                found.append(_Nome(i, end, nome, "D" if nome in CIDADES_E_ESTADOS else "E", cities))
            elif cities:
                found.append(_Nome(i, end, nome, "?", cities))
            elif end == i + 2 and nome not in beginnings and True not in is_short[i : i + longest]:
                break
    return found


def _kind(nome: _Nome, written: set[str]) -> str:
    if any(each.uf in written for each in nome.cidades):
        return "A"
    if any(map(is_larger, nome.cidades)):
        return "T" if nome.nome in TAMBEM_BAIRROS else "L"
    return "x" if written else "o"


def _state_or_city(nome: _Nome, found: Sequence[_Nome], written: set[str]) -> str:
    """Decide whether "São Paulo" or "Rio de Janeiro" names the city or the state, and return the kind of name
    (``_KINDS``). After the name of a city in that state, the name means the state.
    """
    uf = _STATES[nome.nome]
    if uf in written:
        return "A"
    for other in found:
        is_before = other.inicio > 1 and other.fim <= nome.inicio and other.tipo != "E"
        if is_before and any(each.uf == uf and (other.fim == nome.inicio or is_larger(each)) for each in other.cidades):
            return "E"
    return "L"


def _describe_neighbours(nome: _Nome, planas: Sequence[str], antes: Sequence[str]) -> str:
    """Return a character that describes the text after a name, and ``|`` if a separator precedes the name."""
    if nome.fim == len(planas):
        follows = "$"
    elif len(planas[nome.fim]) == 2 and planas[nome.fim].upper() in ESTADOS:
        follows = "u"
    else:
        follows = "w" if antes[nome.fim] in _INSIDE or antes[nome.fim] in "/d?" else ","
    return follows if nome.inicio and antes[nome.inicio] in _INSIDE else f"{follows}|"


@cache
def _words_of_names() -> frozenset[str]:
    """Return all words in the names of municipalities and states, and the beginnings of these words that may be written
    without a full stop.
    """
    words = {word for name in (*_STATES, *map(" ".join, nomes_das_cidades())) for word in name.split(" ")}
    return frozenset(words | {word[:size] for word in words for size in range(1, SHORT + 1)})


@cache
def _beginnings() -> dict[str, int]:
    """Map the first word and the first two words of every municipality and state to the number of words in the longest
    name that begins with them.
    """
    found: dict[str, int] = {}
    for words in (*(name.split(" ") for name in _STATES), *nomes_das_cidades()):
        for beginning in {words[0], " ".join(words[:2])}:
            found[beginning] = max(found.get(beginning, 0), len(words))
    return found
