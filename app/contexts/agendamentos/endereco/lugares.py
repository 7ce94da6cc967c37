"""Find names of municipalities and states among the words of an address."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Final, NamedTuple

from app.contexts.agendamentos.endereco.geografia import (
    ABREVIADAS,
    ESTADOS,
    TAMBEM_BAIRROS,
    Cidade,
    cidades_de,
    is_larger,
    nomes_das_cidades,
)
from app.contexts.agendamentos.texto import plano

_STATES: Final = {
    **{tuple(plano(name).split()): uf for uf, name in ESTADOS.items()},
    ("minas",): "MG",
    ("s", "catarina"): "SC",
    ("sta", "catarina"): "SC",
}
CIDADES_E_ESTADOS: Final = (("sao", "paulo"), ("rio", "de", "janeiro"))
_LONGEST: Final = 6  # number of words of the longest name
_INSIDE: Final = frozenset(["s", "h", "g", "."])  # separators that may occur inside a name
# Kinds of names, from the weakest to the strongest evidence: ``x`` a municipality of another state than the written
# one, ``o`` a small municipality while no state is written, ``T`` a larger one that shares its name with
# neighbourhoods, ``E`` a state, ``L`` a larger municipality, ``A`` a municipality of the written state.
_KINDS: Final = "xoTELA"


class _Nome(NamedTuple):
    inicio: int
    fim: int
    tipo: str


def lugares(planas: Sequence[str], pontos: Sequence[bool], antes: Sequence[str]) -> list[str]:
    """Return one code per word. If the word belongs to the name of a municipality or state, the code describes the
    word's position in that name; otherwise the code is empty.

    A code has four parts: the kind of name (``_KINDS``), the word's position in the name (``B`` begin, ``I`` inside,
    ``E`` end, ``S`` single word), a character that describes the text after the name, and ``|`` if a separator precedes
    the name. ``pontos`` says which words end with a full stop.
    """
    count = len(planas)
    written = {each.upper() for each in planas if len(each) == 2 and each.upper() in ESTADOS}
    short = frozenset(written)
    found: list[_Nome] = []
    first = _first_words()
    for i, word in enumerate(planas):
        longest = first.get(word, 0) if not pontos[i] and word not in ABREVIADAS else _LONGEST
        if not longest:
            continue
        for size in range(1, min(longest, count - i) + 1):
            if size > 1 and antes[i + size - 1] not in _INSIDE:
                break
            words = tuple(planas[i : i + size])
            if words in _STATES:
                written.add(_STATES[words])
                found.append(_Nome(i, i + size, "D" if words in CIDADES_E_ESTADOS else "E"))
            elif _cities(words, tuple(pontos[i : i + size])):
                found.append(_Nome(i, i + size, "?"))
    if not found:
        return [""] * count
    best: list[_Nome | None] = [None] * count
    for nome in sorted(found, key=lambda each: each.fim - each.inicio) if len(found) > 1 else found:
        words, dots = tuple(planas[nome.inicio : nome.fim]), tuple(pontos[nome.inicio : nome.fim])
        kind = nome.tipo
        if kind == "D":
            kind = _state_or_city(nome, found, planas, short)
        elif kind == "?":
            kind = _kind(words, _cities(words, dots), written)
        named, rank = _Nome(nome.inicio, nome.fim, kind), _KINDS.index(kind)
        for j in range(nome.inicio, nome.fim):
            other = best[j]
            if other is None or rank >= _KINDS.index(other.tipo):
                best[j] = named
    return ["" if nome is None else _describe_place(nome, i, planas, antes) for i, nome in enumerate(best)]


def _kind(words: Sequence[str], cities: Sequence[Cidade], written: set[str]) -> str:
    if any(each.uf in written for each in cities):
        return "A"
    if any(map(is_larger, cities)):
        return "T" if " ".join(words) in TAMBEM_BAIRROS else "L"
    return "x" if written else "o"


def _state_or_city(nome: _Nome, found: Sequence[_Nome], planas: Sequence[str], written: frozenset[str]) -> str:
    """Decide whether "São Paulo" or "Rio de Janeiro" names the city or the state, and return the kind of name
    (``_KINDS``). After the name of a city in that state, the name means the state.
    """
    uf = _STATES[tuple(planas[nome.inicio : nome.fim])]
    if uf in written:
        return "A"
    for other in found:
        if other.inicio > 1 and other.fim <= nome.inicio and other.tipo != "E":
            cities = _cities(tuple(planas[other.inicio : other.fim]), (False,) * (other.fim - other.inicio))
            if any(each.uf == uf and (other.fim == nome.inicio or is_larger(each)) for each in cities):
                return "E"
    return "L"


def _describe_place(nome: _Nome, i: int, planas: Sequence[str], antes: Sequence[str]) -> str:
    place = "S" if nome.fim - nome.inicio == 1 else "B" if i == nome.inicio else "E" if i == nome.fim - 1 else "I"
    if nome.fim == len(planas):
        follows = "$"
    elif len(planas[nome.fim]) == 2 and planas[nome.fim].upper() in ESTADOS:
        follows = "u"
    else:
        follows = "w" if antes[nome.fim] in _INSIDE or antes[nome.fim] in "/d?" else ","
    starts = nome.inicio == 0 or antes[nome.inicio] not in _INSIDE
    return f"{nome.tipo}{place}{follows}{'|' if starts else ''}"


@cache
def _first_words() -> dict[str, int]:
    """Map the first word of every municipality and state to the number of words in the longest name that begins with
    it.
    """
    found: dict[str, int] = {}
    for words in (*_STATES, *nomes_das_cidades()):
        found[words[0]] = max(found.get(words[0], 0), len(words))
    return found


@lru_cache(maxsize=16384)
def _cities(words: tuple[str, ...], dots: tuple[bool, ...]) -> tuple[Cidade, ...]:
    if len(words) == 1 and len(words[0]) < 2:
        return ()
    return cidades_de(tuple(f"{word}." if dot else word for word, dot in zip(words, dots, strict=True)))
