"""The groups pipeline on both databases: each offer becomes one vacancy, and every decision is recorded."""

import asyncio
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.contexts.esteira.leituras import LeitorPorRegras
from batuta.queue.outcome import Failed
from tests.julia.grupos.bancada import GRUPO, Bancada, vaga


async def test_offer_becomes_an_open_vacancy_with_its_source(mesa: Bancada) -> None:
    await mesa.dizem("Plantão de pediatria\n" + vaga())
    await mesa.trabalha()
    assert await mesa.fila() == ["finalizado", "finalizado"]
    row = await mesa.one("SELECT * FROM vagas")
    assert (row["data"], row["status"], row["origem"], row["valor"], row["hora_inicio"]) == (
        date(2026, 3, 20), "aberta", "grupo_whatsapp", 1500, "19:00",
    )  # fmt: skip
    read = await mesa.one("SELECT * FROM vagas_grupo")
    assert (read["status"], read["vaga_importada_id"], row["vaga_grupo_id"]) == ("importada", row["id"], read["id"])
    text = (await mesa.one("SELECT texto FROM mensagens_grupo"))["texto"]
    start, end = read["trechos"]["hospital"]
    assert text[start:end] == "Hospital Fictício"
    source = await mesa.one("SELECT * FROM vagas_grupo_fontes")
    assert (source["vaga_grupo_id"], source["ordem"], read["qtd_fontes"]) == (read["id"], 1, 1)


async def test_discarded_message_keeps_its_score_reason_and_limit(
    mesa: Bancada,
) -> None:
    await mesa.dizem("bom dia pessoal, tudo bem com vocês?")
    await mesa.dizem("Alguém tem vaga de plantão no hospital hoje?")
    await mesa.trabalha()
    assert await mesa.fila() == ["descartado", "descartado"]
    first, second = await mesa.rows("SELECT * FROM mensagens_grupo ORDER BY message_id")
    assert (first["status"], first["passou_heuristica"], first["limiar_heuristica"]) == (
        "heuristica_rejeitou",
        False,
        0.3,
    )
    assert (second["status"], second["eh_oferta"], second["categoria"]) == (
        "classificada_nao_oferta",
        False,
        "conversa",
    )
    assert (second["motivo_descarte"], second["limiar_classificacao"]) == ("nao_eh_oferta", 0.7)
    assert first["processado_em"] == second["processado_em"] == mesa.clock.now()
    assert None not in (first["heuristica_ms"], second["classificacao_ms"], second["score_heuristica"])


async def test_repeated_message_is_not_processed_again(mesa: Bancada) -> None:
    await mesa.dizem(vaga(), id="3EB0A")
    await mesa.trabalha()
    await mesa.dizem(vaga(), id="3EB0A")
    await mesa.trabalha()
    assert await mesa.fila() == ["finalizado", "finalizado"]
    assert len(await mesa.rows("SELECT id FROM vagas")) == 1


async def test_list_becomes_one_row_per_vaga_and_the_message_ends_with_the_last(
    mesa: Bancada,
) -> None:
    days = [f"2026-03-{day:02d}" for day in range(11, 31)] + [f"2026-04-{day:02d}" for day in range(1, 11)]
    await mesa.dizem("Plantões:\n" + "\n".join(vaga(dia=day) for day in days))
    await mesa.trabalha()
    assert await mesa.fila() == ["finalizado"] * 31
    assert len(await mesa.rows("SELECT id FROM vagas")) == 30
    message = await mesa.one("SELECT status, qtd_vagas_extraidas, vagas_a_caminho, processado_em FROM mensagens_grupo")
    assert message == {
        "status": "processada", "qtd_vagas_extraidas": 30, "vagas_a_caminho": 0, "processado_em": mesa.clock.now(),
    }  # fmt: skip


async def test_message_forwarded_to_thirty_groups_is_one_vacancy_with_thirty_sources(mesa: Bancada) -> None:
    text = "Plantão\n" + vaga()
    for n in range(30):
        await mesa.dizem(text, grupo=f"1203630000000{n:05d}@g.us", autor=f"5511900000{n:03d}@s.whatsapp.net")
    await mesa.trabalha()
    assert set(await mesa.fila()) == {"finalizado"}
    vacancy = await mesa.one("SELECT vaga_grupo_id FROM vagas")
    principal = await mesa.one("SELECT id, qtd_fontes FROM vagas_grupo WHERE status = 'importada'")
    assert (vacancy["vaga_grupo_id"], principal["qtd_fontes"]) == (principal["id"], 30)
    sources = await mesa.rows(
        "SELECT DISTINCT grupo_id FROM vagas_grupo_fontes WHERE vaga_grupo_id = :id", id=principal["id"]
    )
    assert len(sources) == 30
    repeats = await mesa.rows("SELECT duplicada_de FROM vagas_grupo WHERE status = 'duplicada'")
    assert [row["duplicada_de"] for row in repeats] == [principal["id"]] * 29


