"""States of Brazil, their CEP ranges and the larger cities with their abbreviations."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from app.contexts.agendamentos.texto import plano, quase, titulo

ESTADOS: Final[Mapping[str, str]] = {
    "AC": "Acre", "AL": "Alagoas", "AM": "Amazonas", "AP": "Amapá", "BA": "Bahia", "CE": "Ceará", "DF": "Distrito Federal",
    "ES": "Espírito Santo", "GO": "Goiás", "MA": "Maranhão", "MG": "Minas Gerais", "MS": "Mato Grosso do Sul",
    "MT": "Mato Grosso", "PA": "Pará", "PB": "Paraíba", "PE": "Pernambuco", "PI": "Piauí", "PR": "Paraná",
    "RJ": "Rio de Janeiro", "RN": "Rio Grande do Norte", "RO": "Rondônia", "RR": "Roraima", "RS": "Rio Grande do Sul",
    "SC": "Santa Catarina", "SE": "Sergipe", "SP": "São Paulo", "TO": "Tocantins",
}  # fmt: skip
# First five digits of the CEPs of a state; both ends are inclusive.
CEPS: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "SP": ((1000, 19999),), "RJ": ((20000, 28999),), "ES": ((29000, 29999),), "MG": ((30000, 39999),),
    "BA": ((40000, 48999),), "SE": ((49000, 49999),), "PE": ((50000, 56999),), "AL": ((57000, 57999),),
    "PB": ((58000, 58999),), "RN": ((59000, 59999),), "CE": ((60000, 63999),), "PI": ((64000, 64999),),
    "MA": ((65000, 65999),), "PA": ((66000, 68899),), "AP": ((68900, 68999),),
    "AM": ((69000, 69299), (69400, 69899)), "RR": ((69300, 69399),), "AC": ((69900, 69999),),
    "DF": ((70000, 72799), (73000, 73699)), "GO": ((72800, 72999), (73700, 76799)), "RO": ((76800, 76999),),
    "TO": ((77000, 77999),), "MT": ((78000, 78899),), "MS": ((79000, 79999),), "PR": ((80000, 87999),),
    "SC": ((88000, 89999),), "RS": ((90000, 99999),),
}  # fmt: skip
# Cities that share their name with many neighbourhoods. Without a state beside it, such a name is a neighbourhood.
TAMBEM_BAIRROS: Final = frozenset(
    plano(name)
    for name in (
        "Boa Vista", "Bela Vista", "Serra", "Trindade", "Palmas", "Vitória", "Viana", "Salto", "Colombo", "Sobral", "Bayeux",
        "Planaltina", "São José", "Santa Rita", "Santa Luzia", "Patos", "Nilópolis", "Barreiras", "Maricá", "Pinhais", "Formosa",
        "Santana", "Santos", "Americana", "Franca", "Lages", "Castanhal", "Valença",
    )
)  # fmt: skip
_SHORT: Final = {
    "s": ("sao", "santo", "santa"),
    "sto": ("santo",),
    "sta": ("santa",),
    "n": ("nova", "novo"),
    "nva": ("nova",),
}
_STATE_OF: Final = {plano(name): uf for uf, name in ESTADOS.items()}
_WORDS = re.compile(r"[^\W_]+'?[^\W_]*\.?")


class Cidade(NamedTuple):
    nome: str
    uf: str


class _Atlas(NamedTuple):
    by_name: dict[str, tuple[Cidade, ...]]  # short names included
    by_words: dict[int, list[tuple[tuple[str, ...], Cidade]]]  # keyed by the number of words in the name


@cache
def _atlas() -> _Atlas:
    read = tomllib.loads((Path(__file__).parent / "cidades.toml").read_text(encoding="utf-8"))
    by_name: dict[str, tuple[Cidade, ...]] = {}
    by_words: dict[int, list[tuple[tuple[str, ...], Cidade]]] = {}
    for uf, names in read["cidades"].items():
        for nome in names:
            cidade = Cidade(nome, uf)
            words = tuple(_plain_words(nome))
            by_name[" ".join(words)] = (*by_name.get(" ".join(words), ()), cidade)
            by_words.setdefault(len(words), []).append((words, cidade))
    for short, nome in read["apelidos"].items():
        by_name[plano(short)] = by_name[" ".join(_plain_words(nome))]
    return _Atlas(by_name, by_words)


def uf_de(texto: str) -> str | None:
    """Return the state (UF) for its two letters or its name."""
    word = texto.strip(" .").upper()
    return word if word in ESTADOS else _STATE_OF.get(" ".join(_plain_words(texto)))


def cep_concorda(cep: str, uf: str) -> bool:
    first = int(cep[:5])
    return any(low <= first <= high for low, high in CEPS[uf])


def cidade_de(texto: str, uf: str | None) -> Cidade | None:
    """Return the known city whose name is this text. The text may also be a short form of the name, or have one wrong
    letter.
    """
    return _cidade(texto.strip(" .-"), uf)


def cidade_no_fim(texto: str, uf: str | None) -> tuple[str, Cidade] | None:
    """Split a city off the end of a text without separator: "CENTRO SAO PAULO"."""
    words = texto.split(" ")
    for place in range(len(words)):
        cidade = _exact(_plain_words(" ".join(words[place:])), uf)
        if cidade is not None:
            return " ".join(words[:place]), cidade
    return None


def nome_da_cidade(texto: str, uf: str | None) -> str:
    """Return the full name of a known city, or else the text as written."""
    cidade = cidade_de(texto, uf)
    return titulo(texto) if cidade is None else cidade.nome


@lru_cache(maxsize=4096)
def _cidade(texto: str, uf: str | None) -> Cidade | None:
    words = _plain_words(texto)
    return _exact(words, uf) or _match_shortened(words, uf) or _match_mistyped(words, uf)


def _exact(words: list[str], uf: str | None) -> Cidade | None:
    return _prefer(_atlas().by_name.get(" ".join(word.rstrip(".") for word in words), ()), uf)


def _match_shortened(words: list[str], uf: str | None) -> Cidade | None:
    """Return the city that an abbreviation such as "Rib. Preto" means. Each word must equal or begin a word of the
    city's name, and at least one word must be complete.
    """
    known = _atlas().by_words.get(len(words), ())
    found = [cidade for name, cidade in known if _abbreviates(words, name) and (uf is None or cidade.uf == uf)]
    return found[0] if len(found) == 1 else None


def _abbreviates(words: list[str], name: tuple[str, ...]) -> bool:
    whole = False
    for word, full in zip(words, name, strict=True):
        bare = word.rstrip(".")
        if bare == full:
            whole = whole or len(full) > 3
        elif full in _SHORT.get(bare, ()):
            continue
        elif not (full.startswith(bare) and (word.endswith(".") or len(bare) <= 3)):
            return False
    return whole


def _match_mistyped(words: list[str], uf: str | None) -> Cidade | None:
    text = " ".join(words)
    if uf is None or len(text) < 6:
        return None
    known = _atlas().by_words.get(len(words), ())
    found = [cidade for name, cidade in known if cidade.uf == uf and quase(text, " ".join(name))]
    return found[0] if len(found) == 1 else None


def _prefer(found: Iterable[Cidade], uf: str | None) -> Cidade | None:
    """Return the first city in the given state, or the first city of all if none is in that state."""
    every = list(found)
    return next((each for each in every if each.uf == uf), every[0] if every else None)


def _plain_words(texto: str) -> list[str]:
    return _WORDS.findall(plano(texto))
