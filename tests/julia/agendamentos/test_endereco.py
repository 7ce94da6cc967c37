"""Addresses as people type them. Every street here is made up."""

import re

import pytest

from app.contexts.agendamentos.endereco.endereco import CEP_DE_OUTRA_UF, CEP_INVALIDO, INCERTO, endereco_de
from app.contexts.agendamentos.normalizacao import CEP_DIFERENTE, endereco_lido

FIELDS = ("logradouro", "numero", "complemento", "bairro", "cidade", "uf", "cep")


def read(texto: str) -> str:
    """Return the seven fields of an address, with - for each missing field."""
    lido = endereco_de(texto)
    return " | ".join(getattr(lido, each) or "-" for each in FIELDS)


@pytest.mark.parametrize(
    ("texto", "lido"),
    [
        (
            "Rua dos Testes, 123, Apto 45 - Centro, Campinas - SP, 13010-001",
            "Rua dos Testes | 123 | Apto 45 | Centro | Campinas | SP | 13010-001",
        ),
        (
            "AV EXEMPLO 1578 AP 12 BELA VISTA SAO PAULO SP CEP 01310200",
            "Avenida Exemplo | 1578 | Apto 12 | Bela Vista | São Paulo | SP | 01310-200",
        ),
        ("Rua Um, 10, Centro, Campinas SP 13010 001", "Rua Um | 10 | - | Centro | Campinas | SP | 13010-001"),
        (
            "Av. Um 1.234 - cj. 56 - São Paulo SP CEP01310100",
            "Avenida Um | 1234 | Conjunto 56 | - | São Paulo | SP | 01310-100",
        ),
        ("1250, Rua Um, Centro, Diadema, SP", "Rua Um | 1250 | - | Centro | Diadema | SP | -"),
        ("Nº 340 Rua Um, Centro, Diadema - SP", "Rua Um | 340 | - | Centro | Diadema | SP | -"),
        ("Reside à Rua Um, nº 8, Centro, Diadema/SP", "Rua Um | 8 | - | Centro | Diadema | SP | -"),
        ("Rua Um, 8, entre as ruas Lírio e Cravo, Centro, Diadema/SP", "Rua Um | 8 | - | Centro | Diadema | SP | -"),
        (
            "R. Um, 1200 sobrado 4, Alto Modelo, Curitiba/PR",
            "Rua Um | 1200 | Sobrado 4 | Alto Modelo | Curitiba | PR | -",
        ),
        ("Av. Um, 300 (esq. com Rua Dois), Centro, Salvador/BA", "Avenida Um | 300 | - | Centro | Salvador | BA | -"),
        ("R. Um,nº45,apto3,Jd.Modelo,Rio Branco-AC", "Rua Um | 45 | Apto 3 | Jardim Modelo | Rio Branco | AC | -"),
        ("Rua: Projetada 14 Número: S/N Cidade: Balsas UF: MA", "Rua Projetada 14 | S/N | - | - | Balsas | MA | -"),
        ("Alameda 3, Qd. 504 Sul, Lt. 10, Palmas/TO", "Alameda 3 | - | Quadra 504 Sul, Lote 10 | - | Palmas | TO | -"),
        ("Zona Rural de Sobral/CE", "- | - | - | Zona Rural | Sobral | CE | -"),
        ("paciente em situação de rua", "- | - | - | - | - | - | -"),
        ("mesmo endereço da mãe", "- | - | - | - | - | - | -"),
        ("a confirmar com o paciente", "- | - | - | - | - | - | -"),
        (
            "R. Um nº 10 casa 2, Jd. Modelo – Santo André/SP",
            "Rua Um | 10 | Casa 2 | Jardim Modelo | Santo André | SP | -",
        ),
        (
            "13010-001 - Al. Ficção, 12-B, fds - V. Ensaio - Rib. Preto/SP",
            "Alameda Ficção | 12B | Fundos | Vila Ensaio | Ribeirão Preto | SP | 13010-001",
        ),
        (
            "Tv. Teste, s/nº\nPq. Modelo\nB. Horizonte - MG\n30.100-010",
            "Travessa Teste | S/N | - | Parque Modelo | Belo Horizonte | MG | 30100-010",
        ),
        (
            "Logradouro: Rua Dois; Nº: 1.234; Compl.: bl A ap 21; Bairro: Cid. Modelo; Município: SBC; Estado: SP; CEP: 09600-000",
            "Rua Dois | 1234 | Bloco A, Apto 21 | Cidade Modelo | São Bernardo do Campo | SP | 09600-000",
        ),
        (
            "End.: Pça Três, 45/102. Bairro: St. Modelo. Cidade: Goiânia. UF: GO. CEP: 74000010",
            "Praça Três | 45 | 102 | Setor Modelo | Goiânia | GO | 74000-010",
        ),
        (
            "Estr. Quatro, 9, Ed. Modelo, apto 71, Brotas, CEP 40100-000 (portão azul)",
            "Estrada Quatro | 9 | Edifício Modelo, Apto 71 | Brotas | - | - | 40100-000",
        ),
        (
            "Cond. Modelo, Rua 3, casa 18 - Camaçari/BA",
            "Rua 3 | - | Condomínio Modelo, Casa 18 | - | Camaçari | BA | -",
        ),
        (
            "Av. Cinco, 1000 - 5º andar - sala 52 - Modelo, Recife - Pernambuco",
            "Avenida Cinco | 1000 | 5º Andar, Sala 52 | Modelo | Recife | PE | -",
        ),
        (
            "Rod. BR-101, km 12,5, Zona Rural, Joinville/SC",
            "Rodovia BR-101 | km 12,5 | - | Zona Rural | Joinville | SC | -",
        ),
    ],
)
def test_address_is_parsed_with_any_separator(texto: str, lido: str) -> None:
    assert read(texto) == lido


