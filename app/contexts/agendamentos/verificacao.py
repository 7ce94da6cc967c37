"""Check an address or documents that a language model returned against the text that the model was given. Only values
that occur in the text are accepted.

Words are compared without accents and capitals, and the result keeps the spelling of the text. The digits of a value
must come from complete numbers in the text, in the same order. A CPF and a SUS card also need valid check digits. A
number is dropped if its label in the text says that it is of another kind.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from app.contexts.agendamentos.documento.documento import (
    DOS_NOSSOS,
    ORGAOS,
    Documento,
    Tipo,
    cns_valido,
    cpf_valido,
    papeis,
)
from app.contexts.agendamentos.endereco.endereco import Endereco, cep_de
from app.contexts.agendamentos.endereco.geografia import ESTADOS
from app.contexts.agendamentos.texto import limpo, plano, titulo
from batuta.kernel import Json

LONGEST: Final = 160
FEWEST: Final = 5  # minimum number of digits of a document
_WORD = re.compile(r"[^\W_]+")
_DIGITS = re.compile(r"[0-9]+")
_BETWEEN = re.compile(r"[ .,/-]{1,3}")
_HOUSE = re.compile(r"[0-9][0-9.]{0,6}\s?-?[A-Za-z]?|[Ss]/?[Nn]")
_RG = re.compile(r"[0-9]{4,14}X?")


def endereco_provado(dito: Json, texto: str) -> Endereco:
    said, page = dito if isinstance(dito, dict) else {}, _Pagina(texto)
    cep = cep_de(_text(said.get("cep")))
    return Endereco(
        logradouro=page.palavras(said.get("logradouro")),
        numero=page.numero(said.get("numero")),
        complemento=page.palavras(said.get("complemento")),
        bairro=page.palavras(said.get("bairro")),
        cidade=page.palavras(said.get("cidade")),
        uf=page.uf(said.get("uf")),
        cep=cep if cep is not None and page.tem_digitos(cep) else None,
    )


def documento_provado(dito: Json, texto: str) -> Documento:
    said, page = dito if isinstance(dito, dict) else {}, _Pagina(texto)
    of_cpf, of_rg, of_cns = (_Pagina(so_de(texto, each)) for each in (Tipo.CPF, Tipo.RG, Tipo.CNS))
    cpf, cns = _digits(said.get("cpf")), _digits(said.get("cns"))
    rg = re.sub(r"[^0-9X]", "", _text(said.get("rg")).upper())
    has_rg = bool(_RG.fullmatch(rg)) and rg != cpf and of_rg.tem_digitos(rg)
    return Documento(
        cpf=cpf if cpf_valido(cpf) and of_cpf.tem_digitos(cpf) else None,
        rg=rg if has_rg else None,
        orgao_emissor=page.orgao(said.get("orgao_emissor")) if has_rg else None,
        uf_emissor=page.uf(said.get("uf_emissor")) if has_rg else None,
        cns=cns if cns_valido(cns) and of_cns.tem_digitos(cns) else None,
    )


def so_de(texto: str, tipo: Tipo) -> str:
    """Mask the digits of all numbers that, according to their label or format, cannot be a document of the kind
    ``tipo``.
    """
    page = limpo(texto)
    for papel in papeis(page):
        if tipo not in papel.pode:
            page = page[: papel.start] + re.sub(r"[0-9]", "#", page[papel.start : papel.end]) + page[papel.end :]
    return page


def pode_ter_documento(texto: str) -> bool:
    """Return whether any number in the text may be the patient's CPF or RG. Otherwise the model need not be queried."""
    return any(sum(each.isdigit() for each in so_de(texto, tipo)) >= FEWEST for tipo in DOS_NOSSOS)


class _Pagina:
    """Index of an appointment's text. It shows whether the text contains the words and digits of the language model's
    answer.
    """

    def __init__(self, texto: str) -> None:
        self._texto = limpo(texto)
        self._words = [(plano(found[0]), found.span()) for found in _WORD.finditer(self._texto)]
        self._numbers = list(_DIGITS.finditer(self._texto))

    def palavras(self, dito: Any) -> str | None:
        """Find words from the model's answer in the text, and return them as the text spells them. Return None if the
        text does not contain them.
        """
        wanted = [plano(found) for found in _WORD.findall(limpo(_text(dito)))]
        for first in range(len(self._words) - len(wanted) + 1 if wanted else 0):
            found = self._words[first : first + len(wanted)]
            if [word for word, _ in found] == wanted:
                start, end = found[0][1][0], found[-1][1][1]
                return titulo(" ".join(self._texto[start:end].split()))
        return None

    def numero(self, dito: Any) -> str | None:
        said = _text(dito).strip()
        if not _HOUSE.fullmatch(said):
            return None
        digits = _digits(said)
        stands = self.tem_digitos(digits) if digits else self.palavras(said) is not None
        return said.upper() if stands else None

    def uf(self, dito: Any) -> str | None:
        code = _text(dito).strip().upper()
        if code not in ESTADOS:
            return None
        is_written = any(self._texto[start:end] == code for _, (start, end) in self._words)
        return code if is_written or self.palavras(ESTADOS[code]) else None

    def orgao(self, dito: Any) -> str | None:
        name = _text(dito).strip().upper()
        return name if name in ORGAOS and self.palavras(name) else None

    def tem_digitos(self, valor: str) -> bool:
        """Return whether the digits form one complete number in the text, or several adjacent numbers
        joined together.
        """
        digits, has_x = _digits(valor), valor.endswith("X")
        return any(found == digits and (not has_x or self._x_after(end)) for found, end in self._runs(len(digits)))

    def _runs(self, longest: int) -> Iterator[tuple[str, int]]:
        for first, number in enumerate(self._numbers):
            run = number[0]
            yield run, number.end()
            for before, after in pairwise(self._numbers[first:]):
                if len(run) >= longest or not _BETWEEN.fullmatch(self._texto[before.end() : after.start()]):
                    break
                run += after[0]
                yield run, after.end()

    def _x_after(self, end: int) -> bool:
        return self._texto[end:].lstrip(" .-/")[:1].upper() == "X"


def _text(dito: Any) -> str:
    return dito if isinstance(dito, str) and len(dito) <= LONGEST else ""


def _digits(dito: Any) -> str:
    return re.sub(r"[^0-9]", "", _text(dito))


def _nullable(*names: str) -> dict[str, Any]:
    properties = {name: {"type": ["string", "null"]} for name in names}
    return {"type": "object", "additionalProperties": False, "required": [*names], "properties": properties}


FORMULARIOS: Final[Mapping[str, dict[str, Any]]] = {
    "endereco": _nullable("logradouro", "numero", "complemento", "bairro", "cidade", "uf", "cep"),
    "documento": _nullable("cpf", "rg", "orgao_emissor", "uf_emissor", "cns"),
}
