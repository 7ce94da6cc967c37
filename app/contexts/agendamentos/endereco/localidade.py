"""Read neighbourhood, city and state from the parts of an address that remain after the street."""

import re
from typing import Final, NamedTuple

from app.contexts.agendamentos.endereco.geografia import (
    ESTADOS,
    TAMBEM_BAIRROS,
    Cidade,
    cidade_de,
    cidade_no_fim,
    is_larger,
    nome_da_cidade,
    uf_de,
)
from app.contexts.agendamentos.endereco.vocabulario import (
    BAIRROS,
    BAIRROS_LONGOS,
    CONJUNTOS,
    CONSTRUCOES,
    INICIAM_BAIRRO,
)
from app.contexts.agendamentos.texto import diz_nada, plano, quase, titulo

_UF_AT_END = re.compile(r"(.+?)(\s*[/\-–]\s*|\s+)([a-z]{2})\.?$", re.IGNORECASE)
_UF_AT_START = re.compile(r"([a-z]{2})\s*[/-]\s*(.{3,})$", re.IGNORECASE)
_DROPPED = re.compile(r"\A(?:bairro|bair\.|bairro:|b\.)\s*:?\s*(?=\S)", re.IGNORECASE)
_STATE_OF = re.compile(r"estado\s+(?:de|do|da)\s+", re.IGNORECASE)
_PREFIX = re.compile(r"([^\W\d_]+)(?:(\.)\s*|\s+)(?=\S)")
_INNER = re.compile(r"\b(n\.?\s?s(?:ra|enhora)|(?<=\s)(?:sta|sto|nva))\b\.?(?=\s)", re.IGNORECASE)
_OF_WATER = re.compile(r"\b[Dd][ '’]?[ÁáAa]gua\b")
_INNER_WORDS: Final = {"sta": "Santa", "sto": "Santo", "nva": "Nova"}
_SAINT = re.compile(r"(?<!\w)[Ss]\.\s?(?=[A-ZÀ-Ý][a-zà-ÿ]{2})")
_RURAL = re.compile(r"zona\s+rural\s+d[eoa]\s+(?=\S)", re.IGNORECASE)
_JOINING: Final = frozenset(["de", "da", "do", "das", "dos", "e"])


class Lugar(NamedTuple):
    bairro: str | None = None
    cidade: str | None = None
    uf: str | None = None
    complementos: tuple[str, ...] = ()  # names of buildings and estates beside the neighbourhood


class _Estado(NamedTuple):
    uf: str | None
    partes: list[str]
    cidade_em: int | None  # the part beside the state


def lugar_de(partes: list[str], *, is_city: bool = False) -> Lugar:
    """Return neighbourhood, city and state, read from the parts of an address. ``is_city`` means that the parts come
    from a "Cidade:" label.
    """
    partes = [
        _SAINT.sub("São ", parte) for parte in partes if plano(parte) not in ("brasil", "br") and not diz_nada(parte)
    ]
    uf, partes, beside = _state(partes)
    if not partes:
        return Lugar(uf=uf)
    if is_city:
        return Lugar(cidade=partes[-1], uf=uf)
    if len(partes) == 1:
        return _read_one_part(partes[0], uf)
    if beside is not None:
        cidade = partes.pop(beside)
    elif uf is not None or _is_city(partes):
        cidade = partes.pop(_likeliest(partes, uf))
    else:
        return Lugar(bairro=bairro_de(partes[0]))
    bairro, others = _neighbourhood(partes)
    return Lugar(bairro, nome_da_cidade(cidade, uf), uf, others)


def _neighbourhood(partes: list[str]) -> tuple[str | None, tuple[str, ...]]:
    """Choose the neighbourhood of several parts: not a described house, and not an estate beside another part."""
    left = [parte for parte in partes if plano(parte.split(" ")[0]) not in CONSTRUCOES] or partes
    estates = [parte for parte in left if plano(parte.split(" ")[0]).strip(".") in CONJUNTOS - {"vila", "vl"}]
    if estates and len(left) > len(estates):
        left = [parte for parte in left if parte not in estates]
        return bairro_de(left[0]), tuple(name for each in estates if (name := bairro_de(each)))
    return bairro_de(left[0]), ()


