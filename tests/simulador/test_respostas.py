"""The simulated people's replies fit the messages that Julia sends, and Julia understands them."""

from datetime import date

import pytest

from app.contexts.gatilhos.model import Gatilho
from app.contexts.gatilhos.textos import texto_de
from app.contexts.handoffs import textos as handoffs
from app.contexts.handoffs.leitura import confirma
from app.contexts.leitura_conversas.api import Classe
from app.contexts.leitura_conversas.leitor import ler
from app.contexts.plantoes.texto import oferta
from app.contexts.respostas import textos as respostas
from simulador.comportamento import Chance
from simulador.evolution.respostas import ASSUNTOS, reply_to

VAGA = {
    "hospital": "Hospital Fictício", "cidade": "São Paulo", "uf": "SP", "especialidade": "Pediatria",
    "data": date(2026, 3, 13), "hora_inicio": "19:00", "hora_fim": "07:00", "periodo": "Noturno", "valor": 1500,
    "valor_tipo": "fixo",
}  # fmt: skip
OFFER = oferta("Pessoa", VAGA)
HANDOFF = handoffs.PERGUNTA.format(nome="", fatos="fatos", ate="12/03 às 11h", link="")
FIRST = texto_de(Gatilho.DISCOVERY, {"primeiro_nome": "Pessoa"})


def replies_to(text: str, many: int = 400) -> list[str | None]:
    chance = Chance(0)
    found = [reply_to(text, chance, str(n)) for n in range(many)]
    return [None if each is None else each.text for each in found]


def test_doctors_accept_refuse_ask_the_price_ask_for_a_person_or_are_silent() -> None:
    found = replies_to(OFFER)
    classes = {ler(text).classe for text in found if text is not None}
    assert classes == {Classe.ACEITE, Classe.RECUSA, Classe.PERGUNTA, Classe.HUMANO}
    assert 0.1 < found.count(None) / len(found) < 0.3


@pytest.mark.parametrize(
    "text", [HANDOFF, *(each.format(nome="", fatos="", ate="", link="") for each in handoffs.LEMBRETES)]
)
def test_posters_confirm_refuse_or_do_not_decide(text: str) -> None:
    said = {None if text is None else confirma(text) for text in replies_to(text)}
    assert said == {True, False, None}


def test_few_people_opt_out_of_a_first_contact() -> None:
    found = replies_to(FIRST, 2000)
    stops = [text for text in found if text is not None and ler(text).opt_out.value == "certo"]
    assert 0 < len(stops) / len(found) < 0.05


def test_messages_that_ask_nothing_get_no_reply() -> None:
    for text in (respostas.RECUSA, respostas.HUMANO, respostas.OBJECAO, *handoffs.OBRIGADA.values(), "Olá"):
        assert set(replies_to(text, 50)) == {None}


@pytest.mark.parametrize("gatilho", [each for each in Gatilho if each is not Gatilho.OFERTA])
def test_people_answer_the_messages_of_triggers(gatilho: Gatilho) -> None:
    row = {"primeiro_nome": "Pessoa", "hospital": "Hospital Fictício", "data": VAGA["data"]}
    assert set(replies_to(texto_de(gatilho, row))) > {None}


def test_shares_leave_room_for_silence() -> None:
    for assunto in ASSUNTOS:
        assert sum(share for share, _ in assunto.replies) < 1
        assert assunto.after[0] < assunto.after[1]
