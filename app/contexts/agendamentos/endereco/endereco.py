"""Split a typed address into fields with rules. No model or network is used, and no value is guessed.

The text is split at commas, bars, line ends and hyphens with a space. The part that begins like a street is the
street. Number and complement follow the street. The remaining parts name the place and are read from the end: state,
city, neighbourhood. A field that the text does not contain is None.
"""

import re
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, NamedTuple

from app.contexts.agendamentos.endereco.complemento import complementos
from app.contexts.agendamentos.endereco.geografia import cep_concorda, nome_da_cidade, uf_de
from app.contexts.agendamentos.endereco.localidade import bairro_de, lugar_de, place_behind
from app.contexts.agendamentos.endereco.logradouro import (
    COMMA,
    NUMERO_SO,
    S_N,
    SEM_NUMERO,
    Rua,
    numero_no_inicio,
    rua_de,
    rua_rural_de,
)
from app.contexts.agendamentos.endereco.vocabulario import CONJUNTOS, PROPRIEDADES, REFERENCIAS
from app.contexts.agendamentos.texto import diz_nada, limpo, plano

CEP_DE_OUTRA_UF: Final = "cep_de_outra_uf"
CEP_INVALIDO: Final = "cep_invalido"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endereco:
    logradouro: str | None = None
    numero: str | None = None
    complemento: str | None = None
    bairro: str | None = None
    cidade: str | None = None
    uf: str | None = None
    cep: str | None = None
    referencia: str | None = None
    avisos: tuple[str, ...] = ()

    @property
    def diz_algo(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self) if each.name not in ("avisos", "referencia"))


_TEXTS: Final = tuple(each.name for each in fields(Endereco) if each.name != "avisos")
_MARKS_INSIDE = re.compile(rf"{COMMA}|{S_N}|\s\s|\n|^\s|\s$")
_CEP_LABEL = re.compile(
    r"\(?\bc\.?\s?e\.?\s?p(?![a-z])[\s.:=\-nº°]*([0-9][0-9.\- ]{0,14}[0-9]|[0-9]|)(?![0-9])\)?", re.IGNORECASE
)
# A space inside a CEP counts only at the end of a part: elsewhere "12345 678" may be a house and a flat.
_CEP_BARE = re.compile(
    r"(?<![0-9./-])[0-9]{2}\.?[0-9]{3}(?:[-.]?[0-9]{3}(?![0-9]|[-./][0-9])|\s[0-9]{3}(?=\s*(?:$|[,;|\n)])))"
)
_MARKS: Final = frozenset("nN#")
_LIVES_AT = re.compile(r"\A(?:reside(?:nte)?|mora(?:dora?)?|domiciliad[oa])\s+(?:[àa]|n[ao]|em)\s+", re.IGNORECASE)
_SIGN_BEHIND = re.compile(  # R-das Flores, Av: Brasil, Jd/ Modelo
    r"(?<!\w)(r|av|rua|avenida|tv|trav|travessa|al|alameda|p[çc]a|pra[çc]a|estr|estrada|rod|rodovia|lgo|largo|vl|jd|pq|ed|cond|apto|ap|bl|cs)"
    r"\.?\s?[-:;/]+\s?(?=[^\W\d_]{2})",
    re.IGNORECASE,
)
_PHONE = re.compile(
    r"\b(?:telefone|fone|tel|cel|celular|whats|whatsapp|zap|contato)s?\b[\s.:]*\+?[0-9() .\-]{8,20}", re.IGNORECASE
)
_PARENTHESES = re.compile(r"[(\[]([^()\[\]]{0,120})[)\]]")
_LABEL = re.compile(
    r"(?<!\w)(logradouro|endere[cç]o(?:\s(?:completo|residencial))?|end|rua|r|n[º°o]?|n[uú]mero|num|compl(?:emento)?"
    r"|bairro|bair|b|(?:cidade|munic[ií]pio)\s?[/-]\s?(?:uf|estado)|cidade|munic[ií]pio|mun|cid|uf|estado"
    r"|refer[eê]ncia|ref|ponto de refer[eê]ncia)\s?\.?\s?[:=]\s*",
    re.IGNORECASE,
)
_FIELD_OF: Final = {
    "bairro": "bairro", "bair": "bairro", "b": "bairro", "n": "numero", "cidade": "cidade",
    "municipio": "cidade", "mun": "cidade", "cid": "cidade", "uf": "uf",
    "estado": "uf", "no": "numero", "numero": "numero", "num": "numero", "compl": "complemento", "complemento": "complemento",
    "referencia": "referencia", "ref": "referencia", "ponto de referencia": "referencia",
}  # fmt: skip
# Labels that are valid without a colon.
_UNMARKED = re.compile(
    r"(?<=[\s,])(?:(bairro)|compl(?:emento)?\b\.?|(?:cidade|munic[ií]pio)\s+d[eo]\b|(?:estado|uf)(?=\s+[a-z]{2}\b))(?=\s)",
    re.IGNORECASE,
)
_KM = re.compile(r"\bkm\.?\s?([0-9]{1,4})(?:[,.]([0-9]{1,3}))?(?![0-9])", re.IGNORECASE)
_PARTS = re.compile(
    r"\s*[,;|\n()\[\]]+\s*|\s+[-/•·]+\s*|(?<=\S)-\s+|(?<=[^\W\d_])/(?=[^\W\d_]{3})|(?<=[0-9])/(?=[^\W\d_]{2})"
    r"|(?<=[^\W\d_]{2})/(?=[0-9])|(?<=[\w.])/(?=(?:r|av|al|tv|jd|vl|pq|st|ap|bl|cs|sl|lj|ed|cj|qd|lt|km|n)\b[\s.:-])|(?<=[0-9])\.\s+|(?<=[^\W\d_]{6})\.\s+"
)