async def test_open_vacancy_is_not_offered_twice_and_a_closed_one_may_come_back(mesa: Bancada) -> None:
    await mesa.dizem(vaga())
    await mesa.trabalha()
    mesa.clock.step(timedelta(hours=49))
    await mesa.dizem(vaga())
    await mesa.trabalha()
    assert len(await mesa.rows("SELECT id FROM vagas")) == 1
    await mesa.write("UPDATE vagas SET status = 'cancelada'")
    await mesa.dizem(vaga())
    await mesa.trabalha()
    assert sorted(row["status"] for row in await mesa.rows("SELECT status FROM vagas")) == ["aberta", "cancelada"]


async def test_two_different_shifts_are_two_vacancies(mesa: Bancada) -> None:
    others = (vaga(periodo="diurno"), vaga(dia="2026-03-21"), vaga(area="Ortopedia"), vaga(hospital="UPA Imaginária"))
    await mesa.dizem("\n".join((vaga(), *others)))
    await mesa.trabalha()
    assert len(await mesa.rows("SELECT id FROM vagas")) == 5


async def test_failing_stage_retries_after_one_five_and_fifteen_minutes(
    mesa: Bancada,
) -> None:
    tried: list[int] = []

    async def broken(lease: object) -> Failed:
        tried.append(round((mesa.clock.now() - start).total_seconds() / 60))
        return Failed("the model does not answer")

    start = mesa.clock.now()
    mesa.instead["extracao"] = broken
    await mesa.dizem("plantão\n" + vaga("UPA Teste", valor=None))
    for _ in range(25):
        await mesa.trabalha()
        mesa.clock.step(timedelta(minutes=1))
    assert tried == [0, 1, 6, 21]
    row = await mesa.one("SELECT estagio, ultimo_estagio, ultimo_erro FROM fila_processamento_grupos")
    assert tuple(row.values()) == ("erro", "extracao", "the model does not answer")
    del mesa.instead["extracao"]
    dead = await mesa.operacao.mortas(None, 10)
    assert [each async for each in mesa.operacao.reprocessar(dead)] == [True]
    worked = await mesa.trabalha()
    assert (worked["pendente"], worked["extracao"]) == (0, 1)
    assert set(await mesa.fila()) == {"finalizado"}


async def test_rows_without_a_failure_come_first(mesa: Bancada) -> None:
    for n in range(6):
        await mesa.dizem(vaga(dia=f"2026-03-{20 + n}"), id=f"3EB{n}")
    await mesa.write("UPDATE fila_processamento_grupos SET tentativas = 1 WHERE id IN"
                     " (SELECT id FROM fila_processamento_grupos ORDER BY created_at, id LIMIT 3)")  # fmt: skip
    assert await mesa.work.work_once("pendente", 3) == 3
    rows = await mesa.rows("SELECT estagio, tentativas FROM fila_processamento_grupos ORDER BY created_at, id")
    assert [row["estagio"] == "pendente" for row in rows] == [True] * 3 + [False] * 3


async def test_todays_shift_is_not_past_in_the_evening_and_yesterdays_is(mesa: Bancada) -> None:
    tonight = mesa.clock.now().astimezone(mesa.work.zone).replace(hour=22)
    mesa.clock.step(tonight - mesa.clock.now())  # already tomorrow in UTC
    today, yesterday = tonight.date().isoformat(), (tonight.date() - timedelta(days=1)).isoformat()
    await mesa.dizem("\n".join((vaga(dia=today), vaga(dia=yesterday))))
    await mesa.trabalha()
    found = await mesa.rows("SELECT data, status, motivo_status FROM vagas_grupo ORDER BY data DESC")
    assert [(row["data"].isoformat(), row["status"], row["motivo_status"]) for row in found] == [
        (today, "importada", None), (yesterday, "descartada", "data_passada"),
    ]  # fmt: skip
    assert len(await mesa.rows("SELECT id FROM vagas")) == 1


