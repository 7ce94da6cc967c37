"""Split a typed address into fields. No value is guessed, and no network is used.

Rules read the CEP, which has a fixed form. A statistical model labels each of the remaining words with its field
(``etiquetador``). Rules then build the fields and expand abbreviations (``montagem``). If the text does not contain a
field, the field is None.
"""

import re
from dataclasses import fields
from typing import Final, NamedTuple

from app.contexts.agendamentos.endereco.etiquetador import SURE, Etiquetador, etiquetador
from app.contexts.agendamentos.endereco.geografia import ESTADOS, cep_concorda
from app.contexts.agendamentos.endereco.logradouro import SEM_NUMERO
from app.contexts.agendamentos.endereco.montagem import campos_de, referencia_de
from app.contexts.agendamentos.endereco.palavras import palavras
from app.contexts.agendamentos.endereco.vocabulario import S_N
from app.contexts.agendamentos.texto import diz_nada, limpo
from batuta.kernel import dataclass

CEP_DE_OUTRA_UF: Final = "cep_de_outra_uf"
CEP_INVALIDO: Final = "cep_invalido"
INCERTO: Final = "endereco_incerto"


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


class Preparado(NamedTuple):
    """A typed address without its CEP. In ``texto``, spaces replace the CEP and the phone number, and a placeholder
    replaces "s/n". All replacements keep the text's length.
    """

    texto: str
    cep: str | None
    avisos: tuple[str, ...]


_CEP_LABEL = re.compile(
    r"\(?\bc\.?\s?e\.?\s?p(?![a-z])[\s.:=\-nº°]*([0-9][0-9.\- ]{0,14}[0-9]|[0-9]|)(?![0-9])\)?", re.IGNORECASE
)
# A CEP with a space inside is valid only at the end of a part. Elsewhere "12345 678" may be a house number and a flat.
_CEP_BARE = re.compile(
    r"(?<![0-9./-])[0-9]{2}\.?[0-9]{3}(?:[-.]?[0-9]{3}(?![0-9]|[-./][0-9])|\s[0-9]{3}(?=\s*(?:$|[,;|\n)])))"
)
# A CEP with a missing digit, at the start or the end of the text.
_SHORT = r"(?:[0-9]{4}-[0-9]{3}|[0-9]{5}-[0-9]{1,2})"
_CEP_BROKEN = re.compile(rf"\A{_SHORT}(?=\s*[-,])|(?<=[\s,]){_SHORT}\Z")
# Texts that are not a part of the address: "reside na", a phone number, "não informado", "entre as ruas A e B".
_NO_PART = re.compile(
    r"\A(?:reside(?:nte)?|mora(?:dora?)?|domiciliad[oa])\s+(?:[àa]|n[ao]|em)\s+"
    r"|\b(?:telefone|fone|tel|cel|celular|whats|whatsapp|zap|contato)s?\b[\s.:]*\+?[0-9() .\-]{8,20}"
    r"|(?<![\w/])n/[iad](?![\w/])|\bn[aã]o\s+(?:informad[oa]|consta|tem)\b"
    r"|\bentre\s+(?:as\s+)?(?:ruas?|avenidas?|avs?|travessas?)\b\.?\s[^,;\n-]{1,40}\se\s[^,;\n-]{1,40}(?=[,;\n-]|$)",
    re.IGNORECASE,
)
_SIGN_BEHIND = re.compile(  # matches the type of a street in "R-das Flores", "Av: Brasil", "Jd/ Modelo"
    r"(?<!\w)(r|av|rua|avenida|tv|trav|travessa|al|alameda|p[çc]a|pra[çc]a|estr|estrada|rod|rodovia|lgo|largo|vl|jd|pq|ed|cond|apto|ap|bl|cs)"
    r"\.?\s?[-:;/]+\s?(?=[^\W\d_]{2})",
    re.IGNORECASE,
)
# Faster patterns. If a text matches none of them, it matches none of the patterns above.
_C_E_P = re.compile(r"[cC]\.?\s?[eE]\.?\s?[pP]")
_CEP_START = re.compile(r"[0-9][0-9]\.?[0-9]{3}[-.\s]?[0-9]{3}")
_CEP_END = re.compile(r"[0-9]{4}-[0-9]")
_NO_PARTS: Final = (
    "reside", "mora", "domicil", "fone", "tel", "cel", "whats", "zap", "contato", "entre", "n/", "nao", "não", "na\u0303o",
)  # fmt: skip
_SIGN = re.compile(r"[-:;/]\s?[^\W\d_]")
_S_AND_N = re.compile(r"[sS](?:\s?[/.]?\s?[nN]|[eE][mM]\s)")
_DOTTED = re.compile(r"\.[a-zA-Z]")
_DOTTED_UF = re.compile(r"(?<![\w.])([a-z])\.([a-z])\.?(?=\s*(?:$|[,;/|)\n-]))", re.IGNORECASE)


