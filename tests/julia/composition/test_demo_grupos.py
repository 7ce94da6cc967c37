"""The simulator's group messages pass through the whole pipeline, on both databases. At the end, some vacancies are
waiting for an operator's decision.
"""

from app.contexts.grupos.relato import vaga_em_palavras
from app.contexts.nomes.correcoes import Correcao
from batuta.testing import FakeClock
from simulador.comportamento import Chance
from simulador.evolution.falas import fala
from tests.julia.grupos.bancada import bancada

# Number of group messages in two minutes of a demonstration.
SAID = 12


async def test_demonstration_has_a_decidable_review_within_two_minutes(database_url: str, clock: FakeClock) -> None:
    chance = Chance(0)
    async with bancada(database_url, clock, leitor=None) as mesa:
        for n in range(1, SAID + 1):
            await mesa.dizem(fala(chance, n))
        await mesa.trabalha()
        revisao = mesa.groups.revisao
        waiting = [vaga_em_palavras(row, mesa.work.zone) for row in await revisao.pendentes(limite=50)]
        unsure = [each for each in waiting if each["motivo"] == "hospital_incerto"]
        assert unsure
        for each in unsure:
            start, end = each["campos"]["hospital"]["trecho"]
            assert each["texto"][start:end] == each["campos"]["hospital"]["valor"]
        decided = await revisao.aprovar(unsure[0]["id"], Correcao(valor=2000), por="operador")
        assert (decided.status, decided.aprendido) == ("importada", unsure[0]["campos"]["hospital"]["valor"])
        lacking = [each for each in waiting if each["motivo"] == "match_incompleto:hospital"]
        assert lacking
        whole = Correcao(hospital="Hospital Fictício", cidade="Salvador", uf="BA")
        assert (await revisao.aprovar(lacking[0]["id"], whole, por="operador")).status == "importada"
        imported = await mesa.one("SELECT count(*) AS quantas FROM vagas_grupo WHERE motivo_status IS NULL")
        assert imported["quantas"] > 0  # most offers need no review
