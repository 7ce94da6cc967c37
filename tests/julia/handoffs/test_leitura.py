"""How Julia reads the reply of a person who posted a vacancy: negations are recognised first, and doubtful replies
decide nothing.
"""

import pytest

from app.contexts.handoffs.leitura import confirma

YES = (
    "Confirmo", "CONFIRMADO!", "confirmo sim", "Fechado", "fechou", "Fechamos com ele", "tudo certo", "sim",
    "Sim, pode confirmar", "ok, confirmado", "pode fechar", "Combinado 👍", "confirmada a vaga", "isso, fechado",
)  # fmt: skip
NO = (
    "NÃO CONFIRMO", "nao confirmo", "não confirmado", "Não", "não foi fechado", "não fechou",
    "fechado com outro médico", "fechei com outra pessoa", "já foi preenchida", "fechou com um outro colega",
    "não tenho mais essa vaga", "a vaga foi cancelada", "infelizmente não deu certo", "negativo",
    "não, fechou com outro", "não confirmo, já tenho outro médico", "Não está confirmado", "nunca confirmei isso",
    "não vai ser fechado com ele",
)  # fmt: skip
DOUBTFUL = (
    "ainda não está fechado", "ainda não", "ainda não confirmei", "qual vaga?", "quem é?", "acho que sim",
    "talvez", "vou ver e te aviso", "não sei", "confirmado?", "depois confirmo", "bom dia", "", "👍",
    "não, confirmado", "se ele aceitar o valor, confirmo", "aguarde", "não entendi", "quase fechado",
    "não tem problema, pode confirmar", "amanhã confirmo",
)  # fmt: skip


@pytest.mark.parametrize("texto", YES)
def test_confirmation_is_read(texto: str) -> None:
    assert confirma(texto) is True


@pytest.mark.parametrize("texto", NO)
def test_refusal_is_read_before_a_confirmation(texto: str) -> None:
    assert confirma(texto) is False


@pytest.mark.parametrize("texto", DOUBTFUL)
def test_doubtful_reply_decides_nothing(texto: str) -> None:
    assert confirma(texto) is None
