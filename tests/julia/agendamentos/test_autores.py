"""Rows labelled by authors whose writing styles differ. ``python3 dev.py leitura`` prints all scores."""

import pytest

from app.contexts.agendamentos.endereco.geografia import ESTADOS, cidade_de
from tests.julia.agendamentos.medir import acertos, autores, linhas_de

# Lowest share of correct addresses for authors whose rows trained the tagger. ``python3 dev.py leitura`` leaves out
# each author in turn.
LEAST = 0.91
# Lowest share for authors whose rows did not train the tagger.
UNKNOWN = {
    "capixaba": 0.85,
    "onze": 0.93,
    "doze": 0.80,
    "treze": 0.97,
    "catorze": 0.96,
    "quinze": 0.96,
    "dezessete": 0.92,
    "dezoito": 0.96,
}


@pytest.mark.parametrize("autor", autores())
def test_rows_of_each_author_are_read_as_well_as_the_tagger_was_trained(autor: str) -> None:
    right = acertos(linhas_de(autor))
    assert right["endereço"] >= UNKNOWN.get(autor, LEAST)
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
