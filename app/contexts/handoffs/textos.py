"""Write a hand-off's messages. They state only stored facts, and the person who posted the vacancy receives no personal
data about the doctor.
"""

from datetime import datetime
from typing import Final

from app.contexts.handoffs.model import Status, Via

PERGUNTA: Final = (
    "Oi{nome}! Aqui é a Julia, assistente virtual de escalas. Um médico quer esta vaga que você publicou:\n{fatos}\n"
    "A vaga pode ficar com ele? Responda CONFIRMO ou NÃO CONFIRMO até {ate}.{link}\n"
    "Se preferir não receber mais mensagens, responda PARAR."
)
LEMBRETES: Final = (
    "Oi{nome}! Ainda preciso da sua resposta sobre esta vaga:\n{fatos}\n"
    "A vaga pode ficar com o médico? Responda CONFIRMO ou NÃO CONFIRMO.{link}",
    "Oi{nome}! O médico continua esperando sua resposta sobre esta vaga:\n{fatos}\n"
    "Responda CONFIRMO ou NÃO CONFIRMO até {ate}.{link}",
    "Oi{nome}! Este é o último aviso sobre esta vaga:\n{fatos}\n"
    "Se não houver resposta até {ate}, o médico será liberado. Responda CONFIRMO ou NÃO CONFIRMO.{link}",
)
COM_LINK: Final = "\nOu use este link: {link}"
# Answers to the poster.
OBRIGADA: Final = {
    Status.CONFIRMED: "Obrigada! Registrei que você confirmou o médico para esta vaga, e vou avisá-lo.",
    Status.NOT_CONFIRMED: "Obrigada por avisar. Registrei que o médico não fica com esta vaga, e vou avisá-lo.",
}
# Messages to the doctor.
PEDIDO: Final = (
    "Oi{nome}! Aqui é a Julia, assistente virtual de escalas. Pedi a confirmação deste plantão para você:\n{fatos}\n"
    "Ele foi publicado por outra pessoa, que tem até {ate} para confirmar. Aviso por aqui."
)
CONFIRMADO: Final = (
    "Pronto{nome}! Quem publicou o plantão confirmou que ele é seu:\n{fatos}\nContato de quem publicou: {contato}"
)
NAO_CONFIRMADO: Final = (
    "Infelizmente{nome}, quem publicou este plantão não confirmou você:\n{fatos}\n"
    "Por isso ele não está reservado para você."
)
VENCIDO: Final = (
    "Infelizmente{nome}, quem publicou este plantão não respondeu a tempo:\n{fatos}\n"
    "Por isso ele não está reservado para você."
)
INDISPONIVEL: Final = (
    "Infelizmente{nome}, este plantão não está mais disponível:\n{fatos}\nPor isso ele não está reservado para você."
)


def ao_medico(status: Status, via: Via) -> str:
    """Return the message that tells the doctor a hand-off's result."""
    if via is Via.VAGA:
        return INDISPONIVEL
    return {Status.CONFIRMED: CONFIRMADO, Status.NOT_CONFIRMED: NAO_CONFIRMADO}.get(status, VENCIDO)


def quando(at: datetime) -> str:
    """Format a local time for a message: "12/03 às 11h", "12/03 às 11h30"."""
    return f"{at:%d/%m} às {at.hour}h" + (f"{at:%M}" if at.minute else "")
