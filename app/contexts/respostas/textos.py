"""The texts of Julia's answers. Julia says that it is a program, and states only stored facts."""

from datetime import date, datetime, time
from typing import Final

from app.contexts.plantoes.api import DIAS

MONDAY: Final = 0
RESERVADO: Final = "Pronto{nome}! O plantão está reservado para você:\n{fatos}"
RESERVADO_DE_GRUPO: Final = (
    "Reservei esta vaga para você{nome}:\n{fatos}\n"
    "Ela foi publicada por outra pessoa, que ainda precisa confirmar. Uma pessoa da equipe cuida disso e avisa por aqui."
)
A_CONFIRMAR: Final = (
    "Registrei seu aceite{nome}:\n{fatos}\n"
    "A vaga foi publicada por outra pessoa, que ainda precisa confirmar. Enquanto isso, não a ofereço a mais ninguém."
)
PRAZO: Final = "Essa pessoa tem até {ate} para confirmar, e eu aviso por aqui."
AINDA_A_CONFIRMAR: Final = (
    "Já registrei seu aceite{nome} e espero a confirmação de quem publicou a vaga:\n{fatos}\nAviso por aqui."
)
RECUSA_A_CONFIRMAR: Final = (
    "Recebi sua mensagem{nome}. Há um plantão que espera a confirmação de quem o publicou, e eu não o cancelei. "
    "Uma pessoa da equipe vai falar com você por aqui."
)
JA_RESERVADO: Final = "Este plantão já está reservado para você{nome}:\n{fatos}"
OCUPADO: Final = (
    "Obrigada pelo interesse{nome}. Este plantão não está mais disponível, e por isso não consegui reservá-lo "
    "para você."
)
ACEITE_SEM_OFERTA: Final = (
    "Recebi seu aceite{nome}, mas não sei dizer com certeza de qual plantão se trata, então ainda não reservei nada. "
    "Uma pessoa da equipe vai conferir e responder por aqui."
)
ACEITE_INCERTO: Final = (
    "Recebi sua mensagem{nome}, mas não tenho certeza de que seja um aceite, então ainda não reservei nada. "
    "Uma pessoa da equipe vai conferir e responder por aqui."
)
RECUSA: Final = "Tudo bem{nome}, obrigada por avisar."
RECUSA_COM_RESERVA: Final = (
    "Recebi sua mensagem{nome}. Há um plantão reservado para você, e eu não o cancelei. "
    "Uma pessoa da equipe vai falar com você por aqui."
)
FATOS: Final = "Estes são os dados do plantão{nome}:\n{fatos}"
PERGUNTA_SEM_RESPOSTA: Final = (
    "Não tenho essa informação{nome}. Passei sua pergunta a uma pessoa da equipe, que vai responder por aqui."
)
IDENTIDADE: Final = (
    "Sou a Julia, assistente virtual de escalas: um programa, não uma pessoa. "
    "Se preferir falar com alguém da equipe, é só pedir."
)
HUMANO: Final = "Claro{nome}. Eu sou uma assistente virtual; já avisei a equipe, e uma pessoa vai responder por aqui."
OBJECAO: Final = "Entendi{nome}, obrigada por avisar. Passei sua mensagem a uma pessoa da equipe."
OBJECAO_GRAVE: Final = (
    "Sinto muito{nome}. Não vou enviar ofertas nos próximos dias, e passei sua mensagem a uma pessoa da equipe."
)
CONFIRMACAO: Final = "Recebido{nome}, obrigada! Este plantão está reservado para você:\n{fatos}"
CONFIRMACAO_DA_OFERTA: Final = "Para reservar este plantão para você{nome}, responda ACEITO:\n{fatos}"
RECEBIDO: Final = "Recebido{nome}, obrigada!"
PARA_PESSOA: Final = "Passei sua mensagem a uma pessoa da equipe, que vai responder por aqui."
RECEBIMENTO: Final = {
    "generico": "Oi{nome}! Aqui é a Julia, assistente virtual de escalas. Recebi sua mensagem e respondo {quando}.",
    "vaga": (
        "Oi{nome}! Aqui é a Julia, assistente virtual de escalas. Recebi sua mensagem sobre o plantão e respondo {quando}."
    ),
    "aceite_vaga": (
        "Oi{nome}! Aqui é a Julia, assistente virtual de escalas. Recebi seu aceite. "
        "Ainda não é uma reserva: respondo {quando}."
    ),
    "confirmacao": (
        "Oi{nome}! Aqui é a Julia, assistente virtual de escalas. Recebi sua confirmação e respondo {quando}."
    ),
}
RETOMADA: Final = "Oi{nome}! Aqui é a Julia, assistente virtual de escalas. Sobre sua mensagem {quando}:\n{respostas}"


def abertura(opens: datetime, today: date) -> str:
    """Return words that say when the sending hours open: "hoje a partir das 8h", "amanhã a partir das 8h"."""
    match (opens.date() - today).days:
        case 0:
            day = "hoje"
        case 1:
            day = "amanhã"
        case _:
            day = f"{_na(opens.date())} {DIAS[opens.weekday()]}"
    return f"{day} a partir das {_hora(opens.time())}"


def quando_veio(came: date, today: date) -> str:
    """Return words that say when a message arrived. On a Monday, the weekday is named instead of "ontem" (yesterday),
    because Julia then answers all messages from the weekend.
    """
    match (today - came).days:
        case 0:
            return "de hoje"
        case 1 if today.weekday() != MONDAY:
            return "de ontem"
        case days if days < 7:
            return f"de {DIAS[came.weekday()]}"
        case _:
            return f"de {came:%d/%m}"


def _na(day: date) -> str:
    return "no" if DIAS[day.weekday()] in ("sábado", "domingo") else "na"


def _hora(at: time) -> str:
    return f"{at.hour}h{at:%M}" if at.minute else f"{at.hour}h"
