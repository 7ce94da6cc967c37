"""Join values that a sheet splits into several columns: address parts, documents, first and last name, area code and
phone.
"""

from collections.abc import Mapping
from typing import Final

from app.contexts.agendamentos.planilha.celulas import Celula, dito, documento_da, texto_da
from app.contexts.agendamentos.texto import plano

DOCUMENTOS: Final = {"cpf": "CPF", "rg": "RG", "cns": "CNS"}
COMPLETOS: Final = {
    "documento_completo": (*DOCUMENTOS,),
    "endereco_completo": ("tipo_logradouro", "numero_endereco", "complemento", "bairro", "cidade", "uf"),
}


def com_partes(colunas: Mapping[str, int], nomes: Mapping[str, str]) -> dict[str, int]:
    """Map each field to the position of its column. If one column has a whole value, such as the full address, the
    columns with parts of that value are dropped. If no column has all documents, a column with one kind of document,
    such as CPF, is used instead.

    ``nomes`` has the title of each column.
    """
    found = dict(colunas)
    for whole, parts in COMPLETOS.items():
        if _is_complete(nomes.get(whole, "")):
            found = {name: place for name, place in found.items() if name not in parts}
    if "documento_completo" not in found and (document := next(filter(found.__contains__, DOCUMENTOS), None)):
        found["documento_completo"] = found[document]
    return found


def _is_complete(titulo: str) -> bool:
    return "complet" in plano(titulo)


def endereco_junto(cells: Mapping[str, Celula]) -> str | None:
    """Return a row's address. Parts in other columns, such as city or house number, are appended unless the address
    already contains them.
    """
    street = dito(cells.get("endereco_completo"))
    kind = dito(cells.get("tipo_logradouro"))
    said = " ".join(each for each in (kind, street) if each)
    for name in ("numero_endereco", "complemento", "bairro", "cidade", "uf"):
        part = dito(cells.get(name))
        if part is None or f" {plano(part)} " in f" {_words(said)} ":
            continue
        label = {"bairro": "Bairro: ", "cidade": "Cidade: ", "uf": "UF: "}.get(name, "")
        said = f"{said}, {label}{part}" if said else f"{label}{part}"
    return said or None


def documento_junto(cells: Mapping[str, Celula], colunas: Mapping[str, int]) -> str | None:
    """Return all documents in a row of a sheet as one text, each document after its label."""
    found: list[str] = []
    place = colunas.get("documento_completo")
    if place is not None and place not in {colunas.get(name) for name in DOCUMENTOS}:
        found += filter(None, [documento_da(cells["documento_completo"])])
    for name, label in DOCUMENTOS.items():
        document = documento_da(cells.get(name))
        if document is not None:
            is_bare = not any(each.isalpha() for each in document.rstrip("xX"))
            found.append(f"{label} {document}" if is_bare else document)
    return "; ".join(found) or None


def nome_junto(cells: Mapping[str, Celula]) -> str | None:
    return " ".join(each for each in (dito(cells.get("nome_paciente")), dito(cells.get("sobrenome"))) if each) or None


def telefone_junto(cells: Mapping[str, Celula]) -> Celula:
    area = dito(cells.get("ddd"))
    return cells.get("telefone") if area is None else f"{area} {texto_da(cells.get('telefone'))}"


def _words(texto: str) -> str:
    return " ".join("".join(each if each.isalnum() else " " for each in plano(texto)).split())
