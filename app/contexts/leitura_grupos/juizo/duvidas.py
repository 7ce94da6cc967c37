"""Find reasons to doubt a message or a place name, so that a person decides about its vacancies. Such reasons are names
that may be cut, joined or part of a longer name, quoted messages, and exceptions in prices.

These reasons are fixed rules rather than features of the model, because each of them is too rare in the labelled
messages.
"""

import re
from collections.abc import Iterator, Sequence

from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.lugares import listas
from app.contexts.leitura_grupos.marcas.lugares_ditos import so_da_cidade
from app.contexts.leitura_grupos.marcas.marca import Lugar, entre
from app.contexts.leitura_grupos.texto.texto import MES, Palavra, Texto, contem
from app.contexts.leitura_grupos.texto.vocabulario import frases, municipios, palavras_soltas

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
# Matches a day that is excluded from a list: "de 10 a 14/08, exceto 12/08".
_EXCLUDED = re.compile(
    r"\b(?:exceto|menos|salvo|tirando|sem ser) (?:n?[ao]s? )?(?:dias? )?"
    r"(?:\d{1,2}\b(?! ?h)|(?:seg|ter|qua|qui|sex|sab|dom)[a-z]{0,5}\b)"
)
# Matches a price that replaces another one: "valor subiu para 1.600", "quinta subiu p 1,5k".
_RAISED = re.compile(r"\b(?:subiu|aumentou|baixou) (?:o valor )?(?:para?|pra|p/?) ?(?:r\$ ?)?\d")
# Matches the name of a holiday, but not "hoje" or "amanhã".
_ONLY_WORDS = re.compile(r"(?!hoje|hj|am(?:an|nh)|depois|fi|fds)[a-z -]+")
# Matches a day that the author corrects: "postei dia 12 mas é 13".
_TAKEN_BACK = re.compile(r"\bmas (?:na verdade )?(?:e|eh|sera|seria) (?:o )?(?:dia |n[oa] )?[\x02\d]")
# Matches a request for a shift inside an offer: "se alguém tiver um SD dia 30 eu quero".
_ALSO_WANTED = re.compile(
    r"\b(?:alguem|vcs?|voces) (?:tiver|tem|tenha)\b[^\n.!?]{0,60}\b(?:eu )?(?:quero|aceito|pego|topo)\b"
)


# Matches hours that describe two named periods together: "tarde/noite (13h às 01h)".
_JOINT = re.compile(
    r"\b(?:manha|tarde|diurno|dia|sd) ?(?:/|e|\+|-) ?(?:tarde|noite|noturno|sn)[ ,:(-]{1,3}(?:das |de )?"
    r"\d{1,2} ?(?:h|:00|hs|hrs)? ?(?:as|a|-|ate(?: as)?) ?\d{1,2}(?: ?(?:hs?|hrs|:00)\b|(?![\d/.]))"
    r"(?!\)?[ ,;|]{0,3}(?:/|e |ou )? ?\(?(?:das |de )?\d{1,2} ?(?:h|:|-|as))"
)
# Matches numbers of shifts, which may be misread as days: "2 SN e 1 SD".
_COUNTED = re.compile(
    r"(?<![\w/.,:-])(?<!dia )[1-9] (?:s[dn]|noturnos?|diurnos?|noites?)"
    r"(?= ?(?:e|\+|,) ?[1-9] (?:s[dn]|n|d)| n[oa]s? | em | p(?:ara|ra|/) )",
    re.IGNORECASE,
)
# Matches conditions of a price that the rules do not read: "1.300 até quinta", "demais dias 1.200".
_RANGE_OF_PRICE = re.compile(
    r"\b(?:ate|a partir d[aeo]|depois d[aeo]|antes d[aeo]) (?:[ao] )?(?:seg|ter|qua|qui|sex|sab|dom|dia|o dia)"
    r"|\b(?:demais|restante|resto|outr[oa]s dias|(?:[np]?r?[oa]s) outr[oa]s|primeir[oa]|ultim[oa])\b"
)
# Matches the month from which a price applies, and days with the price of other days: "emenda paga como fds".
_BY_MONTH = re.compile(
    rf"\b(?:a partir de|desde|ate|em|no mes de) (?:\d{{1,2}} ?(?:/ ?\d{{1,2}}|de) ?)?{MES}\b[^\n\d]{{0,12}}\d"
)
_PAID_LIKE = re.compile(
    r"\b(?:pag[ao]m?|vale[m]?|conta[m]?|considera(?:d[oa]|r)?|entra[m]?) (?:[a-z]+ )?(?:como|igual|valor de|preco de)\b"
)
# Matches a price that depends on another one: "feriado dobra", "fds + 100".
_ADDED = re.compile(
    r"\b(?:dobr(?:a|ado|am)\b|em dobro|(?:fds|feriados?|sab(?:ado)?|dom(?:ingo)?|noite|sn|sd|sexta) ?"
    r"(?:tem |paga |com |e )?(?:\+|mais) ?(?:r\$ ?)?\d)"
)
# A text that contains none of these parts cannot match ``_ADDED`` and is not searched.
_ADDS = ("dobr", "+", "mais ")
# Matches the part of a divided shift that the author keeps: "eu faço o dia", "fico com a noite".
_SHARED = re.compile(r"\b(?:faco|fico com|fica comigo|comigo)\b")
# Matches a day, a place or a shift that the author denies: "não é dia 12".
_IS_NOT = re.compile(
    r"\bnao (?:e|eh|sera|vai ser) (?:mais )?(?:o |a |n[oa] )?(?:dia |\d|hospital|upa|s[dn]\b|noite|noturno|diurno)"
)
# Matches a price that may be the sum of several shifts: "3.000 os dois", "total 3.000".
_SUM = re.compile(
    r"\d[\d.,]*k? (?:(?:reais )?[oa]s (?:dois|duas|tres|[2-5])|(?:no |ao |em )?total)\b"
    r"|\btotal(?: de)?:? (?:r\$ ?)?\d\.?\d{2}|\b(?:pacote|combo)\b"
    r"|\d[\d.,]*k? (?:(?:pel)?o (?:fim de semana|fds|feriadao|mes)|tudo)\b"
)
# A text that contains none of these parts cannot match ``_SUM`` and is not searched.
_SUMS = ("total", " os ", " as ", "pacote", "combo", "o fim", "o f", "o mes", "tudo")
# The same for ``_ALSO_WANTED``, for ``_EXCEPT`` and ``_EXCLUDED``, and for ``_RAISED``.
_PERSONS = ("alguem", "vc", "voces")
_EXCLUDES = ("exceto", "menos", "salvo", "tirando", "fora", "sem ser")
_RAISES = ("subiu", "aumentou", "baixou")
# The same for ``_JOINT``.
_PERIODS = ("noite", "tarde", "noturno", "sn")
_WORD_AFTER = re.compile(r" ([a-z]+)")
# Small words after which a name surely ended.
_ENDING = frozenset(("em", "no", "na", "nos", "nas", "de", "da", "do", "dia", "dias", "para", "pra", "p", "com", "c"))
_HEADS = frozenset(("hospital", "upa", "maternidade", "clinica"))


