"""Short messages in the style of an unknown author: joined and nested names, alternatives, ordinal days, prices in
words, and quotes.
"""

import pytest

from app.contexts.leitura_grupos.api import Categoria, Vocabulario, ler
from tests.julia.leitura_grupos.exemplos import SEGUNDA, curtas, inteiras, lida, vagas

H, CM = "Hospital Teste do Norte", "Clínica Médica"


@pytest.mark.parametrize(
    ("texto", "hospitais"),
    [
        ("Hospital Monte Claro e UPA Riacho Doce, 11/08 SN clínico 1.500", ["Hospital Monte Claro", "UPA Riacho Doce"]),
        ("Hospital e Maternidade Monte Claro, 11/08 SN clínico 1.500", ["Hospital e Maternidade Monte Claro"]),
        ("PA da Santa Casa Riacho Doce, 11/08 SN 1.500", ["Santa Casa Riacho Doce"]),
        ("Maternidade Brisa do Pantanal, GO, 11/08 SN 1.500", ["Maternidade Brisa do Pantanal"]),
        ("Hospital Monte Claro POA - 11/08 SN clínico 1.500", ["Hospital Monte Claro"]),
        ("upa riacho doce 11/08 SN 1500 falar com Dra Celina", ["UPA Riacho Doce"]),
        ("Resgate: Passo de Ouro Ambulâncias, ter 11/08 19-7, R$ 100 a hora", ["Passo de Ouro Ambulâncias"]),
    ],
)
def test_names_are_neither_joined_nor_cut(texto: str, hospitais: list[str]) -> None:
    assert [each.hospital.valor for each in vagas(texto)] == hospitais


def test_known_name_inside_a_longer_name_is_not_that_hospital() -> None:
    known = Vocabulario.de(
        {"hospitais": [{"canonico": "Hospital Figueira", "cidade": "Bagé", "uf": "RS", "aliases": ["Figueira"]}]}
    )
    texts = ("PS Bosque Figueira 11/08 SN clínico 1.500", "no Figueira 11/08 SN clínico 1.500")
    read = [ler(each, enviado_em=SEGUNDA, regiao="RS", vocabulario=known).vagas for each in texts]
    assert [each.hospital.valor for found in read for each in found] == ["PS Bosque Figueira", "Hospital Figueira"]


@pytest.mark.parametrize(
    ("texto", "esperadas"),
    [
        ("HTN, 2º sábado de setembro, SD, clínico, 1.500", ["09-12 diurno 1500"]),
        ("HTN clínico primeiro e terceiro domingo de setembro SN 1.500", ["09-06 noturno 1500", "09-20 noturno 1500"]),
        ("HTN clínico sábado SD ou SN, 1500 cada", ["08-08 diurno 1500", "08-08 noturno 1500"]),
        ("R$ 130 hora | clínico HTN | 11/08 7h-19h, 12/08 13h-19h", ["08-11 diurno 1560", "08-12 tarde 780"]),
        ("HTN clínico 11/08 manhã, setecentos e cinquenta reais", ["08-11 manha 750"]),
        ("HTN clínico 11 e 12/08 MT 7h-19h 100/h", ["08-11 diurno 1200", "08-12 diurno 1200"]),
        ("HTN clínico 11 a 12/08, 24h/dia, R$ 5.000 pelos 2 dias", ["08-11 24h 2500", "08-12 24h 2500"]),
    ],
)
def test_days_shifts_and_prices(texto: str, esperadas: list[str]) -> None:
    assert curtas(texto) == esperadas


def test_second_speciality_after_ou_is_not_another_vacancy() -> None:
    said = "HTN UTI 11/08 SN intensivista ou anestesista ou clínico experiente, 1.500"
    assert inteiras(said) == [f"{H} | Medicina Intensiva | 08-11 noturno 1500"]


@pytest.mark.parametrize(
    ("texto", "categoria"),
    [
        ("> HTN 11/08 SN clínico 1.500\neu pego!", Categoria.PROCURA),
        ("quero o dia 21, ainda tem?", Categoria.PROCURA),
        ("topo qualquer noturno na capital, acima de 1.800", Categoria.PROCURA),
        ("Passo (não troco) meu SN de 11/08 no HTN, clínica, 1.500", Categoria.OFERTA),
        ("tinha pego domingo e não consigo mais.. HTN SD 1300, quem quer?", Categoria.OFERTA),
        ("Contrata-se coordenadora de UTI no HTN, mensal 16 mil, seg a sex", Categoria.OUTRO),
        ("deposita 50 agora e saca 900 ainda hoje, restam 10 lugares", Categoria.SPAM),
        ("Regras: nada de figurinha, anúncio só com aprovação", Categoria.AVISO),
        ("brigadeiro gourmet na porta do HTN, 6 reais cada", Categoria.PROPAGANDA),
    ],
)
def test_categories(texto: str, categoria: Categoria) -> None:
    assert lida(texto).categoria is categoria


@pytest.mark.parametrize(
    "texto",
    [
        "HTN Zorbas, 11/08 SN clínico 1.500",
        "Hospital Monte Claro XPTO, 11/08 SN clínico 1.500",
        "> Rafa: bom dia\nHTN 11/08 SN clínico 1.500, quem quer?",
        "HTN clínico\n11/08 SN\n12/08 SN\nSN 1.500 / festa (12 SN e 13 SD) 2.500",
        "HTN clínico 11, 12 e 15/08 SN 1.500, exceto sábado",
    ],
)
def test_a_doubt_keeps_a_vacancy_from_the_import(texto: str) -> None:
    found = vagas(texto)
    assert found
    assert max(each.confianca for each in found) <= 0.9
