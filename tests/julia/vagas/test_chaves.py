"""The rule that decides which extracted vacancy owns a deduplication key (hospital, day, period, speciality), on both
databases. Only an extracted vacancy that was imported, or may still be imported, owns its key.
"""

from datetime import date, timedelta
from typing import Any

import pytest

from app.contexts.grupos.fila import Estagio
from app.contexts.nomes.correcoes import Correcao
from app.contexts.vagas.revisao import Revisao
from batuta.queue.item import Lease
from batuta.queue.outcome import StageOutcome
from batuta.testing import FakeClock
from tests.julia.grupos.bancada import Bancada, Handler, bancada, vaga, waits

OUTRO_GRUPO = "120363000000000002@g.us"
OUTRA = "5511900000088@s.whatsapp.net"


async def repeat(mesa: Bancada, line: str) -> dict[str, Any]:
    """Let another author post the same vacancy in another group an hour later. Return the row that is stored for it."""
    await mesa.clock.advance(timedelta(hours=1))
    said = await mesa.dizem("plantão\n" + line, grupo=OUTRO_GRUPO, autor=OUTRA)
    await mesa.trabalha()
    return await mesa.one(
        "SELECT vaga.id, vaga.status, vaga.duplicada_de FROM vagas_grupo AS vaga"
        " JOIN mensagens_grupo AS mensagem ON mensagem.id = vaga.mensagem_id WHERE mensagem.message_id = :said",
        said=said,
    )