def mensagem_incerta(folha: Folha) -> bool:
    """Return whether a message has a trait that makes its vacancies uncertain, such as a quotation of another message,
    a corrected day, or an exception next to its prices.
    """
    written, plano = folha.texto.fonte, folha.texto.plano
    if ">" in written and _QUOTED.match(written):
        return True
    if contem(plano, _PERIODS) and _tem_faixa_de_dois(folha):
        return True
    if "mas " in plano and _TAKEN_BACK.search(plano):
        return True
    if contem(plano, _PERSONS) and _ALSO_WANTED.search(plano):
        return True
    if contem(plano, _SUMS) and _SUM.search(plano) and all(each.plantoes == 1 for each in folha.precos[:60]):
        return True
    if any(each.semana for each in folha.dias[:200]) and _has_counts(folha):
        return True
    if len({each.reais for each in folha.precos[:60]}) > 1 and _tem_preco_incerto(folha):
        return True
    if folha.precos and contem(plano, _ADDS) and _ADDED.search(plano):
        return True
    if ("nao " in plano and _IS_NOT.search(plano)) or ("divid" in plano and _SHARED.search(plano)):
        return True
    is_listed = "(" in written and _LISTED.search(written) is not None
    excludes = contem(plano, _EXCLUDES)
    if bool(folha.precos) and (is_listed or (excludes and _EXCEPT.search(folha.livre) is not None)):
        return True
    if (excludes and _EXCLUDED.search(plano) is not None) or (contem(plano, _RAISES) and _RAISED.search(plano)):
        return True
    return _tem_feriado_por_dia(folha)


def _tem_faixa_de_dois(folha: Folha) -> bool:
    """Return whether one range of hours follows two named periods that were read as two shifts."""
    said = _JOINT.search(folha.texto.plano)
    return said is not None and not any(
        each.inicio <= said.start() and each.ate for each in entre(folha.turnos, *said.span())
    )


def _tem_feriado_por_dia(folha: Folha) -> bool:
    """Return whether the message states its day only by the name of a holiday, such as "Natal" (Christmas)."""
    plano = folha.texto.plano
    return any(
        each.dias and not each.semana and _ONLY_WORDS.fullmatch(plano, each.inicio, each.fim) is not None
        for each in folha.dias[:5]
    )


def _has_counts(folha: Folha) -> bool:
    """Return whether the rules mistook a number of shifts for a day, such as the "2" in "2 SN: sáb e dom"."""
    counts = {each.start() for each in _COUNTED.finditer(folha.texto.fonte)}
    if not counts:
        return False
    days = (
        folha.texto.trecho(day.inicio, day.fim) for each in folha.dias[:200] if not each.semana for day in each.dias
    )
    return any(start <= at < end for start, end in days for at in counts)