def place_behind(parte: str) -> tuple[str, tuple[str, ...]] | None:
    """Split the place off the end of a landmark: "Portão Azul Centro Abaetetuba PA"."""
    words = parte.split(" ")
    uf = uf_de(words[-1]) if len(words[-1]) == 2 else None
    found = cidade_no_fim(" ".join(words[:-1] if uf else words), uf)
    if found is None or len(found[0].split(" ")) < 2:
        return None
    before, cidade = found
    place = " ".join([cidade.nome, *([uf] if uf else [])])
    if plano(before).endswith(" centro"):
        return before[: -len(" centro")], ("Centro", place)
    return before, (place,)


def bairro_de(texto: str) -> str | None:
    """Return the full name of a neighbourhood. "Jd." becomes "Jardim"; the word "Bairro" is removed."""
    texto = _DROPPED.sub("", texto.strip(" .,;:-"), count=1)
    if diz_nada(texto):
        return None
    if plano(texto) in ("ctr", "cto"):
        return "Centro"
    texto = titulo(texto)
    found = _PREFIX.match(texto)
    if found is not None and (full := _prefix(found[1], has_stop=bool(found[2]))) is not None:
        texto = f"{full} {texto[found.end() :]}"
    texto = _OF_WATER.sub("d'Água", texto)
    return _INNER.sub(lambda word: _INNER_WORDS.get(plano(word[1]), "Nossa Senhora"), texto)


def _prefix(word: str, *, has_stop: bool) -> str | None:
    bare = plano(word)
    full = BAIRROS.get(bare)
    if full is not None:
        return full if has_stop or len(bare) > 1 else None
    if len(bare) < 5:
        return None
    return next((BAIRROS[right] for right in BAIRROS_LONGOS if quase(bare, right)), None)


def _state(partes: list[str]) -> _Estado:
    """Find the state of an address. It is a separate part, the end or beginning of a part, or the name of a state after
    a city.
    """
    for place in reversed(range(len(partes))):
        if partes[place].strip(" .").upper() in ESTADOS:
            said = partes[place].strip(" .").upper()
            left = [*partes[:place], *partes[place + 1 :]]
            return _Estado(said, left, _find_beside(left, place, said) if left else None)
    for place in reversed(range(len(partes))):
        found = _ends_with_state(partes[place], is_last=place == len(partes) - 1)
        if found is not None:
            name, its = found
            return _Estado(its, [*partes[:place], name, *partes[place + 1 :]], place)
    named = _STATE_OF.sub("", partes[-1]) if partes else ""
    uf = uf_de(named)
    if uf is not None and len(partes) > 1 and _is_state(named, partes[-2], uf, was_said=named != partes[-1]):
        return _Estado(uf, partes[:-1], len(partes) - 2)
    return _Estado(None, partes, None)


def _find_beside(left: list[str], place: int, uf: str) -> int:
    """Return the position of the city next to the state: the part before the state, or the part after it if only that
    part is a city.

    Example of a city after the state: "Tijuca, RJ, Rio de Janeiro".
    """
    known = [at for at in (place - 1, place) if 0 <= at < len(left) and _is_of(left[at], uf)]
    return known[0] if known else max(place - 1, 0)


def _is_of(parte: str, uf: str) -> bool:
    cidade = cidade_de(parte, uf)
    return cidade is not None and cidade.uf == uf and plano(parte) not in TAMBEM_BAIRROS


def _ends_with_state(parte: str, *, is_last: bool) -> tuple[str, str] | None:
    found = _UF_AT_END.match(parte)
    if (
        found is not None
        and found[3].upper() in ESTADOS
        and (found[2].strip() or is_last or _is_of(found[1], found[3].upper()))
    ):
        name = found[1].rstrip(" .,")
        last = plano(name.split(" ")[-1]).strip(".")
        if last not in _JOINING and (" " in name or last not in INICIAM_BAIRRO):
            return name, found[3].upper()
    found = _UF_AT_START.match(parte)
    if found is not None and found[1].upper() in ESTADOS:
        return found[2], found[1].upper()
    for name in (plano(each) for each in ESTADOS.values()):
        # In "Campinas São Paulo" a city of the state precedes the state's name.
        if is_last and plano(parte).endswith(f" {name}"):
            before, uf = parte[: -len(name) - 1].strip(" ,-/"), uf_de(name)
            cidade = cidade_no_fim(before, uf)
            if cidade is not None and cidade[1].uf == uf:
                return before, str(uf)
    return None