def endereco_de(texto: str) -> Endereco:
    return ler_com(etiquetador(), texto)


def ler_com(tagger: Etiquetador, texto: str) -> Endereco:
    preparado = preparar(texto)
    if preparado is None:
        return Endereco()
    said, cep, avisos = preparado
    lidas = palavras(said)
    etiquetas, margem = tagger.etiquetas(lidas)
    campos = campos_de(said, lidas, etiquetas)
    uf = campos["uf"]
    if cep and uf and not cep_concorda(cep, uf):
        avisos = (*avisos, CEP_DE_OUTRA_UF)
    if margem < SURE:
        avisos = (*avisos, INCERTO)
    return Endereco(**campos, cep=cep, referencia=referencia_de(said, lidas, etiquetas), avisos=avisos)


_NOT_DIGITS = re.compile(r"[^0-9]")


def cep_de(texto: str) -> str | None:
    """Return the CEP as ``00000-000``, or None if the text is not a CEP."""
    digits = _NOT_DIGITS.sub("", texto)
    return f"{digits[:5]}-{digits[5:]}" if len(digits) == 8 and len(set(digits)) > 1 else None


def preparar(texto: str) -> Preparado | None:
    """Return the address with spaces in place of its CEP and phone number. Return None if no other text remains."""
    said = limpo(texto)
    if diz_nada(said):
        return None
    said, cep, avisos = _blank_cep(said)
    small = said.lower()
    for each in _NO_PARTS:
        if each in small:
            said = _NO_PART.sub(_spaces, said)
            break
    if _SIGN.search(said):
        said = _SIGN_BEHIND.sub(lambda found: found[1].ljust(len(found[0])), said)
    if _S_AND_N.search(said):
        said = SEM_NUMERO.sub(lambda found: S_N.ljust(len(found[0])), said)
    return Preparado(_DOTTED_UF.sub(_plain_state, said) if _DOTTED.search(said) else said, cep, avisos)


def _blank_cep(said: str) -> tuple[str, str | None, tuple[str, ...]]:
    for pattern, group, needs in ((_CEP_LABEL, 1, _C_E_P), (_CEP_BARE, 0, _CEP_START), (_CEP_BROKEN, 0, _CEP_END)):
        found = pattern.search(said) if needs.search(said) else None
        if found is None:
            continue
        said = f"{said[: found.start()]}{','.ljust(len(found[0]))}{said[found.end() :]}"
        if any(each.isdigit() for each in found[group]):
            cep = cep_de(found[group])
            return said, cep, () if cep else (CEP_INVALIDO,)
    return said, None, ()


def _spaces(found: "re.Match[str]") -> str:
    return " " * len(found[0])


def _plain_state(found: "re.Match[str]") -> str:
    """Return a state's abbreviation without full stops: "S.P." becomes "SP"."""
    uf = found[1] + found[2]
    return uf.ljust(len(found[0])) if uf.upper() in ESTADOS else found[0]
