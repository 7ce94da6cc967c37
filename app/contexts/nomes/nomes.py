"""Names of places: normalise a name for the search, judge whether a text can be a name, and find the hospital that has
a given name.

The functions are pure: ``Nomes`` contains the known names, and ``achar`` searches them.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from app.contexts.leitura_grupos.api import Vocabulario, chave, palavras_soltas, vale_em
from app.contexts.nomes.parecidos import PROPRIOS, por_extenso, so_grafia
from batuta.kernel import dataclass

SEMELHANTE: Final = 88.0
# Highest score of a new name that resembles a known name but may be another place. A vacancy with such a name is
# reviewed.
PARECIDO: Final = 0.6
LONGEST, SHORTEST, SHORTEST_WORD = 120, 3, 5
_DADOS: Final = tomllib.loads((Path(__file__).parent / "nomes.toml").read_text(encoding="utf-8"))
_NO_COMECO: Final[Mapping[str, str]] = _DADOS["no_comeco"]
_DEPOIS: Final[Mapping[str, str]] = _DADOS["depois"]
_SAUDE: Final = frozenset(_DADOS["saude"])
_NUNCA: Final = frozenset(_DADOS["nunca"])
_STRANGE: Final = re.compile(
    r"r\$|\$ ?\d|https?:|www\.|wa\.me|@|\d{1,2}[/.]\d{1,2}(?:[/.]\d{2,4})?\b|\b\d{1,2} ?h(?:s|rs|oras)?\b|\b\d{1,2}:\d{2}\b"
    r"|\d{4,5}[ -]?\d{4}|[:{}<>\[\]]|\bname\b"
)
_SUFFIX: Final = re.compile(r"(?<!\s)(?:\s++[-–—]\s|\s*+\(|\s++/\s|\s*+\|)")


@dataclass(frozen=True, slots=True)
class Conhecido:
    """A hospital under one of its names. ``confianca`` is the certainty that the name belongs to the hospital.
    ``so_em`` has the regions for which an operator added the name; None means that the name is valid everywhere.
    """

    id: str
    nome: str
    cidade: str | None
    uf: str | None
    confianca: float
    so_em: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Achado:
    """The result of a search for a name. If no hospital has the name, ``id`` is None, and ``score`` is the probability
    that the text is a new name; 0 means that the text is not a name.
    """

    id: str | None
    score: float
    como: str  # alias | semelhante | ambiguo | novo | recusado
    motivo: str | None = None


@dataclass(frozen=True)
class Nomes:
    """The known names of hospitals and specialities. The keys are names in the normalised form used for searching. The
    values are hospitals (``hospitais``) or ids (``especialidades``).
    """

    versao: int
    vocabulario: Vocabulario
    hospitais: Mapping[str, Sequence[Conhecido]]
    especialidades: Mapping[str, str]

    @cached_property
    def formas(self) -> list[str]:
        """The normalised names with which a misspelled name is compared: confirmed names and main names, but not
        aliases that were found by similarity.
        """
        return [form for form in self.hospitais if form and self.firmes(form)]

    @cached_property
    def palavras(self) -> frozenset[str]:
        """Words that are certainly spelled correctly, such as those of confirmed names and of towns. The search does
        not treat such a word as a misspelling of a similar word.
        """
        sure = (form for form, known in self.hospitais.items() if any(each.confianca == 1.0 for each in known))
        names = (word for form in sure for word in form.split())
        return frozenset((*names, *self.vocabulario.cidades.palavras())) | PROPRIOS | palavras_soltas("nao_sao_nomes")

    def firmes(self, form: str) -> list[Conhecido]:
        return [each for each in self.hospitais[form] if each.confianca == 1.0 or busca(each.nome) == form]


def busca(nome: str) -> str:
    """Return a name in the normalised form used for searching: abbreviations at the start are expanded, and brackets
    are removed.
    """
    words = chave(re.sub(r"\([^()]{0,80}\)", " ", nome)).split()
    if not words:
        return ""
    first, *rest = words
    return " ".join([_NO_COMECO.get(first, first), *(_DEPOIS.get(word, word) for word in rest)])


def pode_ser_nome(nome: str, *, eh_especialidade: bool = False) -> tuple[float, str | None]:
    """Return the probability that a text is the name of a place, and the reason if the probability is 0."""
    plain, form = nome.strip().lower(), busca(nome)
    if len(form) < SHORTEST or not any(char.isalpha() for char in form):
        return 0.0, "curto"
    if len(plain) > LONGEST:
        return 0.0, "longo"
    if eh_especialidade or form in _NUNCA or chave(nome) in _NUNCA:
        return 0.0, "nao_e_nome"
    if _STRANGE.search(plain):
        return 0.0, "tem_outra_coisa"
    words = form.split()
    if not (set(words) - palavras_soltas("nao_sao_nomes")) and words[0] not in _SAUDE:
        return 0.0, "nao_e_nome"
    if len(words) > 1 and _SAUDE & {" ".join(words[:n]) for n in (1, 2, 3)}:
        return 0.9, None
    if len(words) > 1:
        return 0.5, None
    return (0.4, None) if len(words[0]) >= SHORTEST_WORD else (0.0, "palavra_curta")


def achar(nome: str, cidade: str | None, uf: str | None, regiao: str | None, nomes: Nomes) -> Achado:
    """Find the hospital with the name ``nome``. If a city is given, the hospital must be in that city. If several
    hospitals have the same name, the city and the group's region decide which one is meant.
    """
    for form in dict.fromkeys((busca(nome), busca(_SUFFIX.split(nome, maxsplit=1)[0]))):
        found = _choose(nomes.hospitais.get(form, ()) if form else (), cidade, uf, regiao)
        if found is not None:
            return found
    alike = _match_alike(busca(nome), cidade, uf, regiao, nomes)
    if alike is not None and alike.como != "parecido":
        return alike
    is_area = nomes.vocabulario.especialidades.valor(nome) is not None
    score, why = pode_ser_nome(nome, eh_especialidade=is_area)
    if score and alike is not None:
        return Achado(None, min(score, PARECIDO), "novo", "parecido")
    return Achado(None, score, "novo" if score else "recusado", why)


def onde(cidade: str | None, uf: str | None, regiao: str | None) -> tuple[str | None, str | None]:
    """Return the town and the state that the message names. If it names none, return the town and the state of the
    group's region.
    """
    if cidade is not None or not regiao:
        return cidade, uf
    town, _, state = regiao.rpartition("/")
    return (town or None) if len(state) == 2 else None, uf or (state if len(state) == 2 else None)


def _choose(
    known: Sequence[Conhecido], cidade: str | None, uf: str | None, regiao: str | None, *, at_most: float = 1.0
) -> Achado | None:
    fitting = [each for each in known if _is_there(each, cidade, uf, regiao)]
    if len({each.id for each in fitting}) > 1 and regiao:
        near = chave(regiao)
        fitting = [each for each in fitting if each.cidade and chave(each.cidade) in near] or fitting
    if not fitting:
        return None
    best = max(fitting, key=lambda each: each.confianca)
    if len({each.id for each in fitting}) > 1:
        return Achado(best.id, 0.6, "ambiguo", "nome_de_varios")
    how = "alias" if at_most == 1.0 else "semelhante"
    return Achado(best.id, round(min(best.confianca, at_most), 3), how)


def _is_there(known: Conhecido, cidade: str | None, uf: str | None, regiao: str | None) -> bool:
    """Return whether a known name applies in the stated town or region.

    A name that the pipeline inferred applies only in the hospital's town, because the same name in another town refers
    to another place.
    """
    if known.confianca < 1.0:
        town, state = onde(cidade, uf, regiao)
        is_town = town is None or (known.cidade is not None and chave(known.cidade) == chave(town))
        return is_town and _fits(known.uf, state)
    is_known = vale_em(known.so_em, known.cidade, known.uf, dita=cidade, regiao=regiao)
    return is_known and _fits(known.cidade, cidade) and _fits(known.uf, uf)


def _fits(known: str | None, said: str | None) -> bool:
    return not known or not said or chave(known) == chave(said)


def _match_alike(form: str, cidade: str | None, uf: str | None, regiao: str | None, nomes: Nomes) -> Achado | None:
    """Find a known name that is similar to the name in the normalised form ``form``. If the best match differs by more
    than spelling, the result's field ``como`` is ``parecido`` (similar), because the text may refer to another place.
    """
    from rapidfuzz import fuzz, process  # takes half a megabyte, which most processes never need

    if len(form) < 2 * SHORTEST:
        return None
    numbers, said, doubt = _numbers(form), por_extenso(form), None
    for other, ratio, _ in process.extract(
        said, nomes.formas, scorer=fuzz.token_sort_ratio, score_cutoff=SEMELHANTE, limit=5
    ):
        if _numbers(other) != numbers:  # UPA 1 is not UPA 2
            continue
        found = _choose(nomes.firmes(other), cidade, uf, regiao, at_most=ratio / 100 - 0.001)
        if found is not None and so_grafia(said, por_extenso(other), nomes.palavras):
            return found
        doubt = doubt or found
    return None if doubt is None else Achado(doubt.id, PARECIDO, "parecido")


def _numbers(form: str) -> frozenset[str]:
    roman = {"i", "ii", "iii", "iv", "v", "vi"}
    return frozenset(word for word in form.split() if word.isdigit() or word in roman)