@pytest.mark.parametrize(
    ("texto", "lido"),
    [
        ("Rua 15 de Novembro, 200", "Rua 15 de Novembro | 200 | - | - | - | - | -"),
        ("Av. 9 de Julho 1000", "Avenida 9 de Julho | 1000 | - | - | - | - | -"),
        ("Rua 7, 45", "Rua 7 | 45 | - | - | - | - | -"),
        (
            "Rua 15, Qd 3 Lt 4, St. Modelo, Goiânia-GO",
            "Rua 15 | - | Quadra 3, Lote 4 | Setor Modelo | Goiânia | GO | -",
        ),
        ("QNM 12 conj B casa 3, Modelo, Brasília-DF", "QNM 12 | - | Conjunto B, Casa 3 | Modelo | Brasília | DF | -"),
        ("Rua 1º de Maio 3, Modelo, Maceió, AL", "Rua 1º de Maio | 3 | - | Modelo | Maceió | AL | -"),
        (
            "Rua Mal. Modelo, 2020 LJ 3, Casa Amarela, Recife/PE",
            "Rua Mal. Modelo | 2020 | Loja 3 | Casa Amarela | Recife | PE | -",
        ),
    ],
)
def test_street_numbers_dates_and_house_numbers_are_distinguished(texto: str, lido: str) -> None:
    assert read(texto) == lido


