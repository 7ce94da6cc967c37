"""Offers that lack a place or a day, on SQLite and PostgreSQL. An operator reviews each offer once, even if it
arrives in several groups.
"""

from datetime import date

import pytest

from app.contexts.leitura_grupos.api import Periodo
from app.contexts.nomes.correcoes import Correcao
from app.contexts.vagas.revisao import VagaIncompleta
from batuta.testing import FakeClock
from tests.julia.grupos.bancada import bancada


async def test_offer_without_a_place_waits_for_review_once_however_often_forwarded(
    database_url: str, clock: FakeClock
) -> None:
    text = "Preciso de pediatra, dia 20/03, 19h às 7h, R$ 1.500, chama no pv"
    async with bancada(database_url, clock, leitor=None) as mesa:
        for group in ("120363000000000001@g.us", "120363000000000002@g.us"):
            await mesa.dizem(text, grupo=group)
        await mesa.dizem(text.replace("1.500", "1.900"))  # another wording is another offer
        await mesa.trabalha()
        found = await mesa.rows(
            "SELECT status, motivo_status, campos_faltando, qtd_fontes FROM vagas_grupo ORDER BY qtd_fontes, status"
        )
        assert [each["status"] for each in found] == ["duplicada", "aguardando_revisao", "aguardando_revisao"]
        assert [each["qtd_fontes"] for each in found] == [0, 1, 2]
        assert {each["motivo_status"] for each in found[1:]} == {"match_incompleto:hospital"}
        assert found[2]["campos_faltando"] == ["hospital"]
        assert await mesa.rows("SELECT id FROM vagas") == []
        assert {row["status"] for row in await mesa.rows("SELECT status FROM mensagens_grupo")} == {"processada"}


async def test_offer_without_a_day_becomes_a_vacancy_with_the_reviewers_day(
    database_url: str, clock: FakeClock
) -> None:
    async with bancada(database_url, clock, leitor=None) as mesa:
        await mesa.dizem("Hospital Fictício com vagas de anestesia, R$ 2.400, PJ. Datas no pv")
        await mesa.trabalha()
        waiting = await mesa.one("SELECT id, motivo_status, campos_faltando, data, periodo_id FROM vagas_grupo")
        assert (waiting["motivo_status"], waiting["data"], waiting["periodo_id"]) == (
            "match_incompleto:data",
            None,
            None,
        )
        assert waiting["campos_faltando"] == ["data", "horario"]
        revisao = mesa.groups.revisao
        with pytest.raises(VagaIncompleta):
            await revisao.aprovar(waiting["id"], Correcao(), por="operador")
        day = Correcao(data=date(2026, 3, 25), periodo=Periodo.NOTURNO)
        assert (await revisao.aprovar(waiting["id"], day, por="operador")).status == "importada"


@pytest.mark.parametrize(
    "text",
    [
        "PSNX 12/03 19-7 1.800 clínico",
        "PSNX 12/03 das 19h às 7h R$ 1.800",
        "XQZ - pediatra - dia 12/03, 7 às 19h - 1.500,00",
    ],
)
async def test_offer_with_an_unknown_abbreviation_as_place_waits_for_review(
    database_url: str, clock: FakeClock, text: str
) -> None:
    async with bancada(database_url, clock, leitor=None) as mesa:
        await mesa.dizem(text)
        await mesa.trabalha()
        row = await mesa.one("SELECT status, motivo_status, data, valor FROM vagas_grupo")
        assert (row["status"], row["motivo_status"]) == ("aguardando_revisao", "match_incompleto:hospital")
        assert row["data"] == date(2026, 3, 12)


@pytest.mark.parametrize(
    "text",
    [
        "Gente, dia 12/03 das 19h às 21h tem aula, inscrição 1.800",
        "Recebi 1.800 do dia 12/03, das 19h às 7h, alguém mais recebeu?",
        "Alguém pega meu carro 12/03 das 7h às 19h por 150?",
    ],
)
async def test_day_hours_and_price_of_something_else_are_not_an_offer(
    database_url: str, clock: FakeClock, text: str
) -> None:
    async with bancada(database_url, clock, leitor=None) as mesa:
        await mesa.dizem(text)
        await mesa.trabalha()
        assert await mesa.rows("SELECT 1 FROM vagas_grupo") == []


async def test_incomplete_offer_beside_complete_ones_waits_for_review_too(database_url: str, clock: FakeClock) -> None:
    whole = "Vagas:\nHospital Fictício 20/03 SN clínica médica R$ 1.500\n"
    text = whole + "Hospital Inventado: pediatria, noturno, R$ 1.800, datas no pv"
    async with bancada(database_url, clock, leitor=None) as mesa:
        await mesa.carrega("Hospital Fictício", cidade="Santos", uf="SP")
        for group in ("120363000000000001@g.us", "120363000000000002@g.us"):
            await mesa.dizem(text, grupo=group)
        await mesa.trabalha()
        found = await mesa.rows(
            "SELECT hospital_raw, especialidade_raw, periodo_raw, valor, status, motivo_status, qtd_fontes FROM vagas_grupo"
            " WHERE status <> 'duplicada' ORDER BY ordinal"
        )
        assert [tuple(row.values()) for row in found] == [
            ("Hospital Fictício", "Clínica Médica", "noturno", 1500, "importada", None, 2),
            ("Hospital Inventado", "Pediatria", "noturno", 1800, "aguardando_revisao", "match_incompleto:data", 2),
        ]


async def test_headline_or_payment_line_beside_complete_vagas_is_not_an_offer(
    database_url: str, clock: FakeClock
) -> None:
    days = "Hospital Fictício - pediatria\n20/03 noturno R$ 1.500\n21/03 noturno R$ 1.500\n"
    text = days + "Pagamento em 30 dias, PJ. Chamar no PV"
    async with bancada(database_url, clock, leitor=None) as mesa:
        await mesa.dizem(text)
        await mesa.trabalha()
        assert len(await mesa.rows("SELECT 1 FROM vagas_grupo")) == 2