# A street, a landmark or a value written without a comma before it.
_BEFORE_STREET = re.compile(
    r"(?<![\s.][daneo])(?<!\s[dn][aeo])(?<!com)\s+(?=(?:rua|r\.?|av\.?|avenida|trav\.?|travessa|tv\.?|alameda|al\.|estr\.?|estrada|rodovia|rod\."
    r"|p[çc]a\.?|pra[çc]a|caminho)\s+\S)",
    re.IGNORECASE,
)
_BEFORE_LANDMARK = re.compile(
    r"(?<=[\w.])\s+(?=(?:px|prox|pr[oó]xim[oa]|perto|em frente|de frente|ao lado|atr[aá]s|por tr[aá]s|esquina|esq|port[aã]o"
    r"|defronte|em cima|vizinh[oa])\b)",
    re.IGNORECASE,
)
_VALUE_INSIDE = re.compile(
    r"(?<=\w)\s+(?=(?:bl|bloco|ap|apto|apt|casa|cs|torre|qd|lt|lote)\.?\s?(?:[0-9]|[a-z]\b))", re.IGNORECASE
)


class _Rotulados(NamedTuple):
    livre: str
    campos: dict[str, str]


@dataclass(slots=True)
class _Leitura:
    """The fields read so far. ``lugar`` has the parts that name the place, in order; ``referencias`` has the landmarks."""

    logradouro: str | None = None
    numero: str | None = None
    itens: list[str] = field(default_factory=list)
    lugar: list[str] = field(default_factory=list)
    referencias: list[str] = field(default_factory=list)


def endereco_de(texto: str) -> Endereco:
    bare = limpo(texto)
    if diz_nada(bare):
        return Endereco()
    resto, cep, avisos = _split_cep(_SIGN_BEHIND.sub(r"\1 ", _LIVES_AT.sub("", bare)))
    resto, referencias = _split_landmarks(resto)
    rotulados = _read_labels(_PHONE.sub(" ", resto))
    lida = _leitura(_parts(rotulados.livre))
    if "numero" in rotulados.campos and lida.logradouro and lida.numero and lida.numero.isdigit():
        lida.logradouro = f"{lida.logradouro} {lida.numero}"
    lugar = lugar_de(lida.lugar)
    is_labelled = bool(rotulados.campos)
    if (
        lida.logradouro is None
        and (lugar.uf == "DF" or is_labelled)
        and lida.itens
        and lida.itens[0].startswith("Quadra")
    ):
        lida.logradouro = lida.itens.pop(0)
    endereco = Endereco(
        logradouro=lida.logradouro,
        numero=lida.numero,
        complemento=", ".join([*(each for each in lida.itens if each), *lugar.complementos]) or None,
        bairro=lugar.bairro,
        cidade=lugar.cidade,
        uf=lugar.uf,
        cep=cep,
        referencia="; ".join((*referencias, *lida.referencias)) or None,
    )
    endereco = _restore_signs(_overlaid(endereco, rotulados.campos))
    if endereco.cep and endereco.uf and not cep_concorda(endereco.cep, endereco.uf):
        avisos = (*avisos, CEP_DE_OUTRA_UF)
    return replace(endereco, avisos=avisos) if avisos else endereco


def _restore_signs(endereco: Endereco) -> Endereco:
    """Restore the original punctuation in the fields, in place of the placeholders. A field that then has no letter
    becomes None.
    """
    said = {name: getattr(endereco, name) for name in _TEXTS}
    if not any(value == "" or (value and _MARKS_INSIDE.search(value)) for value in said.values()):
        return endereco
    texts = {
        name: " ".join(value.replace(COMMA, ",").replace(S_N, " ").split()) for name, value in said.items() if value
    }
    changes: dict[str, Any] = {name: texts.get(name) or None for name in said}
    return replace(endereco, **changes)