@pytest.mark.parametrize(
    ("texto", "lido"),
    [
        ("Niterói - Rio de Janeiro", "- | - | - | - | Niterói | RJ | -"),
        ("Rua Um, 1, Centro - São Paulo", "Rua Um | 1 | - | Centro | São Paulo | - | -"),
        ("Rua Um, 1, Modelo, Campinas, São Paulo", "Rua Um | 1 | - | Modelo | Campinas | SP | -"),
        (
            "Rua Bahia, 10 - Bairro Minas Gerais - Uberlândia - MG",
            "Rua Bahia | 10 | - | Minas Gerais | Uberlândia | MG | -",
        ),
        ("Rua São Paulo, 10 - Boa Vista", "Rua São Paulo | 10 | - | Boa Vista | - | - | -"),
        ("Rua Um, 10, Jd. Modelo (Campinas-SP)", "Rua Um | 10 | - | Jardim Modelo | Campinas | SP | -"),
        ("Rua Um, 12, Campinas SP", "Rua Um | 12 | - | - | Campinas | SP | -"),
        ("São Paulo/SP - Modelo - Rua Um, 500 ap 12", "Rua Um | 500 | Apto 12 | Modelo | São Paulo | SP | -"),
        ("Rua Um, Modelo, 500, São Paulo - SP", "Rua Um | 500 | - | Modelo | São Paulo | SP | -"),
        ("Avenda Um, 100, Modelo, Campnas/SP", "Avenida Um | 100 | - | Modelo | Campinas | SP | -"),
        (
            "Rua Um,80,ap 305,Tijuca,RJ,20520-053,Rio de Janeiro",
            "Rua Um | 80 | Apto 305 | Tijuca | Rio de Janeiro | RJ | 20520-053",
        ),
        (
            "SQN 206 Bloco J Apto 102 Brasília DF (Asa Norte)",
            "SQN 206 | - | Bloco J, Apto 102 | Asa Norte | Brasília | DF | -",
        ),
        (
            "Rua Um 29 bl B ap 54 Jabaquara SP São Paulo",
            "Rua Um | 29 | Bloco B, Apto 54 | Jabaquara | São Paulo | SP | -",
        ),
        ("Rua Um 11 ap.61 Consolação S.Paulo-SP", "Rua Um | 11 | Apto 61 | Consolação | São Paulo | SP | -"),
        ("Travessa São Pedro 566 Modelo Belem para", "Travessa São Pedro | 566 | - | Modelo | Belém | PA | -"),
        (
            "Rua Um, 10, Modelo, Cidade Que Ninguém Conhece - TO",
            "Rua Um | 10 | - | Modelo | Cidade Que Ninguém Conhece | TO | -",
        ),
    ],
)
def test_place_is_read_from_its_end_and_state_distinguished_from_city(texto: str, lido: str) -> None:
    assert read(texto) == lido


@pytest.mark.parametrize("texto", ["", "   ", "-", "N/I", "não informado", "O MESMO DA MÃE", "...", "\u200b\ufeff"])
def test_cell_without_content_is_not_an_address(texto: str) -> None:
    assert not endereco_de(texto).diz_algo


def test_cep_has_eight_digits_and_one_of_another_state_gets_a_warning() -> None:
    assert read("Rua Um, 1 - Modelo, Niterói/RJ CEP 24371-09").endswith("RJ | -")
    assert endereco_de("Rua Um, 1 - Modelo, Niterói/RJ CEP 24371-09").avisos == (CEP_INVALIDO,)
    assert endereco_de("Rua Um, 1, Porto Alegre/RS CEP: 00000-000").cep is None
    estranho = endereco_de("Rua Um, 1, Modelo, Porto Alegre/RS CEP 01310-200")
    assert (estranho.cep, estranho.avisos) == ("01310-200", (CEP_DE_OUTRA_UF,))


def test_cep_of_its_own_column_wins_and_a_difference_gets_a_warning() -> None:
    assert endereco_lido("Rua Um, 1, Modelo, Campinas/SP", "13010-001").cep == "13010-001"
    lido = endereco_lido("Rua Um, 1, Modelo, Campinas/SP, 13010-002", "13010-001")
    assert (lido.cep, lido.avisos) == ("13010-001", (CEP_DIFERENTE,))
    assert CEP_DE_OUTRA_UF in endereco_lido("Rua Um, 1, Modelo, Campinas/SP", "90010-001").avisos


