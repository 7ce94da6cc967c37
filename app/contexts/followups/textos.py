"""The follow-up texts. Julia introduces itself as a virtual assistant and states only stored facts.

Each follow-up has three variants. A conversation always gets the same variant, so that a second attempt to send has the
same text as the first: only then can the send protocol recognise the message from the first attempt.
"""

from typing import Final
from zlib import crc32

from app.contexts.comum.texto import chamado
from app.contexts.mensagens.api import Tipo
from app.contexts.plantoes.api import fatos_da_vaga
from batuta.sql import Row

JULIA: Final = "Oi{nome}! Aqui é a Julia, assistente virtual de escalas. "
PARAR: Final = " Se preferir não receber mais mensagens, responda PARAR."
VARIANTES: Final = {
    Tipo.FOLLOWUP_1: (
        "Escrevi há alguns dias e ainda não tive retorno. Se quiser saber de plantões, é só responder por aqui.",
        "Passando para saber se você viu minha mensagem. Quando puder, me responda por aqui.",
        "Retomando minha última mensagem: você tem interesse em plantões? É só responder por aqui.",
    ),
    Tipo.FOLLOWUP_2: (
        "Sigo à disposição para falar de plantões. Se houver interesse, é só responder por aqui.",
        "Ainda não tive sua resposta. Posso avisar quando surgir um plantão para você? É só responder por aqui.",
        "Se você tem interesse em plantões, me conte por aqui o que procura.",
    ),
    Tipo.FOLLOWUP_3: (
        "Como não tive retorno, esta é minha última mensagem por enquanto. Se precisar, é só escrever por aqui.",
        "Não quero incomodar: paro de escrever por enquanto. Quando quiser falar de plantões, é só chamar por aqui.",
        "Vou parar de escrever por enquanto. Se tiver interesse em plantões mais adiante, é só escrever por aqui.",
    ),
}
COM_VAGA: Final = (
    "Este plantão da sua especialidade está em aberto:\n{fatos}\nTem interesse? É só responder por aqui.",
    "Encontrei um plantão em aberto na sua especialidade:\n{fatos}\nSe interessar, é só responder por aqui.",
    "Há um plantão em aberto na sua especialidade:\n{fatos}\nPosso reservar para você? É só responder por aqui.",
)


def followup(tipo: Tipo, conversa_id: str, nome: str | None, vaga: Row | None = None) -> str:
    """Write a follow-up. ``vaga`` is the vacancy that the second follow-up mentions, or None."""
    variants = VARIANTES[tipo] if vaga is None else COM_VAGA
    body = variants[crc32(conversa_id.encode()) % len(variants)]
    if vaga is not None:
        body = body.format(fatos=fatos_da_vaga(vaga))
    return JULIA.format(nome=chamado(nome)) + body + PARAR