def _is_state(named: str, before: str, uf: str, *, was_said: bool) -> bool:
    """Return whether a name means the state. "São Paulo" is the state after "Campinas", and the city after a
    neighbourhood.
    """
    named_city = cidade_de(named, None)
    if was_said or named_city is None or not is_larger(named_city):
        return True
    cidade = cidade_de(before, uf)
    return cidade is not None and cidade.uf == uf and plano(before) not in TAMBEM_BAIRROS


def _read_one_part(parte: str, uf: str | None) -> Lugar:
    """Read a single part as city or neighbourhood. A known city, or a name next to its state, is a city."""
    found = cidade_no_fim(parte, uf)
    if found is not None and uf is None and found[0].endswith(f" {found[1].uf}"):  # as in "Jabaquara SP São Paulo"
        uf = found[1].uf
        found = (found[0][:-3], found[1])
    if found is not None and (uf is None or found[1].uf == uf):
        before, cidade = found
        is_whole = not before and (uf is not None or not _is_ambiguous(parte, cidade))
        if is_whole or _is_neighbourhood(before):
            return Lugar(bairro_de(before) if before else None, cidade.nome, uf)
    if uf is None:
        cidade_ = cidade_de(parte, None)
        is_city = cidade_ is not None and is_larger(cidade_) and not _is_ambiguous(parte, cidade_)
        return Lugar(cidade=cidade_.nome) if is_city and cidade_ is not None else Lugar(bairro=bairro_de(parte))
    words = parte.split(" ")
    starts = plano(words[0]).strip(".")
    if (rural := _RURAL.match(parte)) is not None:
        return Lugar("Zona Rural", nome_da_cidade(parte[rural.end() :], uf), uf)
    if starts == "centro" and len(words) > 1:
        return Lugar("Centro", nome_da_cidade(" ".join(words[1:]).strip(" -/"), uf), uf)
    if starts == "cidade" and cidade_de(" ".join(words[1:]), uf) is not None:
        return Lugar(cidade=nome_da_cidade(" ".join(words[1:]), uf), uf=uf)
    if starts in INICIAM_BAIRRO and cidade_de(parte, uf) is None:
        return Lugar(bairro=bairro_de(parte), uf=uf)
    return Lugar(cidade=nome_da_cidade(parte, uf), uf=uf)


def _is_neighbourhood(before: str) -> bool:
    """Return whether a text can be a complete neighbourhood. "Jardim" before "Paulista" is only half of a name."""
    words = [plano(word).strip(" .-/") for word in before.split(" ")]
    is_half = len(words) == 1 and (words[0] in BAIRROS or words[0] in INICIAM_BAIRRO - {"centro"})
    return bool(words[-1]) and words[-1] not in _JOINING and not is_half


def _is_ambiguous(parte: str, cidade: Cidade) -> bool:
    words = parte.split(" ")
    return plano(cidade.nome) in TAMBEM_BAIRROS or plano(words[0]).strip(".") in INICIAM_BAIRRO


def _is_city(partes: list[str]) -> bool:
    """Return whether the last part is a city without a state: a known city, or a part that follows a neighbourhood."""
    last, before = partes[-1], plano(partes[-2].split(" ")[0]).strip(".")
    if cidade_de(last, None) is not None:
        return True
    return before in INICIAM_BAIRRO and plano(last.split(" ")[0]).strip(".") not in INICIAM_BAIRRO


def _likeliest(partes: list[str], uf: str | None) -> int:
    """Return the position of the city: the last part, unless another part is the only known city of the state."""
    if uf is None or cidade_de(partes[-1], uf) is not None:
        return len(partes) - 1
    known = [place for place, parte in enumerate(partes) if (found := cidade_de(parte, uf)) and found.uf == uf]
    return known[-1] if known else len(partes) - 1