def cep_de(texto: str) -> str | None:
    """Return the CEP as ``00000-000``, or None if the text is not a CEP."""
    digits = re.sub(r"[^0-9]", "", texto)
    return f"{digits[:5]}-{digits[5:]}" if len(digits) == 8 and len(set(digits)) > 1 else None


def _split_cep(texto: str) -> tuple[str, str | None, tuple[str, ...]]:
    found = _CEP_LABEL.search(texto)
    if found is not None:
        cep, written = cep_de(found[1]), any(each.isdigit() for each in found[1])
        rest = f"{texto[: found.start()]} , {texto[found.end() :]}"
        if cep is not None or written:
            return rest, cep, () if cep else (CEP_INVALIDO,)
        texto = rest
    found = _CEP_BARE.search(texto)
    if found is None:
        return texto, None, ()
    cep = cep_de(found[0])
    return f"{texto[: found.start()]} , {texto[found.end() :]}", cep, () if cep else (CEP_INVALIDO,)


def _split_landmarks(texto: str) -> tuple[str, list[str]]:
    """Split the landmarks in parentheses off a text. Return the text and the landmarks."""
    seen: list[str] = []

    def drop(found: "re.Match[str]") -> str:
        is_inside = bool(texto[found.end() :].strip(" ,.-")) and bool(texto[: found.start()].strip())
        if not (_is_landmark(found[1]) or is_inside):
            return found[0]
        seen.append(found[1].strip())
        return " "

    return _PARENTHESES.sub(drop, texto), seen


def _is_landmark(texto: str) -> bool:
    return plano(texto).strip(" .-").startswith(REFERENCIAS)


def _read_labels(texto: str) -> _Rotulados:
    """Read labels such as ``Bairro: Centro. Cidade: Campinas``. Each label takes the part after it; the rest is
    unlabelled text.
    """
    livre: list[str] = []
    campos: dict[str, str] = {}
    last, name = 0, ""
    for found in [*_LABEL.finditer(texto), None]:
        value = texto[last : None if found is None else found.start()]
        key = _FIELD_OF.get(name.partition("/")[0].partition("-")[0].strip())
        if key is None:
            livre.append(f"Rua {value}" if name in ("rua", "r") and not rua_de(value.strip()) else value)
        else:
            first, *others = [*_parts(value), ""] if key != "complemento" else [value.strip(" .,;|-\n"), ""]
            campos.setdefault(key, first)
            livre += [each for each in others if each]
        if found is not None:
            last, name = found.end(), " ".join(plano(found[1]).split())
            name = "" if name.startswith(("end", "logradouro")) else name
    return _Rotulados(" , ".join(livre), campos)


def _parts(texto: str) -> list[str]:
    texto = _KM.sub(lambda found: f"km {found[1]}" + (f"{COMMA}{found[2]}" if found[2] else ""), texto)
    texto = _UNMARKED.sub(lambda found: f", {found[1] or ''}", texto)
    texto = SEM_NUMERO.sub(f" {S_N} ", texto)
    texto = _BEFORE_LANDMARK.sub(", ", texto)
    parts = (each.strip(" ,;.-/\n") for whole in _PARTS.split(texto) for each in _number_first(whole))
    return [part for part in parts if part == S_N or not diz_nada(part)]


def _number_first(parte: str) -> tuple[str, ...]:
    """Split off a house number that is written before the street: "Nº 340 Rua Modelo"."""
    numero = numero_no_inicio(parte.strip(), bare=False) if parte[:1] in _MARKS else None
    if numero is None or not numero.resto or rua_de(numero.resto) is None:
        return (parte,)
    return parte.strip()[: -len(numero.resto)], numero.resto


def _leitura(partes: list[str]) -> _Leitura:
    lida = _Leitura()
    partes = [kept for parte in partes for kept in _without_landmark(parte, lida.referencias)]
    if not partes:
        return lida
    place = _street(partes)
    if place is None:
        partes = [each for parte in partes for each in _BEFORE_STREET.split(parte)]
        place = _street(partes)
    if place is None and (rural := _rural_street(partes)) is not None:
        return _read_around(lida, partes, *rural)
    if place is None and (len(partes) == 1 or not NUMERO_SO.fullmatch(partes[1])):
        for parte in partes:
            _read_on(lida, parte)
        return lida
    place = place or 0
    following = partes[place + 1] if place + 1 < len(partes) else ""
    rua = rua_de(partes[place], sure=True, following=following)
    assert rua is not None
    return _read_around(lida, partes, place, rua)


