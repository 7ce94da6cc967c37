"""The words that the rules know: the customer's hospitals and specialities, and the built-in lists.

``Vocabulario.de`` accepts the format of ``dados/canonicos.json``. Names are compared without case, accents and
punctuation.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import compress, count
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from app.contexts.leitura_grupos.texto.grafia import Grafias
from app.contexts.leitura_grupos.texto.texto import Palavra, chave
from batuta.kernel import dataclass

DADOS = Path(__file__).parents[1] / "dados"
T = TypeVar("T")
_LEAF: dict[str, Any] = {}
_LETRAS = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Hospital:
    """A known hospital. ``so_em`` has the regions for which an operator added the hospital's name, or None if the name
    is valid everywhere.
    """

    nome: str
    cidade: str | None = None
    uf: str | None = None
    so_em: frozenset[str] | None = None


@dataclass(slots=True, unsafe_hash=True)
class Achado(Generic[T]):
    """A known phrase that was found in a text, at ``palavras[inicio:fim]``."""

    valor: T
    inicio: int
    fim: int


class Frases(Generic[T]):
    """A tree of phrases with one word per level. A search returns the longest matching phrase."""

    __slots__ = ("_raiz",)

    def __init__(self) -> None:
        self._raiz: dict[str, Any] = {}

    def juntar(self, frase: str, valor: T) -> None:
        """Add a phrase and its value. If the tree already contains the phrase, the phrase keeps its value."""
        words = chave(frase).split()
        if not words:
            return
        node = self._raiz
        for word in words:
            node = node.setdefault(word, {})
        node.setdefault("", valor)

    def em(self, palavras: Sequence[Palavra], onde: int) -> Achado[T] | None:
        """Return the longest phrase that begins at the word ``onde``, or None."""
        node = self._raiz
        found: Achado[T] | None = None
        for place in range(onde, len(palavras)):
            node = node.get(palavras[place].texto, _LEAF)
            if not node:
                break
            if "" in node:
                found = Achado(node[""], onde, place + 1)
        return found

    def todas(self, palavras: Sequence[Palavra]) -> Iterator[Achado[T]]:
        """Yield every phrase of the tree that occurs in ``palavras``. The phrases do not overlap."""
        free, begins = 0, self._raiz
        for place in compress(count(), map(begins.__contains__, map(_LETRAS, palavras))):
            if place < free:
                continue
            found = self.em(palavras, place)
            if found is not None:
                free = found.fim
                yield found

    def palavras(self) -> Iterator[str]:
        """Yield every word that occurs in the tree's phrases."""
        waiting: list[dict[str, Any]] = [self._raiz]
        for node in waiting:
            for word, below in node.items():
                if word:
                    yield word
                    waiting.append(below)

    def valores(self) -> Iterator[T]:
        """Yield the value of every phrase in the tree."""
        waiting: list[dict[str, Any]] = [self._raiz]
        for node in waiting:
            for word, below in node.items():
                if word:
                    waiting.append(below)
                else:
                    yield below

    def valor(self, frase: str) -> T | None:
        words = [Palavra(word, 0, 0) for word in chave(frase).split()]
        found = self.em(words, 0)
        return found.valor if found is not None and found.fim == len(words) else None


@dataclass(frozen=True, slots=True)
class Vocabulario:
    """One customer's vocabulary. ``hospitais`` maps each name to all hospitals with this name, because several
    hospitals may share an alias.
    """

    hospitais: Frases[list[Hospital]]
    especialidades: Frases[str]
    feriados: frozenset[date]
    cidades: Frases[tuple[str, str]]
    grafias: Grafias

    @classmethod
    def padrao(cls) -> "Vocabulario":
        """Return a vocabulary with the built-in words and no hospital."""
        return _padrao()

    @classmethod
    def de(cls, canonicos: Mapping[str, Any]) -> "Vocabulario":
        """Build the vocabulary from the parsed content of ``canonicos.json``. Raises ValueError if the
        format is wrong.
        """
        try:
            hospitals = _hospitais(canonicos.get("hospitais", ()))
            specialities = _especialidades(canonicos.get("especialidades", ()))
            towns = _cidades(canonicos.get("hospitais", ()))
            holidays = _feriados(canonicos.get("feriados_nacionais", {}))
            spellings = Grafias(
                {*hospitals.palavras(), *specialities.palavras(), *_soltas("alvos")},
                {*towns.palavras(), *_soltas("outras"), *todas_as_palavras()},
            )
            return cls(hospitals, specialities, holidays, towns, spellings)
        except (KeyError, TypeError, AttributeError) as wrong:
            raise ValueError(
                f"the file does not have the format of canonicos.json ({wrong!r}): see docs/grupos.md"
            ) from wrong