@pytest.mark.parametrize("name", ["inbox", "Pediatria"])
async def test_word_that_is_not_a_name_waits_for_review_and_becomes_no_hospital(mesa: Bancada, name: str) -> None:
    await mesa.dizem("plantão\n" + vaga(name))
    await mesa.dizem("plantão de novo\n" + vaga(name), grupo="120363000000000002@g.us")
    await mesa.trabalha()
    first, second = await mesa.rows("SELECT status, motivo_status FROM vagas_grupo ORDER BY created_at, id")
    assert {first["status"], second["status"]} == {"aguardando_revisao", "duplicada"}
    assert "match_incompleto:hospital" in (first["motivo_status"], second["motivo_status"])
    assert await mesa.rows("SELECT id FROM hospitais") == []
    assert await mesa.rows("SELECT id FROM vagas") == []


async def test_near_match_of_a_name_is_the_same_hospital_and_is_learnt(mesa: Bancada) -> None:
    await mesa.carrega("Hospital Municipal Doutor Inventado", cidade="Santos", uf="SP", aliases=["HMDI"])
    await mesa.dizem("\n".join(vaga(name, dia=f"2026-03-{20 + n}") for n, name in enumerate(
        ["HMDI", "H. Municipal Dr. Inventado", "Hosp Municipal Doutor Invetado", "HM Dr Inventado - Santos"])))  # fmt: skip
    await mesa.trabalha()
    found = await mesa.rows("SELECT hospital_match_score FROM vagas_grupo ORDER BY data")
    assert len(await mesa.rows("SELECT id FROM hospitais")) == 1
    assert [row["hospital_match_score"] == 1.0 for row in found] == [True, True, False, True]
    learnt = await mesa.one("SELECT * FROM hospitais_alias WHERE origem = 'sistema_auto'")
    assert (learnt["alias"], learnt["confirmado"]) == ("Hosp Municipal Doutor Invetado", False)
    assert 0.85 < learnt["confianca"] < 1


async def test_numbers_and_cities_distinguish_hospitals(mesa: Bancada) -> None:
    await mesa.carrega("UPA Imaginária 1", cidade="Santos", uf="SP")
    await mesa.carrega("UPA Imaginária 2", cidade="Santos", uf="SP")
    await mesa.carrega("Hospital São Fictício", cidade="Campinas", uf="SP")
    await mesa.dizem(vaga("UPA Imaginaria 2"))
    await mesa.trabalha()
    named = await mesa.one("SELECT nome FROM hospitais WHERE id IN (SELECT hospital_id FROM vagas_grupo)")
    assert named == {"nome": "UPA Imaginária 2"}


async def test_author_is_the_contact_when_the_message_names_none(mesa: Bancada) -> None:
    await mesa.dizem("\n".join((vaga(), vaga(dia="2026-03-21") + "; 5511900000055")))
    await mesa.trabalha()
    found = await mesa.rows("SELECT contato_nome, contato_whatsapp FROM vagas ORDER BY data")
    assert [tuple(row.values()) for row in found] == [("Pessoa Teste", "5511900000077"), (None, "5511900000055")]


async def test_message_of_an_unmonitored_group_is_stored_and_not_read(mesa: Bancada) -> None:
    await mesa.dizem("bom dia a todos do grupo")
    await mesa.write("UPDATE grupos_whatsapp SET monitorar_ofertas = FALSE")
    await mesa.dizem(vaga())
    rows = await mesa.rows("SELECT status, motivo_descarte FROM mensagens_grupo WHERE message_id = '3EB0000002'")
    assert rows == [{"status": "descartada", "motivo_descarte": "grupo_nao_monitorado"}]
    assert len(await mesa.fila()) == 1
    assert (await mesa.one("SELECT total_mensagens FROM grupos_whatsapp WHERE jid = :jid", jid=GRUPO))[
        "total_mensagens"
    ] == 2


async def test_long_message_is_read_while_the_event_loop_continues(mesa: Bancada) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    message: Any = {"timestamp_msg": mesa.clock.now(), "grupo": "x", "regiao": None}
    reader = LeitorPorRegras(mesa.groups.dicionario, ZoneInfo("America/Sao_Paulo"))
    await reader("Plantão", message)  # the names are now in the cache
    beating = asyncio.create_task(beat())
    await reader("Plantão dia 20/03 noturno R$ 1.500 " * 1000, message)
    beating.cancel()
    assert beats > 10
