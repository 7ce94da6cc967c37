"""Recognise columns with unknown titles by the title's words and by the column's content."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Final, NamedTuple

from app.contexts.agendamentos.planilha.celulas import (
    Celula,
    data_da,
    dito,
    hora_da,
    serial_dito,
    telefone_da,
    texto_da,
)
from app.contexts.agendamentos.planilha.titulos import CABECALHOS, campo_de
from app.contexts.agendamentos.texto import limpo, plano

SAMPLE: Final = 30  # number of rows below a title from which the content of its column is judged
AGREES: Final = 0.3  # share of the cells that must fit the field that the title suggests
FITS: Final = 0.6  # share of the cells that must fit a field that is guessed from content alone
LONGEST_TITLE: Final = 100
NEAR: Final = 3  # maximum number of columns between an address and its house number
# Words in a title that suggest a field. The first field with a matching word is used. A word with * also matches with
# more letters.
_WORDS: Final = (
    ("documento_completo", "cpf rg cns doc docs documento* ident identidade identificac*"),
    ("telefone", "fone telefone* tel tels cel celular* zap whats* contato"),
    ("endereco_completo", "endereco* end residenc* resid reside mora logradouro rua moradia"),
    ("hora", "hora horas horario* hr hrs hs inicio"),
    ("data", "data dt dia marcado agendado agend agenda"),
    ("nome_paciente", "paciente pacte pcte pac nome usuari* cliente beneficiari*"),
)
_FIELD_WORDS: Final = tuple(
    (
        field,
        re.compile(
            "|".join(
                rf"{re.escape(word.rstrip('*'))}{'' if word.endswith('*') else r'(?![a-z])'}" for word in words.split()
            )
        ),
    )
    for field, words in _WORDS
)
_OTHER = re.compile(
    r"(?<![a-z])(?:nasc|d\.?n(?![a-z])|mae|pai|medic|convenio|plano|unidade|marca(?![a-z])|cadastro|status|valor|responsav|acompanh"
    r"|profission|mail|setor|sala|obs|carteir|idade|sexo|social)"
)
# Words in the title of a column with a day or an hour that is not the visit's.
_OTHER_DAY = re.compile(r"(?<![a-z])(?:pedido|solicit|emiss|validade|retorno|ultim|impress|inclus)")
# Fields for which a sheet has one column. A second suitable column makes the choice unsure. Several columns with phone
# numbers, addresses or documents are usual.
UNIQUE: Final = ("nome_paciente", "data", "hora", "data_hora")
# Words in the title of a column about the visit or the patient, rather than about the booking or another person.
_OF_THE_VISIT = re.compile(
    r"(?<![a-z])(?:consulta|exame|coleta|atend|agend|marcad|visita|pac(?:iente|te)?(?![a-z])|pcte|usuari|cliente|beneficiari)"
)
# Short names of fields that a person may write for a column.
CAMPOS_DITOS: Final[Mapping[str, str]] = {
    **{name: name for name in CABECALHOS},
    "nome": "nome_paciente",
    "paciente": "nome_paciente",
    "endereco": "endereco_completo",
    "documento": "documento_completo",
}
SUGERIDOS: Final = ("nome", "endereco", "documento", "data", "hora", "telefone")
_STREET = re.compile(
    r"(?<![a-z])(?:rua|r|av|avenida|travessa|tv|trav|estrada|rod|praca|bairro|centro|jd|jardim|vila|qd|zona rural)(?![a-z])"
)


@lru_cache(maxsize=512)
def campo_provavel(titulo: str) -> str | None:
    """Return the appointment field that the words of a column title suggest, or None."""
    said = plano(limpo(titulo))
    if _OTHER.search(said):
        return None
    field = next((field for field, words in _FIELD_WORDS if re.search(rf"(?<![a-z])(?:{words.pattern})", said)), None)
    return None if field in ("data", "hora") and _OTHER_DAY.search(said) else field


class Palpite(NamedTuple):
    """A guessed column. ``is_sure`` means that the title and the content suggest the same field."""

    campo: str
    coluna: int
    titulo: str
    is_sure: bool


def campo_concorrente(titulo: str) -> str | None:
    """Return the field for which a column with an unknown title competes with a column with a known title: next to a
    column "Data", a column "DATA DO EXAME" may also have the day of the visit.
    """
    campo = campo_provavel(titulo)
    return campo if campo in UNIQUE and _OF_THE_VISIT.search(plano(titulo)) else None


def escolher_coluna(
    campo: str,
    lugares: Sequence[int],
    titulos: Sequence[Celula],
    abaixo: Sequence[Sequence[Celula]],
    escolhidas: Mapping[str, str],
) -> Palpite:
    """Choose one of the columns whose titles name the same field. A column that a person chose comes first. Otherwise
    the content decides; among columns with suitable content, a title that names the visit or the patient comes first.

    The choice is unsure if another column would also be suitable and contains something else.
    """
    chosen = [each for each in lugares if chave_do_titulo(str(titulos[each])) in escolhidas]
    fitting = [each for each in lugares if _suits(campo, _cells(abaixo, each))] if campo in UNIQUE else []
    left = chosen or fitting or lugares
    best = max(left, key=lambda each: bool(_OF_THE_VISIT.search(plano(str(titulos[each])))))
    rivals = [each for each in fitting if chave_do_titulo(str(titulos[each])) != chave_do_titulo(str(titulos[best]))]
    is_sure = bool(chosen) or all(_cells(abaixo, each) == _cells(abaixo, best) for each in rivals)
    return Palpite(campo, best, titulo_dito(titulos[best]), is_sure)


def concorda(palpite: Palpite, abaixo: Sequence[Sequence[Celula]]) -> bool:
    """Return whether the column is empty or its content fits the guessed field."""
    cells = _cells(abaixo, palpite.coluna)
    return not cells or _share(palpite.campo, cells) >= AGREES


def _suits(campo: str, cells: Sequence[Celula]) -> bool:
    return bool(cells) and _share(campo, cells) >= AGREES


def palpites(
    titulos: Sequence[Celula], abaixo: Sequence[Sequence[Celula]], faltam: Iterable[str], tomadas: set[int]
) -> list[Palpite]:
    """Guess the columns of missing fields. First, each field gets the column whose title suggests that field. For the
    remaining fields, the content of the columns decides.
    """
    found: list[Palpite] = []
    taken = set(tomadas)
    wanted = [field for field, _ in _WORDS if field in set(faltam)]
    places: dict[str, list[int]] = {}
    for place, titulo in enumerate(titulos):
        field = campo_provavel(titulo) if isinstance(titulo, str) and len(titulo) <= LONGEST_TITLE else None
        if field == "documento_completo" and (field not in wanted or field in places):
            # The column has another document of the patient, such as the RG next to a CPF.
            which = _ONE_DOCUMENT.search(plano(limpo(str(titulo))))
            if which is not None and place not in taken:
                found.append(Palpite(which[0], place, titulo_dito(titulo), True))
                taken.add(place)
            continue
        if field in wanted and place not in taken:
            places.setdefault(field, []).append(place)
    for field, of_field in places.items():
        likely = escolher_coluna(field, of_field, titulos, abaixo, {})
        found.append(likely._replace(is_sure=likely.is_sure and concorda(likely, abaixo)))
        taken.add(likely.coluna)
    for field in wanted:
        if all(each.campo != field for each in found):
            shares = {
                place: _share(field, _cells(abaixo, place))
                for place in range(len(titulos))
                if place not in taken and not _OTHER.search(plano(limpo(texto_da(titulos[place]))))
            }
            best = max(shares, key=lambda place: shares[place], default=None)
            if best is not None and shares[best] >= FITS and dito(titulos[best]):
                found.append(Palpite(field, best, titulo_dito(titulos[best]), False))
                taken.add(best)
    return found


def segue_endereco(titulos: Sequence[Celula], place: int) -> bool:
    """Return whether a column titled "Nº" contains house numbers. It does if an address column precedes it closely.
    Otherwise the column merely numbers the rows.
    """
    before = [each for each in titulos[max(0, place - NEAR) : place] if isinstance(each, str)]
    return any("endereco_completo" in (campo_de(each), campo_provavel(each)) for each in before)


def parece_titulos(linha: Sequence[Celula]) -> bool:
    """Return whether a row may be a header: it has several texts and no numbers."""
    texts = [valor for valor in linha if valor is not None and valor != ""]
    return len(texts) >= 3 and all(isinstance(valor, str) and not _DIGIT.search(valor) for valor in texts)


_DIGIT = re.compile(r"[0-9]")
_ONE_DOCUMENT = re.compile(r"(?<![a-z])(?:rg|cpf|cns)(?![a-z])")


def _cells(rows: Sequence[Sequence[Celula]], place: int) -> list[Celula]:
    return [row[place] for row in rows[:SAMPLE] if place < len(row) and dito(row[place]) is not None]


def _share(field: str, cells: Sequence[Celula]) -> float:
    return sum(_FITS[field](cell) for cell in cells) / len(cells) if cells else 0.0


def _is_document(cell: Celula) -> bool:
    said = plano(texto_da(cell))
    digits = sum(each.isdigit() for each in said)
    return (
        5 <= digits <= 40
        and data_da(cell) is None
        and (bool(re.search(r"\b(?:cpf|rg|cns|cnh|ssp)\b", said)) or len(said) - digits <= 6)
    )


def _is_address(cell: Celula) -> bool:
    said = plano(texto_da(cell))
    return len(said) >= 12 and (bool(_STREET.search(said)) or said.count(",") >= 2) and data_da(cell) is None


def _is_name(cell: Celula) -> bool:
    said = texto_da(cell)
    return (
        isinstance(cell, str) and " " in said.strip() and not _DIGIT.search(said) and "," not in said and len(said) < 80
    )


def _is_day(cell: Celula) -> bool:
    return data_da(cell) is not None and (not isinstance(cell, float | int) or 30_000 < cell < 60_000)


_FITS: Final[Mapping[str, Callable[[Celula], bool]]] = {
    "documento_completo": _is_document,
    "telefone": lambda cell: telefone_da(cell) is not None,
    "endereco_completo": _is_address,
    "hora": lambda cell: hora_da(cell) is not None and (data_da(cell) is None or not isinstance(cell, float | int)),
    "data": lambda cell: _is_day(serial_dito(cell)),
    "data_hora": lambda cell: _is_day(serial_dito(cell)),
    "nome_paciente": _is_name,
}


def campo_escolhido(titulo: str, escolhidas: Mapping[str, str]) -> str | None:
    """Return the field that a person chose for a column title. If no field was chosen, return the field that is known
    for the title.
    """
    return escolhidas.get(chave_do_titulo(titulo)) or campo_de(titulo)


def titulo_dito(valor: Celula) -> str:
    """Return a title in one line."""
    return " ".join(limpo(texto_da(valor)).split())


def titulos_juntos(acima: Sequence[Celula], linha: Sequence[Celula]) -> list[Celula] | None:
    """Return the titles of a header that takes two rows: in each column the lower title, or the upper one if there is
    no lower one. Return None if the upper row is not a row of titles.
    """
    above = [valor for valor in acima if dito(valor) is not None]
    if len(above) < 2 or not all(isinstance(valor, str) and not _DIGIT.search(valor) for valor in above):
        return None
    pairs = zip_longest(acima, linha)
    return [upper if dito(lower) is None else lower for upper, lower in pairs]


@lru_cache(maxsize=256)
def chave_do_titulo(titulo: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", plano(limpo(titulo))))


def nome_dito(campo: str) -> str:
    """Return the short name by which people refer to a field when they assign columns to fields."""
    return next((short for short in SUGERIDOS if CAMPOS_DITOS[short] == campo), campo)


def forma_de(titulos: Iterable[Celula]) -> str:
    """Return the shape of a table: its titles without accents and capitals. All files from one source have the same
    shape.
    """
    return "|".join(chave_do_titulo(texto_da(each)) for each in titulos).strip("|")[:2000]
