"""The review page shows a vacancy with its source text and stores one decision. The hospital names in a decision are
remembered. The tests run on both databases.
"""

import asyncio
from datetime import date, timedelta

import pytest

from app.contexts.grupos.relato import vaga_em_palavras
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.nomes.correcoes import (
    Correcao,
    CorrecaoRecusada,
    EspecialidadeDesconhecida,
    LugarSemHospital,
    MotivoAusente,
    NaoENome,
)
from app.contexts.vagas.revisao import (
    HospitalBloqueado,
    Revisao,
    VagaDecidida,
    VagaIncompleta,
    VagaInexistente,
    VagaPassada,
    rotuladas,
)
from tests.julia.grupos.bancada import Bancada, vaga, waits

UNUSED_ID = "00000000-0000-0000-0000-000000000000"


async def test_review_shows_the_text_and_the_slice_of_each_field(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    (row,) = await revisao.pendentes(limite=10)
    shown = vaga_em_palavras(row, mesa.work.zone)
    assert (shown["id"], shown["motivo"], shown["score"]) == (id, "hospital_incerto", 0.85)
    for name, expected in (("hospital", "Vila Inventada"), ("valor", "1500"), ("data", "2026-03-20")):
        start, end = shown["campos"][name]["trecho"]
        assert shown["texto"][start:end] == expected
    one, sources = await revisao.ver(id)
    assert vaga_em_palavras(one, mesa.work.zone, sources)["fontes"][0]["ordem"] == 1


async def test_approved_vaga_becomes_a_vacancy_and_its_hospital_name_is_learnt(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    done = await revisao.aprovar(id, Correcao(), por="gestora", notas="conferida")
    assert (done.status, done.aprendido) == ("importada", "Vila Inventada")
    row = await mesa.one("SELECT status, revisada_por, notas_revisao, vaga_importada_id FROM vagas_grupo")
    assert tuple(row.values()) == ("importada", "gestora", "conferida", done.vaga_id)
    assert (await mesa.one("SELECT status FROM vagas"))["status"] == "aberta"
    await mesa.dizem(vaga("Vila Inventada", dia="2026-03-25"))
    await mesa.clock.advance(timedelta(seconds=6))
    await mesa.trabalha()
    assert len(await mesa.rows("SELECT id FROM vagas")) == 2


async def test_correction_teaches_the_name_and_the_next_message_needs_no_review(
    mesa: Bancada, revisao: Revisao
) -> None:
    await mesa.carrega("Hospital Verdadeiro", cidade="Santos", uf="SP")
    id = await waits(mesa, vaga("Vila Inventada"))
    how = Correcao(
        hospital="Hospital Verdadeiro", especialidade="ortopedista", data=date(2026, 3, 22), periodo=Periodo.DIURNO,
        hora_inicio="07:00", hora_fim="19:00", valor=1800.0,
    )  # fmt: skip
    await revisao.aprovar(id, how, por="gestora")
    row = await mesa.one(
        "SELECT hospital.nome AS hospital, area.nome AS area, data, valor, hora_inicio, periodo_id FROM vagas"
        " JOIN hospitais AS hospital ON hospital.id = hospital_id JOIN especialidades AS area ON area.id = especialidade_id"
    )
    assert tuple(row.values()) == (
        "Hospital Verdadeiro",
        "Ortopedia e Traumatologia",
        date(2026, 3, 22),
        1800,
        "07:00",
        1,
    )
    learnt = await mesa.one("SELECT * FROM hospitais_alias WHERE alias = 'Vila Inventada'")
    assert (learnt["origem"], learnt["criado_por"], learnt["confirmado"]) == ("gestor", "gestora", True)
    await mesa.clock.advance(timedelta(seconds=6))
    await mesa.dizem(vaga("vila inventada", dia="2026-03-28"))
    await mesa.trabalha()
    last = await mesa.one(
        "SELECT hospital_match_score, status FROM vagas_grupo WHERE data = :dia", dia=date(2026, 3, 28)
    )
    assert tuple(last.values()) == (1.0, "importada")


async def test_word_that_is_not_a_name_teaches_nothing(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("inbox"))
    done = await revisao.aprovar(id, Correcao(hospital="Hospital Verdadeiro", cidade="Santos", uf="SP"), por="gestora")
    assert (done.status, done.aprendido) == ("importada", None)
    assert await mesa.rows("SELECT alias FROM hospitais_alias WHERE alias_normalizado = 'inbox'") == []


async def test_vaga_without_a_hospital_or_in_the_past_cannot_be_approved(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("inbox"))
    with pytest.raises(VagaIncompleta, match="hospital"):
        await revisao.aprovar(id, Correcao(), por="gestora")
    with pytest.raises(VagaPassada, match="2026-01-01"):
        await revisao.aprovar(id, Correcao(hospital="Hospital Verdadeiro", data=date(2026, 1, 1)), por="gestora")
    assert (await mesa.one("SELECT status, revisada_por FROM vagas_grupo")) == {
        "status": "aguardando_revisao", "revisada_por": None,
    }  # fmt: skip
    assert await mesa.rows("SELECT id FROM hospitais") == []


async def test_rejection_keeps_its_reason_and_reviewer(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    await revisao.rejeitar(id, "não é plantão", por="gestora")
    row = await mesa.one("SELECT status, motivo_status, revisada_por FROM vagas_grupo")
    assert tuple(row.values()) == ("rejeitada", "rejeitada: não é plantão", "gestora")
    assert await mesa.rows("SELECT id FROM vagas") == []


async def test_audit_log_holds_every_decision_by_ids_and_field_names_only(mesa: Bancada, revisao: Revisao) -> None:
    first = await waits(mesa, vaga("Vila Inventada"))
    done = await revisao.aprovar(first, Correcao(valor=1800.0), por="gestora", notas="Fulana confirmou")
    second = await waits(mesa, vaga("Vila Sonhada"))
    await revisao.rejeitar(second, "telefone 11 90000-0000 é falso", por="gestor")
    third = await waits(mesa, vaga("inbox"))
    same = Correcao(hospital="Vila Inventada", valor=1900.0)
    assert (await revisao.aprovar(third, same, por="gestora")).status == "duplicada"
    noted = await mesa.rows("SELECT actor, action, subject, before, after FROM audit_log ORDER BY id")
    assert [(row["actor"], row["action"], row["subject"], row["after"]) for row in noted] == [
        ("gestora", "vaga_grupo.aprovar", f"vaga_grupo:{first}",
         {"status": "importada", "vaga": done.vaga_id, "campos": ["valor"]}),
        ("gestor", "vaga_grupo.rejeitar", f"vaga_grupo:{second}", {"status": "rejeitada"}),
        ("gestora", "vaga_grupo.aprovar", f"vaga_grupo:{third}",
         {"status": "duplicada", "duplicada_de": first, "campos": ["hospital", "valor"]}),
    ]  # fmt: skip
    assert {row["before"]["status"] for row in noted} == {"aguardando_revisao"}


async def test_second_of_two_concurrent_decisions_is_refused(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    ends = await asyncio.gather(
        revisao.aprovar(id, Correcao(), por="a"), revisao.rejeitar(id, "não", por="b"), return_exceptions=True
    )
    assert sorted(type(end).__name__ for end in ends) == ["Decidida", "VagaDecidida"]
    with pytest.raises(VagaDecidida):
        await revisao.aprovar(id, Correcao(), por="c")
    with pytest.raises(VagaInexistente):
        await revisao.ver(UNUSED_ID)


async def test_approval_that_matches_another_vaga_adds_no_second_vacancy(mesa: Bancada, revisao: Revisao) -> None:
    await mesa.carrega("Hospital Verdadeiro", cidade="Santos", uf="SP")
    await mesa.dizem(vaga("Hospital Verdadeiro"))
    id = await waits(mesa, vaga("Vila Inventada"))
    done = await revisao.aprovar(id, Correcao(hospital="Hospital Verdadeiro"), por="gestora")
    assert done.status == "duplicada"
    assert len(await mesa.rows("SELECT id FROM vagas")) == 1
    assert (await mesa.one("SELECT qtd_fontes FROM vagas_grupo WHERE status = 'importada'"))["qtd_fontes"] == 2


async def test_vaga_of_a_blocked_hospital_cannot_be_approved(mesa: Bancada, revisao: Revisao) -> None:
    await mesa.carrega("Hospital Verdadeiro", cidade="Santos", uf="SP")
    await mesa.write(
        "INSERT INTO hospitais_bloqueados (hospital_id, motivo, bloqueado_por, bloqueado_em)"
        " SELECT id, 'teste', 'gestora', :now FROM hospitais",
        now=mesa.clock.now(),
    )
    id = await waits(mesa, vaga("Vila Inventada"))
    with pytest.raises(HospitalBloqueado, match="blocked"):
        await revisao.aprovar(id, Correcao(hospital="Hospital Verdadeiro"), por="gestora")
    assert (await mesa.one("SELECT status, revisada_por FROM vagas_grupo")) == {
        "status": "aguardando_revisao", "revisada_por": None,
    }  # fmt: skip
    await mesa.write("UPDATE hospitais_bloqueados SET status = 'liberado'")
    assert (await revisao.aprovar(id, Correcao(hospital="Hospital Verdadeiro"), por="gestora")).status == "importada"


NO_NAMES = (
    "Plantão", "dia", "médico", "noturno", "vaga", "Plantão noturno", "()", "", "R$ 500 11 97777-0001", "Pediatria",
)  # fmt: skip
NO_AREAS = ("plantão", "dia", "vaga", "R$", "UPA", "19h", "\N{RIGHT-TO-LEFT OVERRIDE}")
REFUSED: tuple[tuple[Correcao, type[Exception]], ...] = (
    *((Correcao(hospital=word), NaoENome) for word in NO_NAMES),
    *((Correcao(especialidade=word), EspecialidadeDesconhecida) for word in NO_AREAS),
    (Correcao(cidade="Santos"), LugarSemHospital),
    (Correcao(hospital="Hospital Verdadeiro", uf="XX"), CorrecaoRecusada),
    (Correcao(data=date(9999, 12, 31)), CorrecaoRecusada),
    (Correcao(contato_whatsapp="5500000000000"), CorrecaoRecusada),
)


async def test_invalid_correction_is_refused_and_teaches_nothing(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    before = await mesa.one("SELECT versao FROM vocabulario_grupos")
    for how, refused in REFUSED:
        with pytest.raises(refused):
            await revisao.aprovar(id, how, por="gestora")
    assert (await mesa.one("SELECT status FROM vagas_grupo"))["status"] == "aguardando_revisao"
    assert await mesa.one("SELECT versao FROM vocabulario_grupos") == before


async def test_misspelt_speciality_gets_a_suggestion(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    with pytest.raises(EspecialidadeDesconhecida, match="Pediatria"):
        await revisao.aprovar(id, Correcao(especialidade="Pedriatia"), por="gestora")


async def test_rejection_needs_a_reason(mesa: Bancada, revisao: Revisao) -> None:
    id = await waits(mesa, vaga("Vila Inventada"))
    with pytest.raises(MotivoAusente):
        await revisao.rejeitar(id, "  ", por="gestora")


async def test_decisions_of_a_whole_message_become_labelled_data(mesa: Bancada, revisao: Revisao) -> None:
    corrected = await waits(mesa, vaga("Vila Inventada"))
    await mesa.dizem(vaga("inbox", dia="2026-03-25"))
    await mesa.clock.advance(timedelta(seconds=6))
    await mesa.trabalha()
    rejected = next(row["id"] for row in await revisao.pendentes(limite=10) if row["id"] != corrected)
    how = Correcao(hospital="Hospital Verdadeiro", cidade="Santos", uf="SP", periodo=Periodo.DIURNO, valor=1800.0)
    await revisao.aprovar(corrected, how, por="gestora")
    assert [each["eh_oferta"] for each in rotuladas(await revisao.decididas(), mesa.work.zone)] == [True]
    await revisao.rejeitar(rejected, "não é plantão", por="gestora")
    offer, other = sorted(rotuladas(await revisao.decididas(), mesa.work.zone), key=lambda each: not each["eh_oferta"])
    (label,) = offer["vagas"]
    assert (offer["categoria"], label["hospital"], label["uf"]) == ("oferta", "Hospital Verdadeiro", "SP")
    assert (label["data"], label["periodo"], label["valor"]) == ("2026-03-20", "diurno", 1800)
    assert "Vila Inventada" in offer["texto"]
    assert (other["eh_oferta"], other["categoria"], other["vagas"]) == (False, None, [])
