"""Rows labelled by authors whose writing styles differ. ``python3 dev.py leitura`` prints all scores."""

import pytest

from app.contexts.agendamentos.endereco.geografia import ESTADOS, cidade_de
from tests.julia.agendamentos.medir import acertos, autores, linhas_de

# Lowest share of correct addresses. The rows of all authors trained the tagger; ``python3 dev.py leitura`` leaves out
# each author in turn.
LEAST = 0.94
HARDEST = {"capixaba": 0.91, "doze": 0.88}  # authors with many rural addresses


@pytest.mark.parametrize("autor", autores())
def test_rows_of_each_author_are_read_as_well_as_the_tagger_was_trained(autor: str) -> None:
    right = acertos(linhas_de(autor))
    assert right["endereço"] >= HARDEST.get(autor, LEAST)
    assert min(right["cpf"], right["rg"]) >= 0.99
    assert min(right["telefone"], right["data"], right["hora"]) >= 0.98


def test_every_municipality_is_known_with_its_accents() -> None:
    known = {
        "AC": "Sena Madureira",
        "BA": "Santo Estêvão",
        "PA": "Igarapé-Miri",
        "RS": "Não-Me-Toque",
        "SP": "Mogi Mirim",
    }
    assert {uf: cidade.nome for uf, name in known.items() if (cidade := cidade_de(name.lower(), uf))} == known
    assert len(ESTADOS) == 27


def test_neighbourhood_and_small_town_without_a_comma_are_separated() -> None:
    linha = {
        "endereco": "RUA DAS FLORES 5 JD TROPICAL CAPANEMA PA",
        "documento": "",
        "data": "",
        "hora": "",
        "telefone": "",
    }
    label = {
        "logradouro": "Rua das Flores",
        "numero": "5",
        "bairro": "Jardim Tropical",
        "cidade": "Capanema",
        "uf": "PA",
    }
    row = {
        "celulas": linha,
        "endereco_normalizado": label,
        "documento_normalizado": None,
        "telefone": None,
        "data": None,
        "hora": None,
    }
    assert acertos([row])["endereço"] == 1
