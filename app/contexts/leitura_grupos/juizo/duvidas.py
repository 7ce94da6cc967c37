"""Find reasons to doubt a vacancy: names that may be cut, joined or part of a longer name, quoted messages, and
exceptions in prices. These reasons are too rare in the labelled messages to have a weight. A person decides about such
a vacancy.
"""

import re
from collections.abc import Iterator, Sequence

from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Lugar
from app.contexts.leitura_grupos.texto.texto import Palavra, Texto
from app.contexts.leitura_grupos.texto.vocabulario import frases, municipios, palavras, palavras_soltas

LONGO = 7
_JOIN = frozenset(("e", "ou", "do", "da"))
# Words after which the name of a town is a part of the place's name.
_OPEN = frozenset(
    ("de", "da", "do", "das", "dos", "e", "vila", "jardim", "parque", "santa", "santo", "sao", "nossa", "dom", "padre")
)
_LINK = re.compile(r" (?:d[aeo]s? |e )?")
_LINK_BEFORE = re.compile(r" (?:d[aeo]s? )?$")
_QUOTED = re.compile(r"\A\s*>[^\n]*\n(?:[^\n]*\n)*?\s*[^>\s]")
# Matches prices with an exception: "réveillon (31 SN e 01 SD) 2.500", "todos 1.500, menos domingo".
_LISTED = re.compile(
    r"\([^)\n]*\b\d{1,2} (?:sn|sd|n|d|noite|dia)\b[^)\n]*\)[ :=-]{0,3}(?:r\$ ?)?\d\.?\d{2}", re.IGNORECASE
)
_EXCEPT = re.compile(
    r"\b(?:exceto|menos|salvo|tirando|fora) (?:[ao]s? )?(?=[\x02a-z])(?:\x02|dia|noite|fds|feriado|fim de)"
)
# Matches a day that the author corrects: "postei dia 12 mas é 13".
_TAKEN_BACK = re.compile(r"\bmas (?:na verdade )?(?:e|eh|sera|seria) (?:o )?(?:dia |n[oa] )?[\x02\d]")
# Matches a request for a shift inside an offer: "se alguém tiver um SD dia 30 eu quero".
_ALSO_WANTED = re.compile(
    r"\b(?:alguem|vcs?|voces) (?:tiver|tem|tenha)\b[^\n.!?]{0,60}\b(?:eu )?(?:quero|aceito|pego|topo)\b"
)


def mensagem_incerta(folha: Folha) -> bool:
    """Return whether a message quotes another message, corrects a day, also asks for a shift, or has an exception next
    to its prices.
    """
    written, plano = folha.texto.fonte, folha.texto.plano
    if ">" in written and _QUOTED.match(written):
        return True
    if ("mas " in plano and _TAKEN_BACK.search(plano)) or _ALSO_WANTED.search(plano):
        return True
    is_listed = "(" in written and _LISTED.search(written) is not None
    return bool(folha.precos) and (is_listed or _EXCEPT.search(folha.livre) is not None)


def sem_maiusculas(folha: Folha) -> frozenset[str]:
    """Return names without capitals that were found by their shape. The end of such a name is only a guess."""
    return frozenset(
        each.nome
        for each in folha.lugares[:200]
        if each.confianca < 1.0 and folha.texto.fonte[slice(*folha.texto.trecho(each.inicio, each.fim))].islower()
    )


def nomes_incertos(folha: Folha, unexplained: Sequence[Palavra]) -> frozenset[str]:
    """Return the names of places that may be cut, joined, or part of a longer name."""
    left = {each.inicio: each for each in unexplained}
    ends = {each.fim: each for each in unexplained}
    return frozenset(
        each.nome
        for each in folha.lugares[:200]
        if any(_is_capital(folha.texto, word) for word in _vizinhas(folha, each, left, ends)) or _is_joined(folha, each)
    )


def _vizinhas(folha: Folha, place: Lugar, starts: dict[int, Palavra], ends: dict[int, Palavra]) -> Iterator[Palavra]:
    """Yield the word directly before a name and the word directly after it, each only if no rule matched the word."""
    plano = folha.texto.plano
    link = _LINK.match(plano, place.fim)
    if link is not None and (after := starts.get(link.end())) is not None:
        yield after
    before = _LINK_BEFORE.search(plano, max(0, place.inicio - 5), place.inicio)
    if before is not None and (word := ends.get(before.start())) is not None:
        line = plano.rfind("\n", 0, word.inicio) + 1
        if plano[line : word.inicio].strip(" *_"):
            yield word


def _is_capital(texto: Texto, word: Palavra) -> bool:
    return texto.fonte[texto.trecho(word.inicio, word.fim)[0]].isupper()


def _is_joined(folha: Folha, place: Lugar) -> bool:
    """Return whether a name that was found by its shape may be two names: it contains a second word such as "hospital",
    ends with initials or with a town, or has many words.
    """
    if place.confianca == 1.0:
        return False
    words = folha.texto.palavras_entre(place.inicio, place.fim)
    if len(words) > LONGO or (len(words) > 2 and _is_initials(folha.texto, words)) or _ends_with_a_town(words):
        return True
    heads, generic = frases("lugares.cabecas"), frozenset(palavras()["lugares"]["genericos"])
    return any(
        words[at - 1].texto in _JOIN
        and heads.em(words, at) is not None
        and (words[at - 1].texto in ("do", "da") or any(word.texto not in generic for word in words[: at - 1]))
        for at in range(2, len(words))
    )


def _ends_with_a_town(words: Sequence[Palavra]) -> bool:
    """Return whether a name consists of other words and then a town with a name of more than six letters: "UPA Vida
    Nova Londrina".
    """
    for at in range(3, len(words)):
        name = " ".join(word.texto for word in words[at:])
        if len(name) > 6 and words[at - 1].texto not in _OPEN and name in municipios():
            return name not in palavras_soltas("cidades_em_nomes")
    return False


def _is_initials(texto: Texto, words: Sequence[Palavra]) -> bool:
    """Return whether only the last of several words is in capitals: "Hospital Vida Nova RPS", but not "UPA Vida II"."""
    if words[-2].texto in _JOIN or not set(words[-1].texto) - set("iv"):
        return False
    first, end = texto.trecho(words[-1].inicio, words[-1].fim)
    start = texto.trecho(words[1].inicio, words[1].fim)
    return len(words[-1].texto) <= 4 and texto.fonte[first:end].isupper() and not texto.fonte[slice(*start)].isupper()
