"""The assignment of vacancies to hospitals, on both databases. Two similar names belong to two hospitals. The same name
in two towns also belongs to two hospitals.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from app.contexts.nomes.correcoes import Correcao
from batuta.testing import FakeClock
from tests.julia.grupos.bancada import Bancada, bancada

BELEM, CAMPINAS = "120363000000000001@g.us", "120363000000000002@g.us"
VILA = "\nLocal: Vila Inventada\n"
OFERTA = "Plantão de pediatria no {} dia 20/03, 19h às 7h, R$ 1.500. Chamar no PV"


@pytest.fixture
async def mesa(database_url: str, clock: FakeClock) -> AsyncIterator[Bancada]:
    async with bancada(database_url, clock, leitor=None) as bench:
        yield bench


async def offered(mesa: Bancada, lugar: str, grupo: str = BELEM) -> None:
    await mesa.dizem(OFERTA.format(lugar), grupo=grupo)
    await mesa.trabalha()
    await mesa.clock.advance(timedelta(seconds=6))


async def vagas(mesa: Bancada) -> list[dict[str, Any]]:
    return await mesa.rows(
        "SELECT vaga.id, vaga.status, vaga.motivo_status, hospital.nome, hospital.cidade FROM vagas_grupo AS vaga"
        " LEFT JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id ORDER BY vaga.created_at"
    )


async def test_similar_names_are_two_hospitals_and_the_new_one_is_reviewed(mesa: Bancada) -> None:
    await mesa.carrega("UPA Zona Leste", cidade="São Paulo", uf="SP")
    await offered(mesa, "UPA Zona Leste")
    await offered(mesa, "UPA Zona Oeste")
    known, new = await vagas(mesa)
    assert known["status"] == "importada"
    assert (new["status"], new["motivo_status"], new["nome"]) == (
        "aguardando_revisao", "hospital_incerto", "UPA Zona Oeste",
    )  # fmt: skip
    aliases = await mesa.rows("SELECT alias FROM hospitais_alias WHERE confirmado")
    assert [row["alias"] for row in aliases] == ["UPA Zona Leste"]
    done = await mesa.groups.revisao.aprovar(new["id"], Correcao(), por="gestora")
    assert done.status == "importada"
    assert len(await mesa.rows("SELECT DISTINCT hospital_id FROM vagas")) == 2


async def test_one_name_in_groups_of_two_towns_is_two_hospitals(mesa: Bancada) -> None:
    for group, region in ((BELEM, "Belém/PA"), (CAMPINAS, "Campinas/SP")):
        await mesa.dizem("Bom dia", grupo=group)
        await mesa.write("UPDATE grupos_whatsapp SET regiao = :region WHERE jid = :group", region=region, group=group)
    await offered(mesa, "Hospital São Lucas", BELEM)
    await offered(mesa, "Hospital São Lucas", CAMPINAS)
    await offered(mesa, "Hospital São Lucas", BELEM)
    assert [(row["status"], row["cidade"]) for row in await vagas(mesa)] == [
        ("importada", "Belém"), ("importada", "Campinas"), ("duplicada", "Belém"),
    ]  # fmt: skip


async def test_confirmed_name_in_one_town_stays_with_the_hospital_of_another(mesa: Bancada) -> None:
    for group, region in ((BELEM, "Belém/PA"), (CAMPINAS, "Campinas/SP")):
        await mesa.dizem("Bom dia", grupo=group)
        await mesa.write("UPDATE grupos_whatsapp SET regiao = :region WHERE jid = :group", region=region, group=group)
    await offered(mesa, "Hospital São Lucas", BELEM)
    await offered(mesa, "Hospital São Lucas", CAMPINAS)
    await mesa.write("UPDATE vagas_grupo SET status = 'aguardando_revisao', vaga_importada_id = NULL")
    await mesa.write("DELETE FROM vagas_historico")
    await mesa.write("DELETE FROM vagas")
    first, _ = await vagas(mesa)
    await mesa.groups.revisao.aprovar(first["id"], Correcao(), por="gestora")
    kept = await mesa.rows(
        "SELECT hospital.cidade FROM hospitais_alias AS alias JOIN hospitais AS hospital ON hospital.id = alias.hospital_id"
    )
    assert sorted(row["cidade"] for row in kept) == ["Belém", "Campinas"]


async def test_one_name_with_two_towns_is_two_hospitals_after_one_without_a_town(mesa: Bancada) -> None:
    for lugar in ("Hospital São Lucas", "Hospital São Lucas - Campinas/SP", "Hospital São Lucas - Santos/SP"):
        await offered(mesa, lugar)
    assert [(row["status"], row["cidade"]) for row in await vagas(mesa)] == [
        ("importada", None), ("importada", "Campinas"), ("importada", "Santos"),
    ]  # fmt: skip


async def regions(mesa: Bancada) -> None:
    for group, region in ((BELEM, "Belém/PA"), (CAMPINAS, "Campinas/SP")):
        await mesa.dizem("Bom dia", grupo=group)
        await mesa.write("UPDATE grupos_whatsapp SET regiao = :region WHERE jid = :group", region=region, group=group)


async def waiting(mesa: Bancada) -> str:
    (row,) = [each for each in await vagas(mesa) if each["status"] == "aguardando_revisao"]
    return str(row["id"])


async def test_confirmed_name_does_not_apply_to_namesakes_in_other_towns(mesa: Bancada) -> None:
    await regions(mesa)
    await offered(mesa, VILA)
    await mesa.groups.revisao.aprovar(await waiting(mesa), Correcao(), por="gestora")
    await mesa.clock.advance(timedelta(seconds=6))
    await offered(mesa, VILA, CAMPINAS)
    await offered(mesa, VILA, BELEM)
    await offered(mesa, VILA.rstrip() + " - Santos/SP\n", BELEM)
    assert [(row["status"], row["cidade"]) for row in await vagas(mesa)] == [
        ("importada", "Belém"), ("aguardando_revisao", "Campinas"), ("duplicada", "Belém"), ("aguardando_revisao", "Santos"),
    ]  # fmt: skip


async def test_alias_taught_in_one_town_is_unknown_in_another(
    mesa: Bancada,
) -> None:
    await regions(mesa)
    await mesa.carrega("Hospital Fictício", cidade="Belém", uf="PA")
    await offered(mesa, VILA)
    fictitious = Correcao(hospital="Hospital Fictício")
    await mesa.groups.revisao.aprovar(await waiting(mesa), fictitious, por="gestora")
    await mesa.clock.advance(timedelta(seconds=6))
    await offered(mesa, VILA, CAMPINAS)
    await offered(mesa, VILA, BELEM)
    _, elsewhere, here = await vagas(mesa)
    assert (elsewhere["status"], elsewhere["nome"], elsewhere["cidade"]) == (
        "aguardando_revisao", "Vila Inventada", "Campinas",
    )  # fmt: skip
    assert (here["status"], here["nome"]) == ("duplicada", "Hospital Fictício")


async def test_confirmed_hospital_of_the_next_town_is_known_in_its_group(mesa: Bancada) -> None:
    """After a reviewer has assigned a place to a hospital in the neighbouring town, later offers in the same group are
    assigned to that hospital, even if they do not name the town.
    """
    await regions(mesa)
    await offered(mesa, VILA, CAMPINAS)
    there = Correcao(hospital="Hospital Vila Inventada", cidade="Valinhos", uf="SP")
    await mesa.groups.revisao.aprovar(await waiting(mesa), there, por="gestora")
    await mesa.clock.advance(timedelta(seconds=6))
    await offered(mesa, VILA, CAMPINAS)
    first, again = await vagas(mesa)
    assert (first["cidade"], again["status"], again["cidade"]) == ("Valinhos", "duplicada", "Valinhos")


async def test_reviewers_hospital_without_a_town_gets_the_region_of_the_group(mesa: Bancada) -> None:
    await regions(mesa)
    for group in (BELEM, CAMPINAS):
        await offered(mesa, VILA, group)
        named = Correcao(hospital="Hospital Santa Inventada")
        await mesa.groups.revisao.aprovar(await waiting(mesa), named, por="gestora")
        await mesa.clock.advance(timedelta(seconds=6))
    assert [(row["nome"], row["cidade"]) for row in await vagas(mesa)] == [
        ("Hospital Santa Inventada", "Belém"), ("Hospital Santa Inventada", "Campinas"),
    ]  # fmt: skip


async def test_customers_own_list_counts_in_every_region(mesa: Bancada) -> None:
    await regions(mesa)
    await mesa.carrega("Hospital São Lucas", cidade="Belém", uf="PA")
    await offered(mesa, "Hospital São Lucas", CAMPINAS)
    assert [(row["status"], row["cidade"]) for row in await vagas(mesa)] == [("importada", "Belém")]
