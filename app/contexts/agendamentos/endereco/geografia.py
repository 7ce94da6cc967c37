"""Brazil's states with their CEP ranges, and all its municipalities with their abbreviations."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
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
# Cities that share their name with many neighbourhoods. If no state follows the name, it means the neighbourhood.
TAMBEM_BAIRROS: Final = frozenset(
    plano(name)
    for name in (
        "Boa Vista", "Bela Vista", "Serra", "Trindade", "Palmas", "Vitória", "Viana", "Salto", "Colombo", "Sobral", "Bayeux",
        "Planaltina", "São José", "Santa Rita", "Santa Luzia", "Patos", "Nilópolis", "Barreiras", "Maricá", "Pinhais", "Formosa",
        "Santana", "Santos", "Americana", "Franca", "Lages", "Castanhal", "Valença",
    )
)  # fmt: skip
# Short forms of words in the name of a municipality.
ABREVIADAS: Final = {
    "s": ("sao", "santo", "santa"),
    "sto": ("santo",),
    "sta": ("santa",),
    "n": ("nova", "novo", "nossa"),
    "sra": ("senhora",),
    "nsa": ("nossa",),
    "rib": ("ribeirao",),
    "f": ("feira",),
    "j": ("juiz", "joao"),
    "v": ("vila",),
    "nva": ("nova",),
    "pres": ("presidente",),
    "pte": ("presidente",),
    "gov": ("governador",),
    "cel": ("coronel",),
    "dq": ("duque",),
}
PARTICULAS: Final = frozenset(["de", "da", "do", "das", "dos", "e", "d"])
SHORT: Final = 3  # a shorter or equally long beginning of a word is an abbreviation without a full stop
_STATE_OF: Final = {plano(name): uf for uf, name in ESTADOS.items()}
_WORDS = re.compile(r"[^\W_]+\.?")


class Cidade(NamedTuple):
    nome: str
    uf: str


class _Conhecida(NamedTuple):
    lugar: int  # position in the list of municipalities; larger cities come first
    palavras: tuple[str, ...]  # the words of the name, with or without "de", "do" and the like
    cidade: Cidade


class _Atlas(NamedTuple):
    by_name: dict[str, tuple[Cidade, ...]]  # nicknames included; larger cities first
    # keyed by each word of the name that has more than three letters, the number of words and the first letter
    by_word: dict[tuple[str, int, str], list[_Conhecida]]
    by_state: dict[tuple[str, int, str], list[tuple[str, Cidade]]]  # keyed by state, number of words and first letter
    larger: frozenset[Cidade]


@cache
def _atlas() -> _Atlas:
    import tomllib  # the process that reads a spreadsheet uses only the states

    here = Path(__file__).parent
    read = tomllib.loads((here / "cidades.toml").read_text(encoding="utf-8"))
    larger = [Cidade(nome, uf) for uf, names in read["cidades"].items() for nome in names]
    lines = (here.parents[1] / "comum" / "municipios.txt").read_text(encoding="utf-8").splitlines()
    every = [Cidade(nome, uf) for uf, *names in (line.split("\t") for line in lines) for nome in names]
    by_name: dict[str, tuple[Cidade, ...]] = {}
    by_word: dict[tuple[str, int, str], list[_Conhecida]] = {}
    by_state: dict[tuple[str, int, str], list[tuple[str, Cidade]]] = {}
    for place, cidade in enumerate(dict.fromkeys([*larger, *every])):
        words = tuple(_plain_words(cidade.nome))
        by_name[" ".join(words)] = (*by_name.get(" ".join(words), ()), cidade)
        for name in {words, tuple(each for each in words if each not in PARTICULAS)}:
            for word in {each for each in name if len(each) > SHORT}:
                by_word.setdefault((word, len(name), name[0][0]), []).append(_Conhecida(place, name, cidade))
        by_state.setdefault((cidade.uf, len(words), words[0][0]), []).append((" ".join(words), cidade))
    for short, nome in read["apelidos"].items():
        meant = by_name[" ".join(_plain_words(nome))][0]
        by_name[plano(short)] = (meant, *by_name.get(plano(short), ()))
    return _Atlas(by_name, by_word, by_state, frozenset(larger))


def uf_de(texto: str) -> str | None:
    """Return a state's two-letter abbreviation (UF). The text may be the abbreviation or the state's name."""
    word = texto.strip(" .").upper()
    return word if word in ESTADOS else _STATE_OF.get(_expand(texto))


@lru_cache(maxsize=512)
def _expand(texto: str) -> str:
    """Return the text in lower case without accents, with "S. Catarina" expanded to "santa catarina"."""
    words = " ".join(word.rstrip(".") for word in _plain_words(texto))
    return {
        "s catarina": "santa catarina",
        "sao catarina": "santa catarina",
        "sta catarina": "santa catarina",
        "s paulo": "sao paulo",
        "minas": "minas gerais",
        "rio grande": "rio grande do sul",
    }.get(words, words)


def cep_concorda(cep: str, uf: str) -> bool:
    first = int(cep[:5])
    return any(low <= first <= high for low, high in CEPS[uf])


def cidade_de(texto: str, uf: str | None) -> Cidade | None:
    """Return the municipality that a text names. The text may be a short form of the name, or have one wrong letter."""
    return _cidade(texto.strip(" .-"), uf)


def cidades_de(words: Sequence[str]) -> tuple[Cidade, ...]:
    """Return the municipalities that the words in ``words`` name. The words must be in lower case without accents. A
    short form such as "s. caetano do sul" is accepted.
    """
    found = cidades_por_extenso(" ".join([word.rstrip(".") for word in words]))
    if not found and any(word in ABREVIADAS or word[-1] == "." for word in words):
        found = cidades_abreviadas(words)
    return found


def cidades_por_extenso(nome: str) -> tuple[Cidade, ...]:
    """Return the municipalities with this full name or nickname, in lower case without accents."""
    return _atlas().by_name.get(nome, ())


def nomes_das_cidades() -> list[tuple[str, ...]]:
    """Return all names and nicknames of municipalities. Each name is a tuple of words in lower case without accents."""
    return [tuple(name.split(" ")) for name in _atlas().by_name]


def is_larger(cidade: Cidade) -> bool:
    return cidade in _atlas().larger


def nome_da_cidade(texto: str, uf: str | None) -> str:
    """Return the full name of a municipality. An unknown name is returned as written."""
    cidade = cidade_de(texto, uf)
    return titulo(texto) if cidade is None else cidade.nome


@lru_cache(maxsize=4096)
def _cidade(texto: str, uf: str | None) -> Cidade | None:
    words = _plain_words(texto)
    if not words:
        return None
    exact = cidades_por_extenso(" ".join([word.rstrip(".") for word in words]))
    return _prefer(exact, uf) or _prefer_known(cidades_abreviadas(words), uf) or _match_mistyped(words, uf)


def cidades_abreviadas(words: Sequence[str]) -> tuple[Cidade, ...]:
    """Return the municipalities to which an abbreviation such as "Rib. Preto" may refer. Each word of the abbreviation
    must equal the corresponding word of the full name, be the beginning of that word, or be a usual abbreviation of
    that word. At least one word longer than three letters must be written in full. Words such as "do" may be missing:
    "S. J. Rio Preto".
    """
    by_word, count, initial = _atlas().by_word, len(words), words[0][0]
    known: Collection[_Conhecida] = ()
    for word in words:
        if len(word) > SHORT and word[-1] != "." and word not in ABREVIADAS:
            # The full name contains a long word without a full stop, so the rarest such word gives all candidates.
            found = by_word.get((word, count, initial))
            if found is None:
                return ()
            known = found if not known or len(found) < len(known) else known
    bare = [word.rstrip(".") for word in words]
    known = known or {each for word in bare for each in by_word.get((word, count, initial), ())}
    return tuple([each.cidade for each in sorted(known) if _abbreviates(words, bare, each.palavras)]) if known else ()


def _abbreviates(words: Sequence[str], bare: Sequence[str], name: Sequence[str]) -> bool:
    for word, said, full in zip(words, bare, name, strict=True):
        if said == full or full in ABREVIADAS.get(said, ()):
            continue
        if not full.startswith(said) or (word[-1] != "." and len(said) > SHORT):
            return False
    return True


def _match_mistyped(words: list[str], uf: str | None) -> Cidade | None:
    text = " ".join(words)
    if uf is None or len(text) < 6:
        return None
    known = _atlas().by_state.get((uf, len(words), words[0][0]), ())
    found = [cidade for name, cidade in known if quase(text, name)]
    return found[0] if len(found) == 1 else None


def _prefer(found: Iterable[Cidade], uf: str | None) -> Cidade | None:
    """Choose one of several municipalities: the first one in the given state or, if none is in that state, the first
    one.
    """
    every = list(found)
    return next((each for each in every if each.uf == uf), every[0] if every else None)


def _prefer_known(found: Sequence[Cidade], uf: str | None) -> Cidade | None:
    """Return the only city to which an abbreviation can refer, or None if several remain. Cities outside the given
    state are ignored. If the abbreviation still fits several cities, the smaller ones are ignored too.
    """
    of_state = [each for each in found if each.uf == uf] if uf is not None else list(found)
    if len(of_state) != 1:
        of_state = [each for each in of_state if is_larger(each)]
    return of_state[0] if len(of_state) == 1 else None


def _plain_words(texto: str) -> list[str]:
    return _WORDS.findall(plano(texto))