def test_directions_and_telephone_are_not_part_of_the_address() -> None:
    lido = endereco_de("Rua Um, 405, apto 3, Modelo, POA/RS, 91170-020 - telefone 51 99900-0123 (próx. ao mercado)")
    assert (lido.bairro, lido.cidade, lido.cep, lido.referencia) == (
        "Modelo",
        "Porto Alegre",
        "91170-020",
        "próx. ao mercado",
    )


@pytest.mark.parametrize(
    ("texto", "referencia"),
    [
        ("Rua Um, 10, em frente ao mercado, Centro, Campinas/SP", "em frente ao mercado"),
        ("Rua Um s/nº perto da praça, Centro, Campinas/SP", "perto da praça"),
        (
            "Rua Um, 10 (próx. ao mercado), Centro - ao lado da escola - Campinas/SP",
            "próx. ao mercado; ao lado da escola",
        ),
        ("Rua Um, 10, Centro, Campinas/SP", None),
    ],
)
def test_directions_are_kept_at_every_position_of_the_text(texto: str, referencia: str | None) -> None:
    lido = endereco_de(texto)
    assert (lido.bairro, lido.cidade, lido.referencia) == ("Centro", "Campinas", referencia)


@pytest.mark.parametrize(
    ("texto", "lido"),
    [
        ("Rua Modelino 1000 ap 201 Centro Campinas SP", "Rua Modelino | 1000 | Apto 201 | Centro | Campinas | SP | -"),
        ("Alameda Um, n.º 9, Modelo, Barueri - SP", "Alameda Um | 9 | - | Modelo | Barueri | SP | -"),
        ("Rua Um qd 12 lt 20 s/n St. Industrial Sinop MT", "Rua Um | S/N | Quadra 12, Lote 20 | Setor Industrial | Sinop | MT | -"),
        ("Rua Um 14 cobertura 2, Modelo, São Paulo - SP", "Rua Um | 14 | Cobertura 2 | Modelo | São Paulo | SP | -"),
        ("rua um 321 casa 2 b. modelo manaus am", "Rua Um | 321 | Casa 2 | Modelo | Manaus | AM | -"),
        ("rua um s/nº perto da praça, centro, mossoró rn", "Rua Um | S/N | - | Centro | Mossoró | RN | -"),
        ("Rua Um, 90 (antiga Rua da Lama), Centro, Itabuna/BA", "Rua Um | 90 | - | Centro | Itabuna | BA | -"),
        ("Rua Dom Pedro 2 300, Centro, Campinas/SP", "Rua Dom Pedro 2 | 300 | - | Centro | Campinas | SP | -"),
    ],
)  # fmt: skip
def test_house_number_is_found_in_every_notation_and_names_stay_whole(texto: str, lido: str) -> None:
    assert read(texto) == lido


@pytest.mark.parametrize(
    "texto",
    [
        "Rua A, nº 10, Jardim km 18,5, Osasco/SP",
        "Rua A, 10, Compl: km 3,5",
        "Rua A, Complemento: s/n",
        "Rua A, 10, Ref: s/n da BR, perto da ponte",
        "Rua A, 10 Bairro: Vila s/n",
        "Rua A, 10, Modelo\ue000\ue001, Campinas/SP",
        "s/n s/n s/n",
    ],
)
def test_parser_leaves_no_internal_mark_and_no_empty_text_in_a_field(texto: str) -> None:
    lido = endereco_de(texto)
    values = [getattr(lido, each) for each in (*FIELDS, "referencia")]
    assert all(value is None or (value and not re.search("[\ue000-\uf8ff]", value)) for value in values)


def test_address_that_can_be_read_in_two_ways_gets_a_warning() -> None:
    assert INCERTO not in endereco_de("Rua das Flores, 10, Centro, Campinas/SP").avisos
    assert INCERTO in endereco_de("R Sete 5 Alto Alegre Paraíso").avisos
