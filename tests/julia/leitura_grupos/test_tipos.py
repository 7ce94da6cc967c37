"""The heuristic that selects messages worth reading, and its vocabulary."""

from datetime import UTC, datetime

import pytest

from app.contexts.leitura_grupos.api import Vocabulario, heuristica, ler

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
CANONICOS = {
    "especialidades": [{"canonico": "Clínica Geral", "aliases": ["CM", "clínica médica"]}],
    "hospitais": [
        {"canonico": "Hospital Teste do Norte", "cidade": "Belém", "uf": "PA", "aliases": ["HTN", "HT"]},
        {"canonico": "Hospital Teste do Sul", "cidade": "Pelotas", "uf": "RS", "aliases": ["HTS", "HT"]},
    ],
}


@pytest.mark.parametrize(
    ("texto", "score"),
    [
        ("Plantão Hospital Teste pediatria R$ 1.800", 1.0),
        ("jogo hoje às 20h, todos convidados", 0.30),
        ("Parabéns pelo trabalho, colega querido", 0.0),
        ("", 0.0),
    ],
)
def test_each_kind_of_sign_counts_once(texto: str, score: float) -> None:
    assert heuristica(texto).score == score


def test_long_list_has_the_full_score() -> None:
    assert heuristica("UPA Teste: plantão clínica médica 10/03 SD R$ 1.500\n" * 200).score == 1.0


def test_empty_text_has_its_own_reason() -> None:
    assert heuristica("  \n").motivo == "texto_vazio"


def test_customers_name_of_a_speciality_wins_and_our_aliases_lead_to_it() -> None:
    known = Vocabulario.de(CANONICOS).especialidades
    assert known.valor("CLÍNICO GERAL") == "Clínica Geral"
    assert known.valor("pediatra") == "Pediatria"


def test_ambiguous_alias_names_every_hospital_that_has_it() -> None:
    known = Vocabulario.de(CANONICOS).hospitais
    assert [each.uf for each in known.valor("ht") or ()] == ["PA", "RS"]
    assert [each.uf for each in known.valor("h.t.n.") or ()] == []
    assert [each.nome for each in known.valor("hospital TESTE do sul") or ()] == ["Hospital Teste do Sul"]


def test_invalid_vocabulary_is_refused_with_the_next_step() -> None:
    with pytest.raises(ValueError, match=r"docs/grupos\.md"):
        Vocabulario.de({"hospitais": [{"nome": "Hospital Teste"}]})


def test_thanks_are_not_an_offer() -> None:
    assert not ler("Obrigada, bom plantão a todos!", enviado_em=NOW).eh_oferta
