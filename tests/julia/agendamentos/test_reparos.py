"""Rules that repair the tagger's labels. Each test gives the labels of a text's words, one letter per word
(``ETIQUETAS``), before and after the repair.
"""

import pytest

from app.contexts.agendamentos.endereco.endereco import endereco_de, preparar
from app.contexts.agendamentos.endereco.geografia import cidades_abreviadas
from app.contexts.agendamentos.endereco.palavras import palavras
from app.contexts.agendamentos.endereco.reparos import reparar


def repaired(texto: str, labels: str) -> str:
    prepared = preparar(texto)
    assert prepared is not None
    lidas = palavras(prepared.texto)
    found = list(labels.replace(" ", ""))
    assert len(found) == len(lidas), [each.texto for each in lidas]
    reparar(lidas, found)
    return "".join(found)


@pytest.mark.parametrize(
    ("texto", "labels", "expected"),
    [
        # a name around "de", "do" and the like has one label
        ("Rua Modelo, 10, Engenho da Serra", "LL N BBM", "LL N BBB"),
        ("Zona Rural de Sobral/CE", "BBBMU", "BBXMU"),
        ("Av Modelo 10 Ed Solar do Marco ap 31", "LL N CCC B CC", "LL N CCC C CC"),
        ("Rua Modelo, 10, Cond. Portal do Lago, Centro", "LL N CCCX B", "LL N CCCC B"),
        ("Porto da Amostra SN Centro", "BLL N B", "LLL N B"),
        # a word after a hyphen belongs to the name, but a city after a hyphen does not
        ("Rua Modelo, 10, Jd. Flor-bela", "LL N BBM", "LL N BBB"),
        ("RUA MODELO 10 CENTRO-CAMPINAS", "LL N BM", "LL N BM"),
        # the name of a rural property is not split
        ("Sítio Recanto Feliz, Estrada do Teste, km 4", "CBB LLL NN", "CCC LLL NN"),
        ("Fazenda Boa Amostra, zona rural", "LBB BB", "LLL BB"),
        # a rural place next to a street is a complement
        ("Estrada do Teste, km 4, Ramal 16", "LLL NN BB", "LLL NN CC"),
        ("Ramal do Teste, km 4", "BBB NN", "BBB NN"),
        # an estate is the neighbourhood if there is no other one
        ("Conjunto Modelo, Quadra 3 Casa 4", "CC CCCC", "BB CCCC"),
        ("Rua Um, 5, Conjunto Modelo, Centro", "LL N CC B", "LL N CC B"),
        ("Rua Um, 5, Conj. 56", "LL N CC", "LL N CC"),
        # the direction belongs to the block
        ("Quadra 204 Norte, Alameda 3, Lote 5", "CCB LL CC", "CCC LL CC"),
        # "b." after a house number is the neighbourhood
        ("Rua Modelo 380 b. Amostras", "LL N NB", "LL N BB"),
        # a kilometre is the number, and the last word of a street without a number is the number
        ("ROD PA 150 KM 62 ZONA RURAL", "LLL BB BB", "LLL NN BB"),
        ("jd modelo, rua exemplo 18", "BB LLL", "BB LLN"),
        ("Rua Projetada 7, casa 12", "LLL CC", "LLL CC"),
        ("Rua 7, casa 12", "LL CC", "LL CC"),
        # the number of a street in Brasília belongs to the street
        ("SCLN 204 Bloco C, Asa Norte", "LN CC BB", "LL CC BB"),
        ("SCS Qd. 6 Bl. A", "L CC CC", "L LL CC"),
        # the name of a city is not split
        ("Rua Um, 5, Centro, Feira de Santana", "LL N B BBM", "LL N B MMM"),
        ("Rua Um, 5, Vila Campinas", "LL N BM", "LL N BM"),
    ],
)
def test_labels_that_split_a_name_are_repaired(texto: str, labels: str, expected: str) -> None:
    assert repaired(texto, labels) == expected.replace(" ", "")


@pytest.mark.parametrize(
    ("written", "city"),
    [
        ("n. sra. do socorro", "Nossa Senhora do Socorro"),
        ("s. j. rio preto", "São José do Rio Preto"),
        ("rib preto", "Ribeirão Preto"),
        ("v. velha", "Vila Velha"),
        ("f. de santana", "Feira de Santana"),
        ("j fora", "Juiz de Fora"),
    ],
)
def test_abbreviated_city_is_recognised(written: str, city: str) -> None:
    assert [each.nome for each in cidades_abreviadas(written.split())] == [city]


@pytest.mark.parametrize(
    ("texto", "complemento"),
    [
        ("Av. Modelo, 10, Loja 5 e 6, Centro, Campinas/SP", "Loja 5 e 6"),
        ("Rua Modelo, 10, casa 5 e fundos, Centro, Campinas/SP", "Casa 5, Fundos"),
        ("Estrada do Teste, km 4, Faz. Boa Amostra, Campinas/SP", "Fazenda Boa Amostra"),
    ],
)
def test_complement_is_written_in_full(texto: str, complemento: str) -> None:
    assert endereco_de(texto).complemento == complemento