def vale_em(
    so_em: frozenset[str] | None, cidade: str | None, uf: str | None, *, dita: str | None, regiao: str | None
) -> bool:
    """Return whether a hospital's name is valid in a town.

    ``dita`` is the town that the text states next to the name; ``regiao`` is the group's region. ``so_em`` has the
    regions for which an operator added the name; None means everywhere. In the hospital's own town, the name is always
    valid.
    """
    if so_em is None or (dita is None and (not regiao or chave(regiao) in so_em)):
        return True
    town, _, state = (regiao or "").rpartition("/") if dita is None else (dita, "", "")
    if town:
        return chave(town) == chave(cidade or "") or (cidade is None and dita is not None)
    is_state = len(state) == 2
    return not is_state or uf is None or uf == state.upper()


@cache
def municipios() -> Mapping[str, frozenset[str]]:
    """Map each municipality's name, without accents, to the states that have a municipality of this name."""
    found: dict[str, set[str]] = {}
    text = (DADOS.parents[1] / "comum" / "municipios.txt").read_text(encoding="utf-8")
    for uf, *names in (line.split("\t") for line in text.splitlines()):
        for name in names:
            found.setdefault(chave(name), set()).add(uf)
    return {name: frozenset(states) for name, states in found.items()}


@cache
def palavras() -> Mapping[str, Any]:
    """Return the phrase lists in ``dados/palavras.toml``."""
    return tomllib.loads((DADOS / "palavras.toml").read_text(encoding="utf-8"))


@cache
def palavras_soltas(name: str) -> frozenset[str]:
    """Return the single words of a word list, each line of which contains several words."""
    return frozenset(word for line in palavras()[name] for word in line.split())


@cache
def frases(*names: str) -> Frases[str]:
    """Return one tree with the phrases from the word lists in ``names``. A phrase's value is the name of its list."""
    tree = Frases[str]()
    for name in names:
        listed: Any = palavras()
        for part in name.split("."):
            listed = listed[part]
        for frase in listed:
            tree.juntar(frase, name)
    return tree


def _soltas(name: str) -> frozenset[str]:
    return frozenset(word for line in palavras()["grafia"][name] for word in line.split())


@cache
def todas_as_palavras() -> frozenset[str]:
    """Return every word in every word list. The spelling correction never changes these words."""
    found: set[str] = set()
    waiting: list[Any] = [palavras()]
    for each in waiting:
        if isinstance(each, str):
            found.update(chave(each).split())
        else:
            waiting.extend(each.values() if isinstance(each, Mapping) else each)
    return frozenset(found)


@cache
def _proprios() -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads((DADOS / "canonicos.json").read_text(encoding="utf-8"))
    return document


@cache
def _padrao() -> Vocabulario:
    return Vocabulario.de({})


def _hospitais(listed: Iterable[Mapping[str, Any]]) -> Frases[list[Hospital]]:
    """Index hospitals by name, by alias, and by short forms of the name. A short form is skipped if it is another
    hospital's alias.
    """
    tree = Frases[list[Hospital]]()
    shortened: dict[str, list[Hospital]] = {}
    for each in listed:
        only_in = each.get("so_em", {})
        for name in (each["canonico"], *each.get("aliases", ())):
            hospital = Hospital(each["canonico"], each.get("cidade"), each.get("uf"), only_in.get(chave(name)))
            known = tree.valor(name)
            if known is None:
                tree.juntar(name, [hospital])
            elif hospital not in known:
                known.append(hospital)
        for name in (*_abreviados(each["canonico"]), *_variantes((each["canonico"], *each.get("aliases", ())))):
            named = Hospital(each["canonico"], each.get("cidade"), each.get("uf"), only_in.get(chave(each["canonico"])))
            shortened.setdefault(name, []).append(named)
    for name, hospitals in shortened.items():
        if tree.valor(name) is None:
            tree.juntar(name, hospitals)
    return tree