async def test_rejected_vaga_does_not_absorb_the_same_vaga_of_another_author(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    await revisao.rejeitar(id, "golpe", por="gestora")
    assert (await repeat(mesa, vaga("Vila Inventada")))["status"] == "aguardando_revisao"


async def test_vaga_of_a_blocked_author_does_not_absorb_the_same_of_others(mesa: Bancada) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    await mesa.groups.autores.bloquear(id, por="gestora")
    assert (await repeat(mesa, vaga("Vila Inventada")))["status"] == "aguardando_revisao"


async def test_vaga_of_a_second_author_keeps_waiting_when_the_first_is_blocked(mesa: Bancada) -> None:
    first = await waits(mesa, vaga("Vila Inventada"))
    second = await repeat(mesa, vaga("Vila Inventada"))
    assert second["duplicada_de"] == first
    done = await mesa.groups.autores.bloquear(first, por="gestora")
    assert done.rejeitadas == 1
    row = await mesa.one("SELECT status, eh_duplicada, duplicada_de FROM vagas_grupo WHERE id = :id", id=second["id"])
    assert tuple(row.values()) == ("aguardando_revisao", False, None)
    third = await repeat(mesa, vaga("Vila Inventada"))
    assert (third["status"], third["duplicada_de"]) == ("duplicada", second["id"])


async def test_discarded_vaga_does_not_absorb_the_same_after_an_unblock(mesa: Bancada) -> None:
    await mesa.carrega("Hospital Fictício", cidade="Santos", uf="SP")
    await blocked(mesa)
    await mesa.dizem(vaga())
    await mesa.trabalha()
    assert (await mesa.one("SELECT status FROM vagas_grupo"))["status"] == "descartada"
    await mesa.write("UPDATE hospitais_bloqueados SET status = 'liberado'")
    assert (await repeat(mesa, vaga()))["status"] == "importada"


async def test_corrected_vaga_releases_its_former_key_and_takes_its_own(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    await revisao.aprovar(id, Correcao(data=date(2026, 3, 25)), por="gestora")
    assert (await repeat(mesa, vaga("Vila Inventada")))["status"] == "importada"
    again = await repeat(mesa, vaga("Vila Inventada", dia="2026-03-25"))
    assert (again["status"], again["duplicada_de"]) == ("duplicada", id)


async def test_approved_vaga_absorbs_the_same_vaga_that_still_waits(mesa: Bancada, revisao: Revisao) -> None:
    first = await waits(mesa, vaga("Vila Inventada"))
    second = await repeat(mesa, vaga("Vila Inventada", dia="2026-03-25"))
    done = await revisao.aprovar(second["id"], Correcao(data=date(2026, 3, 20)), por="gestora")
    assert (done.status, done.vaga_id) == ("importada", (await mesa.one("SELECT id FROM vagas"))["id"])
    row = await mesa.one("SELECT status, duplicada_de FROM vagas_grupo WHERE id = :id", id=first)
    assert tuple(row.values()) == ("duplicada", second["id"])
    kept = await mesa.rows("SELECT ordem FROM vagas_grupo_fontes WHERE vaga_grupo_id = :id", id=second["id"])
    assert sorted(row["ordem"] for row in kept) == [1, 2]


async def test_review_lists_a_vaga_only_after_every_stage(mesa: Bancada, revisao: Revisao) -> None:
    await mesa.dizem("plantão\n" + vaga("R$ 500"))
    for stage in Estagio:
        assert await revisao.pendentes(limite=5) == [], stage
        await mesa.work.work_once(stage, 10, 10)
    (row,) = await revisao.pendentes(limite=5)
    assert row["motivo_status"] == "match_incompleto:hospital"


@pytest.mark.parametrize("stage", [Estagio.NORMALIZACAO, Estagio.DEDUPLICACAO, Estagio.IMPORTACAO])
async def test_no_stage_overrides_the_decision_of_a_reviewer(mesa: Bancada, revisao: Revisao, stage: Estagio) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    done = await revisao.aprovar(id, Correcao(valor=1800.0), por="gestora")
    await mesa.write(
        "UPDATE fila_processamento_grupos SET estagio = :stage, finished_at = NULL WHERE vaga_grupo_id = :id",
        stage=stage.value,
        id=id,
    )
    await mesa.trabalha()
    row = await mesa.one("SELECT status, motivo_status, vaga_importada_id FROM vagas_grupo")
    assert tuple(row.values()) == ("importada", "aprovada_por_pessoa", done.vaga_id)
    assert (await mesa.one("SELECT valor FROM vagas"))["valor"] == 1800


async def test_repeat_during_a_rejection_is_not_lost(database_url: str, clock: FakeClock) -> None:
    async def rejects_before_it_is_written(handler: Handler, lease: Lease) -> StageOutcome:
        outcome = await handler(lease)
        if lease.row["estagio"] == Estagio.DEDUPLICACAO and first:
            await mesa.groups.revisao.rejeitar(first.pop(), "golpe", por="gestora")
        return outcome

    first: list[str] = []
    async with bancada(database_url, clock, around=rejects_before_it_is_written) as mesa:
        first.append(await waits(mesa, vaga("Vila Inventada")))
        assert (await repeat(mesa, vaga("Vila Inventada")))["status"] == "aguardando_revisao"


async def test_vaga_in_other_words_keeps_waiting_when_the_first_is_rejected(mesa: Bancada, revisao: Revisao) -> None:
    line = vaga("Vila Inventada")
    first = await waits(mesa, line)
    forwarded = await repeat(mesa, line)
    own = await repeat(mesa, "urgente\n" + line)
    await revisao.rejeitar(first, "golpe", por="gestora")
    status = {row["id"]: row["status"] for row in await mesa.rows("SELECT id, status FROM vagas_grupo")}
    assert (status[forwarded["id"]], status[own["id"]]) == ("duplicada", "aguardando_revisao")
    kept = await mesa.one("SELECT qtd_fontes FROM vagas_grupo WHERE id = :id", id=own["id"])
    assert kept["qtd_fontes"] == 2
    await revisao.rejeitar(own["id"], "golpe", por="gestora")
    assert await revisao.quantas() == 0


async def test_cancelled_shift_offered_again_is_a_new_vacancy(mesa: Bancada) -> None:
    await mesa.dizem(vaga())
    await mesa.trabalha()
    assert (await repeat(mesa, vaga()))["status"] == "duplicada"
    await mesa.write("UPDATE vagas SET status = 'cancelada'")
    again = await repeat(mesa, vaga())
    assert again["status"] == "importada"
    assert (await repeat(mesa, vaga()))["duplicada_de"] == again["id"]
    assert len(await mesa.rows("SELECT id FROM vagas WHERE status = 'aberta'")) == 1


async def test_failed_vaga_absorbs_no_repeat_and_its_retry_adds_no_vacancy(
    mesa: Bancada,
) -> None:
    async def fails(lease: Lease) -> StageOutcome:
        raise RuntimeError

    mesa.instead[Estagio.IMPORTACAO] = fails
    await mesa.dizem(vaga())
    for _ in range(5):
        await mesa.trabalha()
        await mesa.clock.advance(timedelta(minutes=20))
    assert "erro" in await mesa.fila()
    del mesa.instead[Estagio.IMPORTACAO]
    again = await repeat(mesa, vaga())
    assert again["status"] == "importada"
    assert [each async for each in mesa.operacao.reprocessar(await mesa.operacao.mortas(None, 10))] == [True]
    await mesa.trabalha()
    assert len(await mesa.rows("SELECT id FROM vagas")) == 1
    first = await mesa.one("SELECT status, duplicada_de FROM vagas_grupo WHERE id <> :id", id=again["id"])
    assert tuple(first.values()) == ("duplicada", again["id"])


async def blocked(mesa: Bancada) -> None:
    await mesa.write(
        "INSERT INTO hospitais_bloqueados (hospital_id, motivo, bloqueado_por, bloqueado_em)"
        " SELECT id, 'teste', 'gestora', :now FROM hospitais",
        now=mesa.clock.now(),
    )