def _tem_preco_incerto(folha: Folha) -> bool:
    """Return whether several prices are in words, as in a transcribed voice message, or depend on a condition such as
    "demais" (the rest) or a range. The rules do not read such conditions.
    """
    plano = folha.texto.plano
    if _BY_MONTH.search(plano) or _PAID_LIKE.search(plano):
        return True
    spoken = {each.reais for each in folha.precos[:60] if not any(map(str.isdigit, plano[each.inicio : each.fim]))}
    if len(spoken) > 1:
        return True
    return any(
        _RANGE_OF_PRICE.search(plano, max(0, each.inicio - 40), min(len(plano), each.fim + 40)) is not None
        for each in folha.precos[:60]
    )


def sem_maiusculas(folha: Folha) -> frozenset[str]:
    """Return the place names without capitals that are missing from the vocabulary and were found by their form
    ("hospital …"). The position where such a name ends is only a guess.
    """
    return frozenset(
        each.nome
        for each in folha.lugares[:200]
        if each.confianca < 1.0 and folha.texto.fonte[slice(*folha.texto.trecho(each.inicio, each.fim))].islower()
    )


def nomes_incertos(folha: Folha, unexplained: Sequence[Palavra]) -> frozenset[str]:
    """Return the place names that may be cut, joined, or part of a longer name."""
    left = {each.inicio: each for each in unexplained}
    ends = {each.fim: each for each in unexplained}
    read = _inicios(folha)
    return frozenset(
        each.nome
        for each in folha.lugares[:200]
        if any(_is_capital(folha.texto, word) for word in _vizinhas(folha, each, left, ends))
        or _is_joined(folha, each)
        or so_da_cidade(each)
        or _is_open(folha, each, read)
    )


def _inicios(folha: Folha) -> frozenset[int]:
    """Return the positions at which a mark (a recognised day, price, shift or other field) begins."""
    marks = (folha.dias, folha.turnos, folha.precos, folha.areas, folha.condicoes, folha.pagamentos, folha.fechados)
    return frozenset(each.inicio for kind in marks for each in kind) | {each.inicio for each in folha.cidades}


def _is_open(folha: Folha, place: Lugar, read: frozenset[int]) -> bool:
    """Return whether the end of a place name is unclear, for a name that was found by its form ("hospital …"). The end
    is unclear if the name has no capitals, or if the next word neither belongs to a recognised field nor usually ends a
    name.
    """
    if place.confianca == 1.0:
        return False
    texto = folha.texto
    if texto.fonte[slice(*texto.trecho(place.inicio, place.fim))].islower():
        return True
    after = _WORD_AFTER.match(texto.plano, place.fim)
    return after is not None and after.start(1) not in read and after[1] not in _ENDING


def _vizinhas(folha: Folha, place: Lugar, starts: dict[int, Palavra], ends: dict[int, Palavra]) -> Iterator[Palavra]:
    """Yield the words directly before and after a place name. A word that a rule matched is omitted."""
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
    """Return whether a place name that was found by its form ("Hospital …") may be two names: it contains a second word
    such as "hospital", ends with initials or with a town, or has many words.
    """
    if place.confianca == 1.0:
        return False
    words = folha.texto.palavras_entre(place.inicio, place.fim)
    if len(words) > LONGO or (len(words) > 2 and _is_initials(folha.texto, words)) or _ends_with_a_town(words):
        return True
    heads, (generic, _, _) = frases("lugares.cabecas"), listas()
    if any(word.texto in _HEADS for word in words[1:]) and words[0].texto not in _HEADS:
        return True
    return any(
        words[at - 1].texto in _JOIN
        and heads.em(words, at) is not None
        and (words[at - 1].texto in ("do", "da") or any(word.texto not in generic for word in words[: at - 1]))
        for at in range(2, len(words))
    )


def _ends_with_a_town(words: Sequence[Palavra]) -> bool:
    """Return whether a name ends with a town's name after other words: "UPA Vida Nova Londrina". The town's name must
    have more than four letters.
    """
    for at in range(3, len(words)):
        name = " ".join(word.texto for word in words[at:])
        if len(name) > 4 and words[at - 1].texto not in _OPEN and name in municipios():
            return name not in palavras_soltas("cidades_em_nomes")
    return False


def _is_initials(texto: Texto, words: Sequence[Palavra]) -> bool:
    """Return whether only the last of several words is in capitals: "Hospital Vida Nova RPS", but not "UPA Vida II"."""
    if words[-2].texto in _JOIN or not set(words[-1].texto) - set("iv"):
        return False
    first, end = texto.trecho(words[-1].inicio, words[-1].fim)
    start = texto.trecho(words[1].inicio, words[1].fim)
    return len(words[-1].texto) <= 4 and texto.fonte[first:end].isupper() and not texto.fonte[slice(*start)].isupper()
