"""Decide the scope of a request to stop: all messages of this service, or only one topic, such as one shift."""

import re
from collections.abc import Sequence
from typing import Final

from app.contexts.leitura_conversas.lexico import terms
from app.contexts.leitura_conversas.padroes import named
from app.contexts.leitura_conversas.texto import Frase, Palavra

_SKIPPED: Final = frozenset(("MAIS", "ME", "EDUCADO", "AFF", "VOCE", "NAO", "PALAVRAO"))
_ARTICLES: Final = terms(
    "o a os as um uma uns umas esse essa esses essas este esta estes estas seu sua seus suas tal tais nem "
    "tantas tanta tanto tantos todas tipo "
    "todos outra outras outro outros mais por favor ai la aki de nao ate esas ese eses esa"
)
# Words after a preposition that do not narrow a request.
_WIDE: Final = terms(
    "novo vez moral boa real humildade serio mim favor gentileza aki forma hipotese jeito maneira modo agora "
    "diante vez verdade mim eu gente "
    "whatsapp uats zap uhats telefone selular sel upp numero numeros linha selulares meu minha meus "
    "comigo julia geral tipo alguma espesie "
    "vcs vc vose voses enpresa robo nada nenhum nenhuma isso forever nosa nos familia casa canal meio ora "
    "hora presente"
)
_PREPOSITIONS: Final = terms(
    "de da do das dos d em no na nos nas nese nesa neste nesta neses nesas dese desa deste desta pra para "
    "p pro pros pras por pelo "
    "pela com sem abaixo asima sobre so exseto longe aos ao ate naquele naquela daquele dakele dakela "
    "nakele nakela menor fora"
)
_NARROW: Final = frozenset(("DIA", "ESPECIALIDADE", "NUM"))
_TIME = named("escopo", "time")
_NEAR: Final = 9


def object_of(after: Sequence[Palavra]) -> Palavra | None:
    """Return the first word after a verb that names the verb's object, or None if this part of the sentence has none."""
    for each in after[:6]:
        if each.texto == ",":
            return None
        if (
            each.texto in _AGAIN
            or each.texto in _ARTICLES
            or (each.marcas & _SKIPPED and not each.marcas & {"ISSO", "MSG", "NUMERO"})
        ):
            continue
        return each
    return None


def is_narrow(after: Sequence[Palavra], *, of_messages: bool = False, of_offers: bool = False) -> bool:
    """Return whether the words after an object restrict it: "vaga de pediatria", "plantão em Santos", "plantão
    noturno".

    ``of_messages`` means that the object is messages: an unknown word after it restricts nothing, while elsewhere it
    names a place. ``of_offers`` means that the object is offers: an unknown word right after it is an adjective, as
    in "vaga fixa".
    """
    for at, each in enumerate(after[:3]):
        if each.texto == ",":
            return False
        if each.marcas & _NARROW or each.texto in ("noturno", "diurno", "aki perto", "longe", "barato", "asim"):
            return True
        if of_offers and at == 0 and not each.marcas:
            return True
        if of_offers and each.texto in terms("com sem"):
            return not _is_wide(after[at + 1 : at + 4])
        if each.texto in _CAUSES:
            return _restricts(after[at + 1 : at + 4], _NARROW | {"PAGAMENTO"})
        if each.texto in _PREPOSITIONS:
            if of_messages:
                return _restricts(after[at + 1 : at + 4], _NARROW | {"TRABALHO", "OBJETO"})
            return _names_one_offer(after[at : at + 2]) or not _is_wide(after[at + 1 : at + 4])
        if not each.marcas & {"MAIS", "ME", "EDUCADO", "NADA", "NAO", "AFF", "LEVE", "OFERTA", "MSG", "PALAVRAO"}:
            return False
    return False


_CAUSES: Final = terms("por pelo pela sem sob com c")


def _restricts(words: Sequence[Palavra], marks: frozenset[str]) -> bool:
    for each in words:
        if each.texto == ",":
            return False
        if each.marcas & marks and not each.marcas & {"OFERTA", "MSG", "NUMERO", "EDUCADO"}:
            return True
    return False


def _names_one_offer(words: Sequence[Palavra]) -> bool:
    """Return whether the words name one particular offer: "nessa vaga", "desse plantão"."""
    return (
        len(words) == 2
        and words[0].texto in _THIS
        and words[1].texto in terms("vaga plantao oportunidade oferta proposta")
    )


_AGAIN: Final = terms("novo dnv denovo novamente")
_THIS: Final = terms("nesse nessa neste nesta desse dessa deste desta pelo pela daquele daquela")


def _is_wide(words: Sequence[Palavra]) -> bool:
    for each in words:
        if each.texto == ",":
            return True
        if each.texto in _WIDE or each.marcas & {"ME", "VOCE", "NUMERO", "OFERTA", "MSG", "NADA", "CONTATO"}:
            return not each.marcas & {"ESPECIALIDADE"} or each.texto in _WIDE
        if each.texto not in _ARTICLES and each.texto not in terms("noso vosa"):
            return False
    return True


def has_time_limit(frase: Frase, start: int, end: int, *, before: int = 4) -> bool:
    """Return whether the words around a request limit it to hours or days: "não me liga antes das 9", "essa semana não
    me chama".
    """
    commas = [at for at, each in enumerate(frase.palavras) if each.texto == ","]
    first = max(
        [0, start - before, *(at + 1 for at, each in enumerate(frase.palavras[:start]) if each.texto in (",", "e"))]
    )
    last = min([len(frase.palavras), end + _NEAR, *(at for at in commas if at >= end)])
    stop = frase.inicios[last] if last < len(frase.inicios) else len(frase.escrita)
    return first < last and _TIME.search_within(frase, frase.inicios[first], stop) is not None


def goes_to_others(after: Sequence[Palavra]) -> bool:
    """Return whether the request is about other people: "Não manda pra mais ninguém"."""
    written = " ".join(each.texto for each in after[:7])
    return (
        re.search(
            r"^(?:\S+ ){0,3}(?:pra|para|pro|pros|pras|p|ao|aos|a) (?:o |a |os |as |mais |meu |minha |meus )?"
            r"(?:ningem|ninguem|outr[oa]s?|ele|ela|eles|elas|ospital|hospital|colegas?|coordenad\w+|medicos?|email|esposa|marido|secretari\w+|mae|sosi\w+)\b",
            written,
        )
        is not None
    )
