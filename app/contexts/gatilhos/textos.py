"""The triggers' message texts. Julia introduces itself as a virtual assistant and states only stored facts."""

from collections.abc import Mapping
from typing import Any, Final

from app.contexts.comum.texto import chamado
from app.contexts.gatilhos.model import Gatilho
from app.contexts.plantoes.api import DIAS
from batuta.sql import Row

APRESENTACAO: Final = "Oi{nome}! Aqui é a Julia, assistente virtual de escalas. "
SAIDA: Final = " Se preferir não receber mais mensagens, responda PARAR."
DISCOVERY: Final = (
    APRESENTACAO
    + "Aviso médicos sobre plantões em aberto. Para eu só escrever sobre o que combina com você, pode me dizer sua "
    "especialidade e em que cidade atende?" + SAIDA
)
REATIVACAO: Final = (
    APRESENTACAO
    + "Faz mais de dois meses que não nos falamos por aqui. Você ainda quer receber ofertas de plantão?"
    + SAIDA
)
FEEDBACK: Final = (
    APRESENTACAO
    + "Como foi o seu plantão ({hospital}, {dia})? Responda com uma nota de 1 (muito ruim) a 5 (muito bom) e, "
    "se quiser, conte o motivo." + SAIDA
)
# Julia's answers to the doctor.
ESPECIALIDADE: Final = (
    "Obrigada{nome}! Registrei sua especialidade: {especialidade}. Se não estiver certo, é só me avisar por aqui."
)
INTERESSE: Final = (
    "Obrigada{nome}! Registrei que você quer receber ofertas de plantão. "
    "Se preferir falar com uma pessoa da equipe, é só pedir."
)
AVALIADO: Final = "Obrigada por contar{nome}! Registrei sua avaliação do plantão."
AVALIADO_MAL: Final = (
    "Obrigada por contar{nome}. Registrei sua avaliação do plantão e passei sua mensagem a uma pessoa da equipe."
)


def texto_de(gatilho: Gatilho, row: Row | Mapping[str, Any]) -> str:
    """Write a trigger's message to one selected doctor."""
    nome = chamado(row["primeiro_nome"])
    match gatilho:
        case Gatilho.DISCOVERY:
            return DISCOVERY.format(nome=nome)
        case Gatilho.REATIVACAO:
            return REATIVACAO.format(nome=nome)
        case Gatilho.FEEDBACK:
            day = row["data"]
            return FEEDBACK.format(nome=nome, hospital=row["hospital"], dia=f"{DIAS[day.weekday()]}, {day:%d/%m/%Y}")
        case Gatilho.OFERTA:
            raise ValueError("plantoes writes the text of an offer")
