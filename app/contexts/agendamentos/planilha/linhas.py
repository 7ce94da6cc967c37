"""Types for the contents of a spreadsheet. This module imports no part of the engine, so that the child process starts
fast.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from batuta.kernel import dataclass

if TYPE_CHECKING:
    from batuta.kernel import Json

MOST_AT_ONCE: Final = 500  # maximum number of rows in one batch, which is one transaction
MOST_REPORTED: Final = 200  # maximum number of problems in each list of a report


class SituacaoDoAgendamento(StrEnum):
    """An appointment's status in the spreadsheet's own words."""

    PENDENTE = "Pendente"
    AUTORIZACAO = "Autorização"
    CADASTRAR = "Cadastrar"
    AGENDADO = "Agendado"
    CONFIRMADO = "Confirmado"
    COLETADO = "Coletado"
    ALTERAR = "Alterar"
    CANCELADO = "Cancelado"
    RECOLETA = "Recoleta"


# The columns that identify an appointment: place, patient and time.
ONDE_E_QUANDO: Final = ("nome_marca", "nome_unidade", "nome_paciente", "data_agendamento", "hora_agendamento")
LONGEST_TEXT: Final = 2000
# Maximum lengths in characters. Some columns are indexed: a PostgreSQL index row holds 2704 bytes, and a character
# takes up to four.
LONGEST_NAME: Final = 200
NOMES: Final = frozenset(
    [
        "nome_paciente", "nome_marca", "nome_unidade", "carro", "canal_confirmacao", "numero_convenio", "nome_convenio",
        "carteira_convenio", "especialidade", "origem_id", "convenio", "sala",
    ]
)  # fmt: skip


def mais_longo(campo: str) -> int:
    """Return the maximum length of an appointment field, in characters."""
    return LONGEST_NAME if campo in NOMES else LONGEST_TEXT


class Problema(StrEnum):
    """Problems in a row or file. The texts for operators are under ``agendamentos.motivo`` in the text files."""

    SEM_NOME = "sem_nome"
    SEM_VALOR = "sem_valor"
    DATA_ILEGIVEL = "data_ilegivel"
    HORA_ILEGIVEL = "hora_ilegivel"
    TELEFONE_ILEGIVEL = "telefone_ilegivel"
    CEP_ILEGIVEL = "cep_ilegivel"
    STATUS_DESCONHECIDO = "status_desconhecido"
    COBERTO = "coberto"
    TEXTO_CORTADO = "texto_cortado"
    COLUNA_REPETIDA = "coluna_repetida"
    REPETIDO = "repetido"
    SEM_HORA = "sem_hora"
    SALA = "sala"
    SECAO = "secao"
    COLUNA_SUPOSTA = "coluna_suposta"
    FORMULA = "formula"
    ILEGIVEL = "ilegivel"
    NAO_GRAVADA = "nao_gravada"
    INTERROMPIDA = "interrompida"
    ABA_IGNORADA = "aba_ignorada"
    ABA_DEMAIS = "aba_demais"
    ABA_DE_MESMO_NOME = "aba_de_mesmo_nome"
    MUITOS = "muitos"


class MotivoDaLinha(StrEnum):
    """Reasons to refuse a whole file. ``model.RECUSAS`` maps each reason to the error that operators read."""

    VAZIA = "vazia"
    SEM_COLUNAS = "sem_colunas"
    SEM_CABECALHO = "sem_cabecalho"
    COLUNAS_INCERTAS = "colunas_incertas"
    NAO_E_PLANILHA = "nao_e_planilha"
    PROTEGIDA = "protegida"
    MACROS = "macros"
    PERIGOSA = "perigosa"
    GRANDE = "grande"
    ILEGIVEL = "ilegivel"
    DEMORADA = "demorada"
    PESADA = "pesada"


class Achado(StrEnum):
    """Details of a refusal that need a translation. If the refusal's field ``oque`` has one of these values,
    ``model.ACHADOS`` has the text for operators. Any other value of ``oque``, such as "PDF" or "12 KiB", is shown
    unchanged.
    """

    COMPRIMIDO = "comprimido"
    TAMANHO_FALSO = "tamanho_falso"
    DTD = "dtd"
    LINHAS = "linhas"
    LINHA = "linha"
    COLUNA = "coluna"
    PARTES = "partes"
    CSV = "csv"
    TEXTO = "texto"
    OUTRA_COISA = "outra_coisa"


class Recusa(Exception):
    def __init__(self, motivo: MotivoDaLinha, **facts: object) -> None:
        super().__init__(motivo.value)
        self.motivo = motivo
        self.facts = facts


@dataclass(frozen=True, slots=True)
class Reparo:
    """A problem in a spreadsheet, which the import reports. ``linha`` is None if the problem concerns the whole file.
    ``aba`` is the sheet's name if several sheets are read. ``acima`` is the number of rows in the preceding sheets.
    """

    linha: int | None
    coluna: str | None
    problema: Problema
    aba: str | None = None
    acima: int = 0

    def em_json(self) -> "dict[str, Json]":
        document: dict[str, Json] = {"linha": self.linha, "coluna": self.coluna, "problema": self.problema.value}
        return document if self.aba is None else {**document, "aba": self.aba, "acima": self.acima}


class Reparos:
    """The first problems in a file, up to a limit, and the total number of its problems."""

    def __init__(self) -> None:
        self.quantos = 0
        self._first: list[Reparo] = []

    def append(self, reparo: Reparo) -> None:
        self.quantos += 1
        if self.quantos <= MOST_REPORTED:
            self._first.append(reparo)

    def com(self, more: "Reparos") -> list[Reparo]:
        both, left = [*self._first, *more._first], self.quantos + more.quantos - MOST_REPORTED
        return both if left <= 0 else [*both[:MOST_REPORTED], Reparo(None, str(left), Problema.MUITOS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pedaco:
    """A batch of rows, with counts of all rows up to line ``ate``. The last batch also has the problems to report.

    ``acima`` is the number of rows in the preceding sheets. Those rows are included in ``ate``, but not in a row's line
    number.
    """

    linhas: "Sequence[Mapping[str, Json]]"
    ate: int
    total: int
    invalidas: int
    puladas: int
    is_last: bool = False
    acima: int = 0
    erros: Sequence[Reparo] = ()
    avisos: Sequence[Reparo] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanilhaLida:
    """A whole spreadsheet in memory. ``linhas`` has the fields of each valid row, including its row number (``linha``)."""

    linhas: "Sequence[Mapping[str, Json]]"
    total: int
    puladas: int
    erros: Sequence[Reparo] = ()
    avisos: Sequence[Reparo] = field(default_factory=tuple)


def chave_de(campos: "Mapping[str, Json]") -> str:
    """Return the key of the appointment that a row describes. All copies of a row have the same key. The key is the id
    in the source system; if that id is missing, the key is derived from patient, place and time.
    """
    if campos.get("origem_id"):
        return _hash(f"origem|{campos['origem_id']}")
    return chave_natural_de(campos)


def chave_natural_de(campos: "Mapping[str, Json]") -> str:
    """Return an appointment's key, derived from patient, place and time. ``hora_dita`` is the text that a cell contains
    instead of a time, such as "manhã" (morning).
    """
    said = [campos.get(each) for each in ONDE_E_QUANDO]
    said[-1] = said[-1] or campos.get("hora_dita")
    return _hash("|".join([" ".join(str(each or "").casefold().split()) for each in said]))


def chave_seguinte(chave: str, n: int) -> str:
    """Return the key of the ``n``-th appointment among those without a time that share patient, place and day."""
    return _hash(f"{chave}#{n}")


def _hash(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest()
