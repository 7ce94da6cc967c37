"""Whoever asks us to stop is heard, in his own words; and nobody is silenced for a word in passing."""

import pytest

from app.contexts.conversas.model import pede_para_parar


@pytest.mark.parametrize(
    "texto",
    [
        "PARAR", "pare!", "Stop", "sair", "Sair, por favor", "por favor, pare", "remover", "descadastrar", "quero sair",
        "chega 😡",
        "Não me mande mais mensagens", "nao mande mais", "não me envie mensagens", "n quero receber mensagens",
        "Não quero mais receber isso",
        "não gostaria de receber", "não desejo ser contatada", "para de me mandar mensagem", "Parem de enviar",
        "pare com isso mensagens",
        "me tira da lista", "por favor remova meu número", "Retire meu contato", "exclua meu cadastro", "quero sair da lista",
        "cancelar inscrição", "não me perturbe", "opt-out", "quero me descadastrar", "Bom dia. Não me procure mais, obrigada.",
    ],
)  # fmt: skip
def test_a_wish_to_be_left_alone_is_heard(texto: str) -> None:
    assert pede_para_parar(texto)


@pytest.mark.parametrize(
    "texto",
    [
        "", "Oi", "Quero sim", "vou parar no hospital às 7h", "não posso sair desse plantão", "não mandei o documento ainda",
        "não me mandaram o endereço", "tirei meu nome da escala", "preciso cancelar o plantão", "cancelar",
        "não tenho interesse nessa vaga",
        "não quero essa vaga", "pode mandar mais", "para quando é?", "para mim está bom", "qual a lista de documentos?",
        "remarcar",
        "não enviei o contato", "me manda o número do contato", "não recebi o pagamento", "para de chover e eu vou",
    ],
)  # fmt: skip
def test_talk_about_work_is_not_taken_for_it(texto: str) -> None:
    assert not pede_para_parar(texto)


def test_a_wish_in_a_long_complaint_is_heard_and_a_long_story_costs_no_time() -> None:
    assert pede_para_parar("Já falei com vocês várias vezes sobre isso. " * 20 + "Não me mandem mais mensagens.")
    assert not pede_para_parar("não me tira o o o " * 20_000)
