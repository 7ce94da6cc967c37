"""States and audience filters of a campaign.

rascunho ─▶ agendada ─▶ ativa ─▶ concluida      when every message was sent or can no longer be sent
               │  ▲       │  ▲
               ▼  │       ▼  │
              pausada ◀───────┘      any state that is not final ─▶ cancelada
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from app.contexts.mensagens.api import RegrasDeEnvio
from batuta import BatutaError
from batuta.kernel import Json, dataclass, is_writable
from batuta.reasons import define

MOST_RECIPIENTS: Final = 10_000
MOST_VALUES: Final = 200
LONGEST_NAME: Final = 120
OUTSIDE = define("campanha_fora_da_janela", "outside the campaign's window")


class StatusDaCampanha(StrEnum):
    RASCUNHO = "rascunho"
    AGENDADA = "agendada"
    ATIVA = "ativa"
    PAUSADA = "pausada"
    CONCLUIDA = "concluida"
    CANCELADA = "cancelada"


class TipoDeCampanha(StrEnum):
    DISCOVERY = "discovery"
    OFERTA = "oferta"
    OFERTA_PLANTAO = "oferta_plantao"
    REATIVACAO = "reativacao"
    FOLLOWUP = "followup"
    FEEDBACK = "feedback"


class Acao(StrEnum):
    AGENDAR = "agendar"
    PAUSAR = "pausar"
    RETOMAR = "retomar"
    CANCELAR = "cancelar"


FROM: Final[Mapping[Acao, frozenset[StatusDaCampanha]]] = {
    Acao.AGENDAR: frozenset({StatusDaCampanha.RASCUNHO, StatusDaCampanha.AGENDADA}),
    Acao.PAUSAR: frozenset({StatusDaCampanha.AGENDADA, StatusDaCampanha.ATIVA}),
    Acao.RETOMAR: frozenset({StatusDaCampanha.PAUSADA}),
    Acao.CANCELAR: frozenset(
        {StatusDaCampanha.RASCUNHO, StatusDaCampanha.AGENDADA, StatusDaCampanha.ATIVA, StatusDaCampanha.PAUSADA}
    ),
}


class CampanhaInexistente(BatutaError):
    sentence = "campaign {id} does not exist: `batuta campanhas listar` lists the existing ones"


class CampanhaNaoPode(BatutaError):
    sentence = (
        "campaign {id} is {status}, and {acao} needs a campaign that is {de}: `batuta campanhas ver {id}` shows it"
    )


class DestinatarioDesconhecido(BatutaError):
    sentence = "no doctor has this number or id: write the number as in 5511900000001"


class CampanhaRecusada(BatutaError):
    """Raised when the text, the filters or the settings of a campaign are invalid."""


class NomeRecusado(CampanhaRecusada):
    sentence = "a campaign's name has 1 to {longest} characters, and like its objective it is plain text: correct it and try again"


class TextoAusente(CampanhaRecusada):
    sentence = "the campaign has no text: write its corpo and try again"


class TextoRecusado(CampanhaRecusada):
    sentence = "the campaign's text has more than {longest} characters, or invalid ones: correct it and try again"


class CampoDesconhecido(CampanhaRecusada):
    sentence = "the campaign's text has the placeholder '{campo}', but only {known} exist: correct it and try again"


class ChaveSolta(CampanhaRecusada):
    sentence = "the campaign's text has an unmatched brace: correct it and try again"


class FiltroDesconhecido(CampanhaRecusada):
    sentence = "audience_filters has no key '{filtro}', only {known}: correct it and try again"


class FiltroRecusado(CampanhaRecusada):
    sentence = "'{filtro}' of audience_filters takes {takes}: correct it and try again"


class MedicosDesconhecidos(CampanhaRecusada):
    sentence = "{quantos} of clientes_especificos are not ids of doctors: correct them and try again"


class SemPublico(CampanhaRecusada):
    """Raised when a campaign is valid but would currently have no recipients."""


class PublicoVazio(SemPublico):
    sentence = (
        "campaign {id} would have no recipients then: all doctors of its audience are excluded ({motivos}). It is unchanged: "
        "schedule it for later (`batuta campanhas agendar {id} --para …`) or create one with a larger audience; "
        "docs/operations.md explains each reason"
    )


class PublicoInexistente(SemPublico):
    sentence = (
        "no doctor fits the audience of campaign {id}, which is unchanged: `batuta campanhas ver {id} --json` shows its "
        "audience_filters; create another with a speciality and a region that doctors have"
    )


def ninguem_recebeu(status: str, destinatarios: int) -> bool:
    """Return whether a campaign ended without any recipients. Such a campaign is not reported as successful."""
    return status == StatusDaCampanha.CONCLUIDA and destinatarios == 0


def depois(acao: Acao, status: StatusDaCampanha, *, began: bool) -> StatusDaCampanha | None:
    """Return the status of a campaign after an action, or None if the current status does not allow the action.
    ``began`` says whether the campaign has already started once.
    """
    if status not in FROM[acao]:
        return None
    match acao:
        case Acao.AGENDAR:
            return StatusDaCampanha.AGENDADA
        case Acao.PAUSAR:
            return StatusDaCampanha.PAUSADA
        case Acao.CANCELAR:
            return StatusDaCampanha.CANCELADA
        case Acao.RETOMAR:
            return StatusDaCampanha.ATIVA if began else StatusDaCampanha.AGENDADA


def espera(regras: RegrasDeEnvio, now: datetime) -> str | None:
    """Return why the sending rules currently prevent campaigns from starting, or None if campaigns may start. The same
    rules are checked again before each message is sent.
    """
    held = next((hold for hold in (regras.paused, regras.campaigns, regras.safe_mode) if hold is not None), None)
    if held is not None:
        return held.reason
    if regras.window is not None and not regras.window.is_open(now, regras.zone):
        return OUTSIDE()
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtros:
    """Audience filters of a campaign: either named doctors, or all doctors with one of these specialities in one of
    these regions.
    """

    especialidades: tuple[str, ...] = ()
    regioes: tuple[str, ...] = ()
    clientes_especificos: tuple[str, ...] = ()
    chips_excluidos: tuple[str, ...] = ()
    quantidade_alvo: int = 50
    pressure_score_max: int = 50
    aleatorio: bool = False


@dataclass(frozen=True, slots=True)
class Lugar:
    especialidade: str | None
    cidade: str | None
    estado: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorte:
    """The specialities, cities and states that match the audience filters, spelled as in the doctors' rows. A field
    that is None is not restricted by the filters.
    """

    especialidades: tuple[str, ...] | None
    cidades: tuple[str, ...] | None
    estados: tuple[str, ...] | None


def filtros_de(valor: Json) -> Filtros:
    """Parse ``audience_filters``. Raises an error if it contains an unknown key."""
    if not isinstance(valor, Mapping):
        raise FiltroRecusado(filtro="audience_filters", takes="{…}")
    known = {*Filtros.__dataclass_fields__, "modo_selecao", "excluir_opt_out"} - {"aleatorio"}
    if strange := sorted(set(valor) - known):
        raise FiltroDesconhecido(filtro=strange[0][:40], known=", ".join(sorted(known)))
    if valor.get("excluir_opt_out", True) is not True:
        raise FiltroRecusado(filtro="excluir_opt_out", takes="true")
    modo = valor.get("modo_selecao", "deterministico")
    if modo not in ("deterministico", "aleatorio"):
        raise FiltroRecusado(filtro="modo_selecao", takes="deterministico | aleatorio")
    return Filtros(
        especialidades=_words(valor, "especialidades"),
        regioes=_words(valor, "regioes"),
        clientes_especificos=_ids(_words(valor, "clientes_especificos", most=MOST_RECIPIENTS)),
        chips_excluidos=_words(valor, "chips_excluidos"),
        quantidade_alvo=_number(valor, "quantidade_alvo", 50, 1, MOST_RECIPIENTS),
        pressure_score_max=_number(valor, "pressure_score_max", 50, 0, 100),
        aleatorio=modo == "aleatorio",
    )


def recorte(filtros: Filtros, presentes: Iterable[Lugar]) -> Recorte:
    """Return the specialities and places in the doctors' rows that match the words in the filters. The comparison
    ignores accents and case.
    """
    lugares = list(presentes)
    return Recorte(
        especialidades=_matching(filtros.especialidades, [each.especialidade for each in lugares]),
        cidades=_matching(filtros.regioes, [each.cidade for each in lugares]),
        estados=_matching(filtros.regioes, [each.estado for each in lugares]),
    )


def de_ninguem(filtros: Filtros, presentes: Iterable[Lugar]) -> tuple[str, ...]:
    """Return the filter words that match no doctor. Such words are probably misspelt."""
    lugares = list(presentes)
    specialties = {plain(each.especialidade) for each in lugares if each.especialidade}
    places = {plain(word) for each in lugares for word in (each.cidade, each.estado) if word}
    return (
        *(word for word in filtros.especialidades if plain(word) not in specialties),
        *(word for word in filtros.regioes if plain(word) not in places),
    )


def _matching(wanted: Sequence[str], present: Iterable[str | None]) -> tuple[str, ...] | None:
    if not wanted:
        return None
    asked = {plain(word) for word in wanted}
    return tuple(sorted({word for word in present if word is not None and plain(word) in asked}))


def plain(text: str) -> str:
    bare = "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))
    return " ".join(bare.casefold().split())


def _words(valor: Mapping[str, Json], name: str, most: int = MOST_VALUES) -> tuple[str, ...]:
    given = valor.get(name)
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) > most:
        raise FiltroRecusado(filtro=name, takes=f"[…], 0–{most}")
    if not all(isinstance(each, str) and each.strip() and is_writable(each) for each in given):
        raise FiltroRecusado(filtro=name, takes=f"[…], 0–{most}")
    return tuple(dict.fromkeys(str(each).strip() for each in given))


def _ids(given: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(str(UUID(each)) for each in given))
    except ValueError:
        raise FiltroRecusado(filtro="clientes_especificos", takes="[UUID, …]") from None


def _number(valor: Mapping[str, Json], name: str, otherwise: int, least: int, most: int) -> int:
    given = valor.get(name, otherwise)
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise FiltroRecusado(filtro=name, takes=f"{least}–{most}")
    return given