def _street(partes: list[str]) -> int | None:
    """Return the part that begins like a street. Of several, the first with a number counts, except names of farms."""
    found = [index for index, parte in enumerate(partes) if rua_de(parte) is not None]
    if len(found) < 2:
        return found[0] if found else None
    roads = [index for index in found if plano(partes[index].split(" ")[0]).strip(".") not in PROPRIEDADES] or found
    return next((index for index in roads if _is_numbered(partes, index)), roads[0])


def _is_numbered(partes: list[str], index: int) -> bool:
    following = partes[index + 1] if index + 1 < len(partes) else ""
    rua = rua_de(partes[index], following=following)
    return rua is not None and (rua.numero is not None or bool(following and NUMERO_SO.fullmatch(following)))


def _rural_street(partes: list[str]) -> tuple[int, Rua] | None:
    for index, parte in enumerate(partes):
        rua = rua_rural_de(parte, partes[index + 1] if index + 1 < len(partes) else "")
        if rua is not None:
            return index, rua
    return None


def _without_landmark(parte: str, seen: list[str]) -> list[str]:
    """Return the parts of an address in a text: of a landmark, only the place written behind it without a comma."""
    if not _is_landmark(parte):
        return [parte]
    found = place_behind(parte)
    seen.append(parte if found is None else found[0])
    return [] if found is None else list(found[1])


def _read_around(lida: _Leitura, partes: list[str], place: int, rua: Rua) -> _Leitura:
    lida.logradouro, lida.numero = rua.nome or None, rua.numero
    for parte in partes[:place]:
        if lida.numero is None and parte is partes[place - 1] and NUMERO_SO.fullmatch(parte):
            _read_on(lida, parte)
        else:
            _read_on(lida, parte, numbered=True)
    if rua.extra:
        lida.itens.append(rua.extra)
    if rua.resto:
        _read_on(lida, rua.resto)
    for index, parte in enumerate(partes[place + 1 :]):
        _read_on(lida, parte, first=index == 0)
    return lida


def _read_on(lida: _Leitura, parte: str, *, first: bool = False, numbered: bool = False) -> None:
    if lida.numero is None and not numbered:
        numero = numero_no_inicio(parte, bare=first or bool(NUMERO_SO.fullmatch(parte)))
        if numero is not None:
            lida.numero, parte = numero.numero, numero.resto
            lida.itens += [numero.extra] if numero.extra else []
    elif lida.logradouro is not None and not lida.lugar and parte.isdigit():
        lida.itens.append(parte)
        return
    if lida.logradouro is not None and plano(parte.split(" ")[0]).strip(".") in PROPRIEDADES and not parte.isdigit():
        lida.itens.append(bairro_de(parte) or parte)
        return
    if (inside := _VALUE_INSIDE.search(parte)) is not None and plano(parte.split(" ")[0]).strip(".") in CONJUNTOS:
        lida.itens.append(bairro_de(parte[: inside.start()]) or "")
        parte = parte[inside.start() :].strip()
    found = complementos(parte)
    lida.itens += found.itens
    resto = found.resto
    if S_N in resto:
        lida.numero = lida.numero or "S/N"
        resto = resto.replace(S_N, " ").strip(" ,;.-/")
    if resto:
        (lida.referencias if _is_landmark(resto) else lida.lugar).append(resto)


def _overlaid(endereco: Endereco, campos: dict[str, str]) -> Endereco:
    """Overwrite fields of an address with the values that follow a label such as "Bairro:"."""
    if not campos:
        return endereco
    uf = uf_de(campos.get("uf", "")) or endereco.uf
    changes: dict[str, Any] = {"uf": uf}
    if "numero" in campos and (numero := numero_no_inicio(campos["numero"], bare=True)) is not None:
        changes["numero"] = numero.numero
    if "complemento" in campos:
        found = complementos(", ".join(each for each in _parts(campos["complemento"]) if not _is_landmark(each)))
        itens = [*found.itens, *([found.resto] if found.resto else [])]
        changes["complemento"] = ", ".join(itens) or endereco.complemento
    if "bairro" in campos:
        changes["bairro"] = bairro_de(campos["bairro"])
        if endereco.bairro and plano(endereco.bairro.split(" ")[0]) in CONJUNTOS and "complemento" not in campos:
            changes["complemento"] = ", ".join(each for each in (endereco.complemento, endereco.bairro) if each)
    if "cidade" in campos:
        lugar = lugar_de([campos["cidade"]], is_city=True)
        changes["uf"] = uf or lugar.uf
        changes["cidade"] = lugar.cidade and nome_da_cidade(lugar.cidade, changes["uf"])
        if "bairro" not in campos and endereco.cidade and not endereco.bairro:
            changes["bairro"] = bairro_de(endereco.cidade)
    if "referencia" in campos:
        changes["referencia"] = campos["referencia"]
    return replace(endereco, **changes)
