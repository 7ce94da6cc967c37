"""When an operator removes the name of a hospital or speciality that was added by mistake, the next message is read
without the name. The tests run on both databases.
"""

from datetime import timedelta

import pytest

from app.contexts.nomes.correcoes import Correcao
from app.contexts.nomes.ensino import Ensino, NomeDesconhecido, NomeDeVarios
from tests.julia.grupos.bancada import Bancada, vaga


@pytest.fixture
def ensino(mesa: Bancada) -> Ensino:
    return mesa.groups.ensino


async def taught(mesa: Bancada, lugar: str, hospital: str) -> None:
    """Add a name for a hospital as a reviewer does, by assigning the place in a vacancy to the hospital."""
    await mesa.dizem("plantão\n" + vaga(lugar))
    await mesa.trabalha()
    row = await mesa.one("SELECT id FROM vagas_grupo WHERE status = 'aguardando_revisao'")
    await mesa.groups.revisao.aprovar(row["id"], Correcao(hospital=hospital), por="gestora")
    await mesa.clock.advance(timedelta(seconds=6))


async def test_lookup_shows_the_owner_of_a_name_and_its_teacher(mesa: Bancada, ensino: Ensino) -> None:
    await mesa.carrega("Hospital Fictício", cidade="Santos", uf="SP")
    await taught(mesa, "Vila Inventada", "Hospital Fictício")
    (known,) = await ensino.de_quem("VILA  INVENTADA")
    assert (known.tipo, known.nome, known.cidade, known.origem, known.por) == (
        "hospital", "Hospital Fictício", "Santos", "gestor", "gestora",
    )  # fmt: skip
    assert await ensino.de_quem("Vila Sonhada") == []


async def test_unlearnt_name_has_no_owner_and_the_audit_log_has_ids(mesa: Bancada, ensino: Ensino) -> None:
    await mesa.carrega("Hospital Fictício", cidade="Santos", uf="SP")
    await taught(mesa, "Vila Inventada", "Hospital Fictício")
    gone = await ensino.esquecer("vila inventada", por="gestor")
    with pytest.raises(NomeDesconhecido):
        await ensino.esquecer("Vila Inventada", por="gestor")
    await mesa.clock.advance(timedelta(seconds=6))
    await mesa.dizem(vaga("Vila Inventada", dia="2026-03-28"))
    await mesa.trabalha()
    last = await mesa.one("SELECT status, hospital_id FROM vagas_grupo WHERE status <> 'importada'")
    assert last["status"] == "aguardando_revisao"
    assert last["hospital_id"] != gone.id
    noted = await mesa.one("SELECT actor, subject, before FROM audit_log WHERE action = 'nome.esquecer'")
    assert tuple(noted.values()) == (
        "gestor", f"hospital:{gone.id}", {"origem": "gestor", "por": "gestora", "confirmado": True},
    )  # fmt: skip


async def test_hospital_takes_its_other_name_when_its_name_is_unlearnt(mesa: Bancada, ensino: Ensino) -> None:
    await mesa.carrega("Coisa Nenhuma", aliases=["Hospital Fictício"])
    await ensino.esquecer("Coisa Nenhuma", por="gestor")
    assert (await mesa.one("SELECT nome FROM hospitais"))["nome"] == "Hospital Fictício"
    assert (await mesa.dicionario.nomes()).vocabulario.hospitais.valor("Coisa Nenhuma") is None


async def test_unlearning_a_name_of_several_hospitals_needs_an_id(mesa: Bancada, ensino: Ensino) -> None:
    for town in ("Santos", "Campinas"):
        await mesa.carrega("Hospital Fictício", cidade=town, uf="SP")
    with pytest.raises(NomeDeVarios) as several:
        await ensino.esquecer("Hospital Fictício", por="gestor")
    first, second = await ensino.de_quem("Hospital Fictício")
    assert first.id in str(several.value)
    await ensino.esquecer("Hospital Fictício", por="gestor", id=second.id)
    assert [each.id for each in await ensino.de_quem("Hospital Fictício")] == [first.id]


async def test_name_of_a_speciality_can_be_unlearnt(mesa: Bancada, ensino: Ensino) -> None:
    areas = [{"canonico": "Pediatria", "aliases": ["criançada"]}]
    await mesa.dicionario.carregar({"especialidades": areas}, now=mesa.clock.now())
    assert (await mesa.dicionario.nomes()).vocabulario.especialidades.valor("criançada") == "Pediatria"
    assert (await ensino.esquecer("Criançada", por="gestor")).tipo == "especialidade"
    mesa.dicionario.esquecer()
    assert (await mesa.dicionario.nomes()).vocabulario.especialidades.valor("criançada") is None