_TROCAS = (
    ("nossa senhora", ("nossa sra", "n sra", "n s", "ns", "n senhora", "nsa sra", "nsra")),
    ("santa", ("sta", "st")),
    ("santo", ("sto",)),
    ("sao", ("s",)),
    ("hospital", ("hosp", "h")),
    ("maternidade", ("mat", "mater")),
    ("municipal", ("mun",)),
    ("regional", ("reg",)),
    ("universitario", ("univ",)),
)
_LIGAS = ("de", "da", "do", "das", "dos")


def _variantes(names: Iterable[str]) -> Iterator[str]:
    """Yield variants of each name, with common abbreviations or with another linking word: "Hospital Nossa Senhora dos
    Pampas" gives "Hosp. N. Sra. dos Pampas".
    """
    for name in map(chave, names):
        words = name.split()
        if len(words) < 2:
            continue
        shorter = [name]
        for full, forms in _TROCAS:
            shorter += [
                f" {each} ".replace(f" {full} ", f" {form} ", 1).strip()
                for each in shorter
                if f" {full} " in f" {each} "
                for form in forms
            ][:12]
        yield from shorter[1:]
        if len(words) > 2:
            links = [at for at, word in enumerate(words) if word in _LIGAS]
            yield from (" ".join((*words[:at], link, *words[at + 1 :])) for at in links for link in _LIGAS)
            yield from (" ".join((*words[:at], *words[at + 1 :])) for at in links)


_TIPOS = {"regional": "reg", "municipal": "mun", "estadual": "est", "geral": "ger", "metropolitano": "metr"}
_TIPOS |= {"universitario": "univ"}


def _abreviados(canonico: str) -> Iterator[str]:
    """Yield common short forms of "Hospital Regional de X": "Regional de X", "Hosp. Reg. X", "HR X"."""
    words = chave(canonico).split()
    if len(words) < 3 or words[0] != "hospital" or words[1] not in _TIPOS:
        return
    kind, own = words[1], words[2:]
    bare = [word for word in own if word not in ("de", "da", "do", "das", "dos", "e")]
    for name in {" ".join(own), " ".join(bare)}:
        yield from (f"{first} {name}" for first in (kind, f"hosp {kind}", f"hosp {_TIPOS[kind]}", f"h{kind[0]}"))


def _especialidades(listed: Iterable[Mapping[str, Any]]) -> Frases[str]:
    """Index specialities. The customer's names take precedence, and built-in aliases map to the customer's name."""
    tree = Frases[str]()
    for each in listed:
        for name in (each["canonico"], *each.get("aliases", ())):
            tree.juntar(name, each["canonico"])
    for each in _proprios()["especialidades"]:
        canonical = tree.valor(each["canonico"]) or each["canonico"]
        for name in (each["canonico"], *each["aliases"]):
            tree.juntar(name, canonical)
    return tree


def _feriados(listed: Iterable[str]) -> frozenset[date]:
    """Parse the dates of state and city holidays. They come from a list, because no rule can compute them."""
    return frozenset(date.fromisoformat(day) for day in listed)


def _cidades(hospitais: Iterable[Mapping[str, Any]]) -> Frases[tuple[str, str]]:
    tree = Frases[tuple[str, str]]()
    for each in hospitais:
        if each.get("cidade") and each.get("uf"):
            tree.juntar(each["cidade"], (each["cidade"], each["uf"]))
    for uf, names in _proprios()["cidades"].items():
        for name in names:
            for known_as in (name, *_proprios()["apelidos_de_cidades"].get(name, ())):
                tree.juntar(known_as, (name, uf))
    return tree
