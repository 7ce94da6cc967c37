"""The reader of inbound texts: message class, opt-out, spelling, quotations and time."""

import time

import pytest

from app.contexts.leitura_conversas.api import Classe, Leitura, OptOut, ler


@pytest.mark.parametrize(
    "texto",
    [
        "PARAR", "cancelar", "sai fora", "bloqueia", "não quero mais nada", "me deixa em paz", "não me chama mais",
        "parem de me incomodar", "apague meus dados", "STOP", "quero sair da lista", "Não autorizo contato neste número",
    ],
)  # fmt: skip
def test_a_plain_wish_to_be_left_alone_is_certain(texto: str) -> None:
    assert ler(texto).opt_out is OptOut.CERTO


@pytest.mark.parametrize("texto", ["chega", "de novo isso?", "já falei que não", "vou bloquear", "😡😡", "que saco"])
def test_annoyance_is_a_probable_wish(texto: str) -> None:
    assert ler(texto).opt_out is OptOut.PROVAVEL


@pytest.mark.parametrize(
    "texto",
    [
        "p a r a r", "P.A.R.E.", "PÀRAR", "рarаr", "p4r4r", "ｐａｒａｒ", "𝗣𝗔𝗥𝗔𝗥", "p*rar", "paraaaar", "pa​rar", "🅿🅰🆁🅰🆁",
        "naomemandemaismensagem", "não me mamde mais mensgem", "n mande + msg", "*SAIR*", "“parar”",
    ],
)  # fmt: skip
def test_spelling_look_alikes_and_spaces_hide_nothing(texto: str) -> None:
    assert ler(texto).opt_out is OptOut.CERTO


@pytest.mark.parametrize(
    "texto",
    [
        "", "vou parar às 19h", "cancela a reserva de sexta", "para de segunda a sexta pode ser", "não me manda o endereço ainda",
        "tira meu nome da escala de domingo", "bloqueia minha agenda dia 12", "pode parar, já achei o hospital",
        "não quero mais esse valor", "remove o anexo e manda de novo", "não me manda mais vaga de pediatria, só adulto",
        "não me tira da lista, quero continuar", "não quero receber por RPA", "me tira uma dúvida",
    ],
)  # fmt: skip
def test_work_talk_is_not_an_opt_out(texto: str) -> None:
    assert ler(texto).opt_out is OptOut.NAO


@pytest.mark.parametrize(
    "texto",
    [
        "Ana Paula", "ANA PAULA", "Maria Clara Souza", "Dra. Ana", "Dra Ana Paula Costa", "Drª Ana", "Dr. Marcos Vinícius",
        "Sou a Dra. Ana Paula", "aqui é a Dra. Carla", "Meu nome é Ana Paula", "att Dra. Ana Paula", "Paulo", "sou eu", "opção 2",
        "xxx", "good morning",
    ],
)  # fmt: skip
def test_a_name_or_another_short_text_is_not_an_opt_out(texto: str) -> None:
    assert ler(texto).opt_out is OptOut.NAO


def test_quoted_words_are_another_persons() -> None:
    assert ler('"para sair da lista responda SAIR" que isso?').opt_out is OptOut.NAO
    assert ler("> não me mande mais mensagens\nquem escreveu isso?").opt_out is OptOut.NAO
    assert ler('já mandei "PARAR" e vocês continuam').opt_out is not OptOut.NAO


@pytest.mark.parametrize(
    ("texto", "classe"),
    [
        ("quero sim, pode reservar", Classe.ACEITE),
        ("não posso sábado", Classe.RECUSA),
        ("qual o valor?", Classe.PERGUNTA),
        ("quero falar com um atendente", Classe.HUMANO),
        ("valor muito baixo", Classe.OBJECAO),
        ("confirmo presença amanhã", Classe.CONFIRMACAO),
        ("não me mande mais nada", Classe.OPT_OUT),
        ("chega né", Classe.OPT_OUT),
        ("bom dia", Classe.OUTRO),
    ],
)
def test_the_class_of_a_text(texto: str, classe: Classe) -> None:
    assert ler(texto).classe is classe


def test_a_reading_names_the_rule_and_the_words_that_decided() -> None:
    assert ler("Bom dia. Não me mande mais mensagens.") == Leitura(
        classe=Classe.OPT_OUT,
        opt_out=OptOut.CERTO,
        confianca=1.0,
        regra="pedido",
        trechos=("nao me mande mais mensagens",),
    )


def test_wish_at_the_end_of_a_long_text_is_recognised() -> None:
    assert ler("Já falei com vocês sobre a escala. " * 400 + "Não me mandem mais mensagens.").opt_out is OptOut.CERTO


@pytest.mark.parametrize(
    "piece",
    [
        "não me tira o o o ",
        "a ",
        "p a r a ",
        '"',
        "nao quero ",
        "> ",
        "não me manda mais ",
        "😡",
        ".a",
        "naomande",
        "para de me ",
    ],
)
def test_the_time_for_a_hostile_text_grows_with_its_length_only(piece: str) -> None:
    short, long = (piece * (size // len(piece)) for size in (8_192, 65_536))
    ler(short)
    started = time.process_time()
    ler(short)
    once = time.process_time() - started
    started = time.process_time()
    ler(long)
    # The text is eight times as long. A quadratic reader would take sixty-four times as long.
    assert time.process_time() - started < 30 * max(once, 0.01)
