"""What is read from a spreadsheet. Nothing here knows the engine: a child process that reads one file must start at once."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from batuta.kernel import Json

MOST_AT_ONCE: Final = 500  # rows in one piece, and in one transaction
MOST_REPORTED: Final = 200  # problems of one kind of list


class Situacao(StrEnum):
    """Of the visit itself."""

    PENDENTE = "Pendente"
    AUTORIZACAO = "Autorização"
    CADASTRAR = "Cadastrar"
    AGENDADO = "Agendado"
    CONFIRMADO = "Confirmado"
    COLETADO = "Coletado"
    ALTERAR = "Alterar"
    CANCELADO = "Cancelado"
    RECOLETA = "Recoleta"


ONDE_E_QUANDO: Final = ("nome_marca", "nome_unidade", "nome_paciente", "data_agendamento", "hora_agendamento")
LONGEST_TEXT: Final = 2000
# Short ones: some stand in an index, of whose rows PostgreSQL takes 2704 bytes, and a letter has up to four.
LONGEST_NAME: Final = 200
NOMES: Final = frozenset(
    [
        "nome_paciente", "nome_marca", "nome_unidade", "carro", "canal_confirmacao", "numero_convenio", "nome_convenio",
        "carteira_convenio", "especialidade", "origem_id", "convenio", "sala",
    ]
)  # fmt: skip


def mais_longo(campo: str) -> int:
    """Letters a field may have."""
    return LONGEST_NAME if campo in NOMES else LONGEST_TEXT


class Problema(StrEnum):
    """What is said of a row. The words stand in the tables of texts, under ``agendamentos.motivo``."""

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
    FORMULA = "formula"
    ILEGIVEL = "ilegivel"
    NAO_GRAVADA = "nao_gravada"
    INTERROMPIDA = "interrompida"
    ABA_IGNORADA = "aba_ignorada"
    ABA_DEMAIS = "aba_demais"
    ABA_DE_MESMO_NOME = "aba_de_mesmo_nome"
    MUITOS = "muitos"


class MotivoDaLinha(StrEnum):
    """Why a file is not taken, as a whole. Each has its sentence in ``model.RECUSAS``."""

    VAZIA = "vazia"
    SEM_COLUNAS = "sem_colunas"
    SEM_CABECALHO = "sem_cabecalho"
    NAO_E_PLANILHA = "nao_e_planilha"
    PROTEGIDA = "protegida"
    MACROS = "macros"
    PERIGOSA = "perigosa"
    GRANDE = "grande"
    ILEGIVEL = "ilegivel"
    DEMORADA = "demorada"
    PESADA = "pesada"


class Recusa(Exception):
    def __init__(self, motivo: MotivoDaLinha, **facts: object) -> None:
        super().__init__(motivo.value)
        self.motivo = motivo
        self.facts = facts


@dataclass(frozen=True, slots=True)
class Reparo:
    """Something a person should know about a row. ``linha`` None: about the file.

    ``aba``: its sheet, where more than one is read; ``acima``: rows of the sheets before it.
    """

    linha: int | None
    coluna: str | None
    problema: Problema
    aba: str | None = None
    acima: int = 0

    def em_json(self) -> "dict[str, Json]":
        document: dict[str, Json] = {"linha": self.linha, "coluna": self.coluna, "problema": self.problema.value}
        return document if self.aba is None else {**document, "aba": self.aba, "acima": self.acima}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pedaco:
    """Some rows of a sheet, and what is known of all up to the line ``ate``. The last one says what people should know.

    ``acima``: rows of the sheets before this one; ``ate`` counts them, what a row says of its own line does not.
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
class Lida:
    """A whole spreadsheet as it was read. ``linhas``: those that can be taken, each with its fields and its ``linha``."""

    linhas: "Sequence[Mapping[str, Json]]"
    total: int
    puladas: int
    erros: Sequence[Reparo] = ()
    avisos: Sequence[Reparo] = field(default_factory=tuple)


def chave_de(campos: "Mapping[str, Json]") -> str:
    """The same for one appointment, however often its row comes: the origin's own id, or who, where and when."""
    if campos.get("origem_id"):
        return _hash(f"origem|{campos['origem_id']}")
    return chave_natural_de(campos)


def chave_natural_de(campos: "Mapping[str, Json]") -> str:
    """Who, where and when. ``hora_dita``: what stands where an hour should, and is none."""
    said = {**campos, "hora_agendamento": campos.get("hora_agendamento") or campos.get("hora_dita")}
    return _hash("|".join(" ".join(str(said.get(each) or "").casefold().split()) for each in ONDE_E_QUANDO))


def chave_seguinte(chave: str, n: int) -> str:
    """Of the ``n``-th of some that say the same who, where and when, and no hour."""
    return _hash(f"{chave}#{n}")


def _hash(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest()
