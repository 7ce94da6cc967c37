"""A message in a group says that a vacancy is taken. A clear notice closes the vacancy, and an unclear one closes
nothing. The tests run on both databases.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from app.contexts.grupos.relato import aviso_em_palavras
from app.contexts.nomes.correcoes import Correcao
from app.contexts.vagas.fechamentos import FechamentoDecidido, FechamentoInexistente, Fechamentos, VagaDeOutro
from batuta.testing import FakeClock
from tests.julia.grupos.bancada import Bancada, bancada

UNUSED_ID = "00000000-0000-0000-0000-000000000000"
NOITE = "Plantão de pediatria no Hospital Fictício, dia 20/03, noturno, R$ 1.500"
DIA = "Plantão de pediatria no Hospital Fictício, dia 20/03, diurno, R$ 1.400"
LISTA = "Hospital Fictício - pediatria\n20/03 SN\n21/03 SN\nR$ 1.500"
OUTRO_GRUPO, OUTRA = "120363000000000002@g.us", "5511900000088@s.whatsapp.net"


@pytest.fixture
async def mesa(database_url: str, clock: FakeClock) -> AsyncIterator[Bancada]:
    async with bancada(database_url, clock, leitor=None) as bench:
        yield bench


@pytest.fixture
def fechamentos(mesa: Bancada) -> Fechamentos:
    return mesa.groups.fechamentos


async def said(mesa: Bancada, texto: str, **how: Any) -> str:
    """Post a message a minute later and run the pipeline."""
    await mesa.clock.advance(timedelta(minutes=1))
    id = await mesa.dizem(texto, **how)
    await mesa.trabalha()
    return id


async def open_vacancies(mesa: Bancada) -> list[str]:
    rows = await mesa.rows("SELECT data, periodo_id FROM vagas WHERE status = 'aberta' ORDER BY data, periodo_id")
    return [f"{row['data']:%d} {'SN' if row['periodo_id'] == 3 else 'SD'}" for row in rows]


async def test_reply_of_another_member_closes_nothing_however_firm(mesa: Bancada) -> None:
    offer = await said(mesa, NOITE)
    await said(mesa, "vaga preenchida, obrigada pessoal!", citada=offer, autor=OUTRA)
    assert (await open_vacancies(mesa), await doubts(mesa)) == (["20 SN"], [("dito_por_outro", 1)])
    await said(mesa, "vaga preenchida, obrigada pessoal!", citada=offer)
    assert await open_vacancies(mesa) == []


async def doubts(mesa: Bancada) -> list[tuple[str, int]]:
    rows = await mesa.rows("SELECT motivo, candidatas FROM fechamentos_grupo WHERE status = 'aguardando_revisao'")
    return [(row["motivo"], len(row["candidatas"])) for row in rows]


@pytest.mark.parametrize(
    "notice",
    [
        "Hospital Fictício 20/03 noturno pediatria PREENCHIDA",
        "Hospital Fictício dia 20/03 SN: plantão coberto. Obrigada a todos",
        f"~{NOITE}~",
        f"PREENCHIDA ✅\n{NOITE}",
        "VAGA PREENCHIDA\nHospital Fictício\nPediatria\n20/03 SN\nR$ 1.500",
        "Hospital Fictício\n~20/03 SN~\n20/03 SD\nPediatria R$ 1.400",
    ],
)
async def test_notice_with_place_day_and_period_closes_only_that_vacancy(mesa: Bancada, notice: str) -> None:
    await said(mesa, NOITE)
    await said(mesa, DIA)
    await said(mesa, notice)
    assert await open_vacancies(mesa) == ["20 SD"]
    assert await doubts(mesa) == []


async def test_reply_to_the_offer_closes_it_however_short(mesa: Bancada) -> None:
    await said(mesa, DIA)
    offer = await said(mesa, NOITE)
    await said(mesa, "já foi", citada=offer)
    assert await open_vacancies(mesa) == ["20 SD"]
    row = await mesa.one("SELECT status, como, fechadas FROM fechamentos_grupo")
    assert (row["status"], row["como"], len(row["fechadas"])) == ("fechada", "citada", 1)


async def test_audit_log_has_the_closed_vacancy_and_the_message_id_without_text(mesa: Bancada) -> None:
    offer = await said(mesa, NOITE)
    await said(mesa, "vaga preenchida, obrigada pessoal!", citada=offer)
    vacancy = await mesa.one("SELECT id, status, fechada_em FROM vagas")
    notice = await mesa.one("SELECT id FROM mensagens_grupo WHERE citada = :offer", offer=offer)
    noted = await mesa.one("SELECT * FROM audit_log")
    assert (vacancy["status"], vacancy["fechada_em"]) == ("fechada", mesa.clock.now())
    assert (noted["actor"], noted["action"], noted["subject"]) == ("grupos", "vaga.fechar", f"vaga:{vacancy['id']}")
    assert noted["after"] == {"status": "fechada", "como": "citada", "por_causa_de": notice["id"]}


async def test_history_of_a_vacancy_has_its_import_and_its_closing(mesa: Bancada) -> None:
    offer = await said(mesa, NOITE)
    await said(mesa, "vaga preenchida, obrigada pessoal!", citada=offer)
    lines = await mesa.rows("SELECT ordem, de, para, por, motivo FROM vagas_historico ORDER BY ordem")
    assert [tuple(line.values()) for line in lines] == [
        (1, None, "aberta", "grupos", "importada"),
        (2, "aberta", "fechada", "grupos", "citada"),
    ]
    event = await mesa.one("SELECT event_type, vaga_id FROM business_events WHERE event_type LIKE 'vaga_%'")
    assert (event["event_type"], event["vaga_id"]) == ("vaga_fechada", (await mesa.one("SELECT id FROM vagas"))["id"])


async def test_reply_to_a_list_closes_the_named_vacancy_or_all(mesa: Bancada) -> None:
    offer = await said(mesa, LISTA)
    await said(mesa, "preenchida", citada=offer)
    assert await open_vacancies(mesa) == ["20 SN", "21 SN"]
    assert await doubts(mesa) == [("varias_vagas", 2)]
    await said(mesa, "20/03 preenchido", citada=offer)
    assert await open_vacancies(mesa) == ["21 SN"]
    await said(mesa, "todas preenchidas", citada=offer)
    assert await open_vacancies(mesa) == []


async def test_notice_of_another_author_without_a_reply_closes_nothing(mesa: Bancada) -> None:
    await said(mesa, NOITE)
    await said(mesa, DIA)
    await said(mesa, "Hospital Fictício 20/03 noturno pediatria PREENCHIDA", autor=OUTRA)
    await said(mesa, f"~{DIA}~", autor=OUTRA)
    assert await open_vacancies(mesa) == ["20 SD", "20 SN"]
    assert await doubts(mesa) == [("dito_por_outro", 1)] * 2


async def test_author_of_a_repeat_may_close_the_vacancy_by_naming_it(mesa: Bancada) -> None:
    await said(mesa, NOITE)
    await said(mesa, f"Repassando: {NOITE}", autor=OUTRA)
    await said(mesa, "Hospital Fictício 20/03 noturno pediatria PREENCHIDA", autor=OUTRA)
    assert (await open_vacancies(mesa), await doubts(mesa)) == ([], [])


async def test_closing_words_in_another_sense_close_nothing(mesa: Bancada) -> None:
    offer = await said(mesa, NOITE)
    for talk in (
        "Grupo fechado só para admins",
        "quase preenchida, corram",
        "Contrato fechado com o Hospital Fictício, dia 20/03 noturno começamos",
    ):
        await said(mesa, talk, citada=offer)
    assert (await open_vacancies(mesa), await doubts(mesa)) == (["20 SN"], [])


async def test_notice_in_an_uncertain_sense_waits_for_a_person(mesa: Bancada) -> None:
    offer = await said(mesa, NOITE)
    await said(mesa, "telhado coberto", citada=offer)
    assert (await open_vacancies(mesa), await doubts(mesa)) == (["20 SN"], [("sentido_incerto", 1)])


@pytest.mark.parametrize(
    ("notice", "why"),
    [
        ("Vaga preenchida", "nao_diz_qual"),
        ("Hospital Fictício: vaga preenchida, obrigada", "nao_diz_qual"),
        ("plantão do dia 20/03 no Hospital Fictício já foi", "nao_diz_qual"),
    ],
)
async def test_notice_that_does_not_say_which_closes_nothing_and_waits_for_a_person(
    mesa: Bancada, notice: str, why: str
) -> None:
    await said(mesa, NOITE)
    await said(mesa, DIA)
    await said(mesa, notice)
    assert await open_vacancies(mesa) == ["20 SD", "20 SN"]
    assert await doubts(mesa) == [(why, 2)]


async def test_unnamed_one_of_two_specialities_of_a_shift_is_not_guessed(mesa: Bancada) -> None:
    await said(mesa, NOITE)
    await said(mesa, NOITE.replace("pediatria", "ortopedia"))
    await said(mesa, "Hospital Fictício 20/03 noturno PREENCHIDO")
    assert len(await open_vacancies(mesa)) == 2
    assert await doubts(mesa) == [("varias_vagas", 2)]
    await said(mesa, "Hospital Fictício 20/03 noturno ortopedia PREENCHIDO")
    assert len(await open_vacancies(mesa)) == 1


@pytest.mark.parametrize(
    "talk",
    [
        "Hospital Fictício 20/03 noturno já foi preenchida?",
        "Hospital Fictício 20/03 noturno ainda não foi preenchida",
        "se o Hospital Fictício 20/03 noturno já fechou me avisem",
        "Combinado, fechado então, te espero dia 20/03 no Hospital Fictício à noite",
        "Hospital Fictício 21/03 noturno PREENCHIDA",
        "Hospital Inventado 20/03 noturno PREENCHIDA",
    ],
)
async def test_question_denial_talk_and_other_vacancy_close_nothing(mesa: Bancada, talk: str) -> None:
    await said(mesa, NOITE)
    await said(mesa, talk)
    assert await open_vacancies(mesa) == ["20 SN"]
    assert await doubts(mesa) == []


async def test_notice_in_another_group_closes_nothing(mesa: Bancada) -> None:
    offer = await said(mesa, NOITE)
    await said(mesa, "Hospital Fictício 20/03 noturno pediatria PREENCHIDA", grupo=OUTRO_GRUPO)
    await said(mesa, "já foi", grupo=OUTRO_GRUPO, citada=offer)
    assert await open_vacancies(mesa) == ["20 SN"]


async def test_fechado_from_another_author_may_mean_agreed_and_waits_for_a_person(
    mesa: Bancada,
) -> None:
    offer = await said(mesa, NOITE)
    await said(mesa, "fechado", citada=offer, autor=OUTRA)
    assert (await open_vacancies(mesa), await doubts(mesa)) == (["20 SN"], [("dito_por_outro", 1)])
    await said(mesa, "fechado", citada=offer)
    assert await open_vacancies(mesa) == []


async def test_notice_read_before_its_offer_waits_for_it(mesa: Bancada) -> None:
    offer = await mesa.dizem(NOITE)
    await mesa.clock.advance(timedelta(seconds=5))
    await mesa.dizem("já foi", citada=offer)
    await mesa.trabalha()
    assert await open_vacancies(mesa) == ["20 SN"]
    await mesa.clock.advance(timedelta(minutes=1))
    await mesa.trabalha()
    assert await open_vacancies(mesa) == []


async def test_notice_of_the_same_second_waits_for_the_offer_it_answers(mesa: Bancada) -> None:
    await mesa.dizem("Preenchida! Obrigado", citada="OFERTA1")
    await mesa.dizem(NOITE, id="OFERTA1")
    for _ in range(4):
        await mesa.trabalha()
        await mesa.clock.advance(timedelta(seconds=40))
    assert (await mesa.one("SELECT status FROM vagas"))["status"] == "fechada"


async def test_notice_waits_a_limited_time_for_an_offer_that_did_not_arrive_yet(mesa: Bancada) -> None:
    await mesa.dizem("Preenchida! Obrigado", citada="OFERTA1")
    await mesa.dizem("Preenchida! Obrigado", citada="NUNCA")
    await mesa.trabalha()
    assert set(await mesa.fila()) == {"classificacao"}
    at = mesa.clock.now()
    await mesa.clock.advance(timedelta(minutes=1))
    await mesa.dizem(NOITE, id="OFERTA1", em=at - timedelta(seconds=2))
    for _ in range(12):
        await mesa.trabalha()
        await mesa.clock.advance(timedelta(seconds=40))
    assert (await mesa.one("SELECT status FROM vagas"))["status"] == "fechada"
    assert set(await mesa.fila()) == {"finalizado", "descartado"}


async def test_two_notices_of_the_same_second_do_not_wait_for_each_other(mesa: Bancada) -> None:
    first, second = await said(mesa, NOITE), await said(mesa, DIA)
    await mesa.dizem("já foi", citada=first)
    await mesa.dizem("já foi", citada=second)
    for _ in range(3):
        await mesa.trabalha()
        await mesa.clock.advance(timedelta(seconds=40))
    assert await open_vacancies(mesa) == []


async def test_vacancy_offered_again_after_its_closing_is_open_again(mesa: Bancada) -> None:
    offer = await said(mesa, NOITE)
    await said(mesa, "já foi", citada=offer)
    await said(mesa, f"Abriu de novo! {NOITE}")
    assert await open_vacancies(mesa) == ["20 SN"]
    assert len(await mesa.rows("SELECT id FROM vagas")) == 2


async def test_group_does_not_close_a_reserved_vacancy(mesa: Bancada) -> None:
    offer = await said(mesa, NOITE)
    await mesa.write("UPDATE vagas SET status = 'reservada'")
    await said(mesa, "já foi", citada=offer)
    assert (await mesa.one("SELECT status FROM vagas"))["status"] == "reservada"
    assert await mesa.rows("SELECT id FROM fechamentos_grupo") == []


INCERTA = "Vaga de pediatria\nLocal: Vila Inventada\n20/03 SN, R$ 1.500"
SEM_LUGAR = "Preciso de pediatra, dia 20/03, 19h às 7h, R$ 1.500, chama no pv"


async def review_states(mesa: Bancada) -> list[tuple[str, str]]:
    rows = await mesa.rows("SELECT status, motivo_status FROM vagas_grupo ORDER BY created_at, id")
    return [(row["status"], row["motivo_status"]) for row in rows]


@pytest.mark.parametrize("offer", [INCERTA, SEM_LUGAR])
async def test_vaga_in_review_is_rejected_when_a_notice_says_it_is_taken(mesa: Bancada, offer: str) -> None:
    id = await said(mesa, offer)
    assert (await review_states(mesa))[0][0] == "aguardando_revisao"
    await said(mesa, "já foi preenchida", citada=id)
    assert await review_states(mesa) == [("rejeitada", "preenchida")]
    vaga = await mesa.one("SELECT id, revisada_por FROM vagas_grupo")
    notice = await mesa.one("SELECT status, como, fechadas FROM fechamentos_grupo")
    assert (vaga["revisada_por"], notice["status"], notice["fechadas"]) == ("grupos", "fechada", [vaga["id"]])
    noted = await mesa.one("SELECT actor, action, subject FROM audit_log")
    assert tuple(noted.values()) == ("grupos", "vaga_grupo.rejeitar", f"vaga_grupo:{vaga['id']}")
    await said(mesa, f"Abriu de novo!\n{offer}")
    assert [status for status, _ in await review_states(mesa)] == ["rejeitada", "aguardando_revisao"]


async def test_notice_that_names_a_vaga_in_review_rejects_only_that_one(mesa: Bancada) -> None:
    await said(mesa, INCERTA)
    await said(mesa, INCERTA.replace("20/03", "21/03"))
    await said(mesa, "Local: Vila Inventada\n20/03 SN pediatria PREENCHIDA")
    assert await review_states(mesa) == [("rejeitada", "preenchida"), ("aguardando_revisao", "hospital_incerto")]


async def test_notice_that_may_mean_a_vaga_in_review_lists_it_as_candidate(
    mesa: Bancada, fechamentos: Fechamentos
) -> None:
    await said(mesa, NOITE)
    await said(mesa, INCERTA)
    await said(mesa, "Vaga preenchida")
    assert await doubts(mesa) == [("nao_diz_qual", 2)]
    ((row, candidates),) = await fechamentos.pendentes(limite=10)
    document = aviso_em_palavras(row, candidates, mesa.work.zone)
    assert sorted(each["status"] for each in document["vagas"]) == ["aberta", "aguardando_revisao"]
    waits = next(each["id"] for each in document["vagas"] if each["status"] == "aguardando_revisao")
    done = await fechamentos.resolver(row["id"], [waits], por="gestora")
    assert (done.vagas, await open_vacancies(mesa)) == ((waits,), ["20 SN"])
    assert ("rejeitada", "preenchida") in await review_states(mesa)


async def test_notice_about_a_vaga_approved_meanwhile_closes_its_vacancy(
    mesa: Bancada, fechamentos: Fechamentos
) -> None:
    await said(mesa, INCERTA)
    await said(mesa, "Vaga preenchida")
    vaga = (await mesa.one("SELECT id FROM vagas_grupo"))["id"]
    await mesa.groups.revisao.aprovar(vaga, Correcao(), por="gestora")
    assert await open_vacancies(mesa) == ["20 SN"]
    ((row, _),) = await fechamentos.pendentes(limite=10)
    await fechamentos.resolver(row["id"], [vaga], por="gestora")
    assert await open_vacancies(mesa) == []


async def test_reviewer_closes_once_and_only_candidates_of_the_notice(mesa: Bancada, fechamentos: Fechamentos) -> None:
    await said(mesa, NOITE)
    await said(mesa, DIA)
    await said(mesa, "Vaga preenchida")
    ((row, candidates),) = await fechamentos.pendentes(limite=10)
    start, end = row["trecho"]
    assert row["texto"][start:end] == "preenchida"
    night = next(each["id"] for each in candidates if each["periodo"] == "Noturno")
    with pytest.raises(VagaDeOutro):
        await fechamentos.resolver(row["id"], [UNUSED_ID], por="gestora")
    done = await fechamentos.resolver(row["id"], [night], por="gestora")
    assert (done.status, done.vagas, await open_vacancies(mesa)) == ("fechada", (night,), ["20 SD"])
    noted = await mesa.one("SELECT actor, action, subject FROM audit_log")
    assert tuple(noted.values()) == ("gestora", "vaga.fechar", f"vaga:{night}")
    with pytest.raises(FechamentoDecidido, match="fechada"):
        await fechamentos.resolver(row["id"], [], por="gestora")
    with pytest.raises(FechamentoInexistente):
        await fechamentos.resolver(UNUSED_ID, [], por="gestora")


async def test_reviewer_may_decide_that_a_notice_closes_nothing(mesa: Bancada, fechamentos: Fechamentos) -> None:
    await said(mesa, NOITE)
    await said(mesa, "Vaga preenchida")
    ((row, _),) = await fechamentos.pendentes(limite=10)
    assert (await fechamentos.resolver(row["id"], [], por="gestora")).status == "mantida"
    assert (await open_vacancies(mesa), await fechamentos.pendentes(limite=10)) == (["20 SN"], [])
    assert (await mesa.one("SELECT action FROM audit_log"))["action"] == "fechamento.manter"
