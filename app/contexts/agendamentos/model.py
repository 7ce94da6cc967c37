"""Fields and states of an appointment, and the errors of imports and changes."""

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from app.contexts.agendamentos.planilha.colunas import CAMPOS_DITOS, SUGERIDOS, chave_do_titulo
from app.contexts.agendamentos.planilha.linhas import Achado, MotivoDaLinha, Recusa
from app.contexts.agendamentos.texto import plano
from batuta import BatutaError
from batuta.reasons import ReasonCode, define

TIMEOUT_SAID: Final = "Job timeout exceeded"


class StatusDaLeitura(StrEnum):
    """Progress in parsing an appointment's address and documents."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


# Columns that a person can fill in. The spreadsheet and the API use the same column names.
CAMPOS: Final = (
    "nome_paciente", "nome_marca", "nome_unidade", "data_agendamento", "hora_agendamento", "status", "telefone", "observacoes",
    "exames", "carro", "canal_confirmacao", "data_confirmacao", "hora_confirmacao", "cep", "endereco_coleta", "endereco_completo",
    "documento_completo", "numero_convenio", "nome_convenio", "carteira_convenio", "especialidade", "origem_id",
)  # fmt: skip


def fonte_de(endereco: str | None, documento: str | None, cep: str | None) -> str:
    """Return a hash of the texts of an appointment from which address and documents are parsed. A parsing task compares
    the hash before it stores its result, so that the result of an outdated text is not stored.
    """
    return hashlib.sha256("\x00".join(each or "" for each in (endereco, documento, cep)).encode()).hexdigest()


class ImportacaoInexistente(BatutaError):
    sentence = "import {id} does not exist: `batuta agendamentos importacoes` lists the latest"


class AgendamentoInexistente(BatutaError):
    sentence = "appointment {id} does not exist: `batuta agendamentos listar` lists the existing ones"


class AgendamentoRecusado(BatutaError):
    sentence = "{campo} has an invalid value: correct it and try again"


class AgendamentoRepetido(BatutaError):
    sentence = "another appointment has the same patient, place and time: change that one instead"


class PlanilhaRecusada(BatutaError):
    """Raised when the import refuses a whole spreadsheet file."""


class PlanilhaVazia(PlanilhaRecusada):
    sentence = "the spreadsheet is empty: no visible sheet has a cell. Export it again and send it"


class ColunasAusentes(PlanilhaRecusada):
    sentence = "the spreadsheet lacks the columns {colunas}: add them to the header row and send it again"


class SemCabecalho(PlanilhaRecusada):
    sentence = (
        "no row of the spreadsheet looks like a header. Add a row with these titles above the rows of the patients and "
        "send it again: {colunas}"
    )


class ColunasIncertas(PlanilhaRecusada):
    sentence = (
        "it is unclear which column has which field. Proposed columns: {proposta}. Send it again with one --coluna "
        '"TITLE=FIELD" (API: colunas) for each title; later files with these titles need no --coluna'
    )


class ColunaDesconhecida(PlanilhaRecusada):
    sentence = (
        "'{coluna}' is not valid: write TITLE=FIELD, where FIELD is one of {campos}, and send the spreadsheet again"
    )


class NaoEPlanilha(PlanilhaRecusada):
    sentence = "this is not an .xlsx file but {oque}: open it in a spreadsheet program, save it as .xlsx and send that"


class PlanilhaProtegida(PlanilhaRecusada):
    sentence = "the file is protected by a password: save it without a password and send it again"


class PlanilhaComMacros(PlanilhaRecusada):
    sentence = "the file has macros, which are never run here: save it as a plain .xlsx and send that"


class PlanilhaPerigosa(PlanilhaRecusada):
    sentence = (
        "the file contains {oque}, which no spreadsheet needs, and was not opened: save it again as .xlsx and send that"
    )


class PlanilhaGrande(PlanilhaRecusada):
    sentence = "the spreadsheet is too large: it has {oque}, and the limit is {limite}. Remove empty rows and columns, or split it"


class PlanilhaIlegivel(PlanilhaRecusada):
    sentence = "the spreadsheet cannot be read: it is damaged. Open it in a spreadsheet program, save it as .xlsx and send that"


class LeituraDemorada(PlanilhaRecusada):
    sentence = "reading the spreadsheet took longer than {segundos} s: split it into smaller ones and send those"


class LeituraPesada(PlanilhaRecusada):
    sentence = "reading the spreadsheet exceeded the memory limit: split it into smaller ones and send those"


RECUSAS: Final[Mapping[MotivoDaLinha, type[PlanilhaRecusada]]] = {
    MotivoDaLinha.VAZIA: PlanilhaVazia,
    MotivoDaLinha.SEM_COLUNAS: ColunasAusentes,
    MotivoDaLinha.SEM_CABECALHO: SemCabecalho,
    MotivoDaLinha.COLUNAS_INCERTAS: ColunasIncertas,
    MotivoDaLinha.NAO_E_PLANILHA: NaoEPlanilha,
    MotivoDaLinha.PROTEGIDA: PlanilhaProtegida,
    MotivoDaLinha.MACROS: PlanilhaComMacros,
    MotivoDaLinha.PERIGOSA: PlanilhaPerigosa,
    MotivoDaLinha.GRANDE: PlanilhaGrande,
    MotivoDaLinha.ILEGIVEL: PlanilhaIlegivel,
    MotivoDaLinha.DEMORADA: LeituraDemorada,
    MotivoDaLinha.PESADA: LeituraPesada,
}


ACHADOS: Final[Mapping[str, ReasonCode]] = {
    Achado.COMPRIMIDO: define("planilha_comprimido", "data with an implausible compression ratio"),
    Achado.TAMANHO_FALSO: define("planilha_tamanho_falso", "a part with a false size"),
    Achado.DTD: define("planilha_dtd", "a DTD"),
    Achado.LINHAS: define("planilha_linhas", "{quanto} rows"),
    Achado.LINHA: define("planilha_linha", "a cell in row {quanto}"),
    Achado.COLUNA: define("planilha_coluna", "a cell in column {quanto}"),
    Achado.PARTES: define("planilha_partes", "{quanto} parts"),
    Achado.CSV: define("planilha_csv", "text (CSV)"),
    Achado.TEXTO: define("planilha_texto", "plain text"),
    Achado.OUTRA_COISA: define("planilha_outra_coisa", "a file of an unknown kind"),
}


def recusada(refused: Recusa) -> PlanilhaRecusada:
    """Convert the child process's reason for refusing a file to the error that operators read."""
    facts = {name: fact for name, fact in refused.facts.items() if name not in ("forma", "quanto")}
    if (found := ACHADOS.get(str(facts.get("oque")))) is not None:
        facts["oque"] = found(quanto=refused.facts["quanto"]) if "quanto" in refused.facts else found()
    return RECUSAS[refused.motivo](**facts)


def colunas_ditas(ditas: Iterable[str]) -> dict[str, str]:
    """Parse an operator's choices such as "DIA DA CONSULTA=data". Map each column title to the chosen field."""
    chosen: dict[str, str] = {}
    for dita in ditas:
        titulo, _, campo = dita.rpartition("=")
        chave, name = chave_do_titulo(titulo), CAMPOS_DITOS.get(plano(campo.strip()))
        if not chave or name is None:
            raise ColunaDesconhecida(coluna=dita, campos=", ".join(SUGERIDOS))
        chosen[chave] = name
    return chosen
