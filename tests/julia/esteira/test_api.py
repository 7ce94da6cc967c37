"""Reviewers and operators work with the groups pipeline over HTTP and in the terminal."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.julia import julia_of
from app.contexts.grupos.fila import Estagio
from batuta.stores.sql.database import AsJson
from tests.command import Command
from tests.julia.tables import rows, write
from tests.julia.web.test_api import Julia, open_julia

JULIA = ("--app", "app.main:work", "--lang", "en")
GOOD = "Plantão de pediatria no Hospital Inventado, dia {dia}, 19h às 7h, R$ 1.500"
UNUSED_ID = "00000000-0000-7000-8000-999999999999"


@pytest.fixture
async def julia(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url)
    yield opened
    await opened.work.close()


async def post(julia: Julia, path: str, body: Any = None) -> httpx2.Response:
    headers = {"Accept-Language": "en", "Content-Type": "application/json"}
    return await julia.ask("POST", path, content=None if body is None else json.dumps(body), headers=headers)


async def said(julia: Julia, texto: str) -> None:
    """Post a message in a group and run the pipeline."""
    work, now = julia.work, julia.work.clock.now()
    tomorrow = now.astimezone(work.zone) + timedelta(days=1)
    async with work.database.transaction() as transaction:
        await julia_of(work).groups.grupos.ensaiar(
            transaction, texto.format(dia=f"{tomorrow:%d/%m/%Y}"), now.date(), now=now
        )
    await write(work.database, "UPDATE grupos_whatsapp SET tipo = 'vagas'")
    for stage in Estagio:
        await work.work_once(stage, 100)


async def vaga_in_review(julia: Julia) -> str:
    """Create a vacancy that is waiting for review, and return its id."""
    await said(julia, GOOD)
    await write(
        julia.work.database,
        "UPDATE vagas_grupo SET status = 'aguardando_revisao', motivo_status = 'score_baixo', vaga_importada_id = NULL",
    )
    for table in ("vagas_historico", "vagas"):
        await write(julia.work.database, f"DELETE FROM {table}")
    ((row),) = await rows(julia.work.database, "SELECT id FROM vagas_grupo")
    return str(row["id"])


async def test_message_of_a_group_becomes_a_vacancy_by_the_rules_alone(julia: Julia) -> None:
    await said(julia, GOOD)
    (vacancy,) = await rows(
        julia.work.database,
        "SELECT hospital.nome AS hospital, area.nome AS area, valor, hora_inicio, hora_fim, vagas.status FROM vagas"
        " JOIN hospitais AS hospital ON hospital.id = hospital_id JOIN especialidades AS area ON area.id = especialidade_id",
    )
    assert tuple(vacancy.values()) == ("Hospital Inventado", "Pediatria", 1500, "19:00", "07:00", "aberta")


async def test_reviewer_sees_approves_and_rejects_vagas(julia: Julia) -> None:
    id = await vaga_in_review(julia)
    listed = (await julia.ask("GET", "/grupos/revisao")).json()
    assert (listed["aguardando"], [each["id"] for each in listed["vagas"]]) == (1, [id])
    start, end = listed["vagas"][0]["campos"]["hospital"]["trecho"]
    assert listed["vagas"][0]["texto"][start:end] == "Hospital Inventado"
    shown = (await julia.ask("GET", f"/grupos/revisao/{id}")).json()
    assert len(shown["fontes"]) == 1
    done = await post(julia, f"/grupos/revisao/{id}/aprovar", {"hospital": "Hospital Corrigido", "valor": 1800})
    assert (done.status_code, done.json()["status"], done.json()["aprendido"]) == (
        200,
        "importada",
        "Hospital Inventado",
    )
    again = await post(julia, f"/grupos/revisao/{id}/rejeitar", {"motivo": "tarde demais"})
    assert (again.status_code, again.json()["type"].rpartition("/")[2]) == (409, "vaga_decided")


async def test_author_is_blocked_and_unblocked_over_http(julia: Julia) -> None:
    id = await vaga_in_review(julia)
    hidden = await post(julia, f"/grupos/revisao/{id}/bloquear-autor")
    assert (hidden.status_code, hidden.json()["type"].rpartition("/")[2]) == (409, "autor_hidden")
    database = julia.work.database
    await write(
        database,
        "INSERT INTO contatos_grupo (id, jid, nome, created_at) SELECT :id, 'x@lid', 'Pessoa Teste', created_at FROM vagas_grupo",
        id=UNUSED_ID,
    )
    await write(database, "UPDATE vagas_grupo SET contato_responsavel_id = :id", id=UNUSED_ID)
    done = await post(julia, f"/grupos/revisao/{id}/bloquear-autor")
    assert (done.status_code, done.json()) == (200, {"id": UNUSED_ID, "bloqueado": True, "rejeitadas": 1})
    assert (await post(julia, f"/grupos/revisao/{id}/bloquear-autor")).json()["rejeitadas"] == 0
    (listed,) = (await julia.ask("GET", "/grupos/autores")).json()["autores"]
    assert (listed["id"], listed["nome"]) == (UNUSED_ID, "Pessoa Teste")
    lifted = await post(julia, f"/grupos/autores/{UNUSED_ID}/liberar")
    assert (lifted.status_code, lifted.json()["bloqueado"]) == (200, False)
    assert (await julia.ask("GET", "/grupos/autores")).json() == {"autores": []}
    for path in (f"/grupos/revisao/{UNUSED_ID}/bloquear-autor", f"/grupos/autores/{id}/liberar"):
        assert (await post(julia, path)).status_code == 404


async def test_reviewer_looks_up_a_name_and_removes_it(julia: Julia) -> None:
    id = await vaga_in_review(julia)
    await post(julia, f"/grupos/revisao/{id}/aprovar")
    (known,) = (await julia.ask("GET", "/grupos/nomes?nome=hospital+inventado")).json()["nomes"]
    assert (known["tipo"], known["nome"], known["confirmado"]) == ("hospital", "Hospital Inventado", True)
    gone = await post(julia, "/grupos/nomes/esquecer", {"nome": "Hospital Inventado", "id": known["id"]})
    assert (gone.status_code, gone.json()["id"]) == (200, known["id"])
    again = await post(julia, "/grupos/nomes/esquecer", {"nome": "Hospital Inventado"})
    assert (again.status_code, again.json()["type"].rpartition("/")[2]) == (404, "nome_unknown")


async def test_reviewer_decides_which_vacancy_a_notice_closes(julia: Julia) -> None:
    await said(julia, GOOD)
    (vacancy,) = await rows(julia.work.database, "SELECT id FROM vagas")
    await write(
        julia.work.database,
        "INSERT INTO fechamentos_grupo (id, mensagem_id, grupo_id, status, motivo, trecho, candidatas, created_at)"
        " SELECT :id, id, grupo_id, 'aguardando_revisao', 'nao_diz_qual', '[0, 4]',"
        " :vagas, created_at FROM mensagens_grupo",
        id=UNUSED_ID,
        vagas=AsJson([vacancy["id"]]),
    )
    (notice,) = (await julia.ask("GET", "/grupos/fechamentos")).json()["avisos"]
    assert (notice["motivo"], [each["id"] for each in notice["vagas"]]) == ("nao_diz_qual", [vacancy["id"]])
    wrong = await post(julia, f"/grupos/fechamentos/{UNUSED_ID}/fechar", {"vagas": [UNUSED_ID]})
    assert (wrong.status_code, wrong.json()["type"].rpartition("/")[2]) == (422, "fechamento_other")
    done = await post(julia, f"/grupos/fechamentos/{UNUSED_ID}/fechar", {"vagas": [vacancy["id"]]})
    assert done.json() == {"id": UNUSED_ID, "status": "fechada", "vagas": [vacancy["id"]]}
    again = await post(julia, f"/grupos/fechamentos/{UNUSED_ID}/manter")
    assert (again.status_code, again.json()["type"].rpartition("/")[2]) == (409, "fechamento_decided")
    unknown = await post(julia, f"/grupos/fechamentos/{vacancy['id']}/manter")
    assert unknown.status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        (f"/grupos/revisao/{UNUSED_ID}/aprovar", None, 404, "GET /grupos/revisao"),
        ("/grupos/revisao/ID/aprovar", {"data": "2020-01-01"}, 422, "past"),
        ("/grupos/revisao/ID/aprovar", {"valor": 5}, 422, ""),
        ("/grupos/revisao/ID/aprovar", {"hora_inicio": "25:00"}, 422, ""),
        ("/grupos/revisao/ID/aprovar", {"hospitale": "x"}, 422, ""),
        ("/grupos/revisao/ID/rejeitar", {}, 422, ""),
        ("/grupos/revisao/x/rejeitar", {"motivo": "não"}, 422, ""),
    ],
)
async def test_refusal_is_a_problem_document_with_a_reason(
    julia: Julia, path: str, body: Any, status: int, said: str
) -> None:
    answer = await post(julia, path.replace("ID", await vaga_in_review(julia)), body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]


async def test_health_of_the_groups_has_two_names(julia: Julia) -> None:
    found = (await julia.ask("GET", "/health/grupos")).json()
    assert (found["status"], found["metrics"]["pendentes"], found["fila"]["extracao"]) == ("healthy", 0, 0)
    assert (await julia.ask("GET", "/health/grupos-worker")).json().keys() == found.keys()


async def test_job_over_http_runs_every_stage(julia: Julia) -> None:
    answer = (await julia.ask("POST", "/jobs/processar-grupos")).json()
    assert (answer["status"], answer["items_processed"], answer["ciclo"]["erros"]) == ("ok", 0, 0)
    assert (await julia.ask("POST", "/jobs/verificar-alertas-grupos")).json()["alertas"] == []


def test_terminal_shows_the_queue_and_the_review(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    code, out, _ = batuta(*JULIA, "grupos", "status", "--json")
    assert (code, json.loads(out)["fila"]["pendente"]) == (0, 0)
    assert (
        json.loads(batuta(*JULIA, "grupos", "reprocessar", "--estagio", "extracao", "--json")[1])["reprocessados"] == 0
    )
    code, out, _ = batuta(*JULIA, "grupos", "backfill", "--dry-run")
    assert (code, out.strip()) == (0, "messages that would be enqueued: 0; repeat without --dry-run to enqueue them")
    code, out, _ = batuta(*JULIA, "grupos", "revisao")
    assert (code, out.strip()) == (0, "no vacancy awaits review")
    code, out, _ = batuta(*JULIA, "grupos", "revisao", "--status", "descartada", "--json")
    assert (code, json.loads(out)) == (0, {"aguardando": 0, "vagas": []})
    code, out, _ = batuta(*JULIA, "grupos", "fechamentos")
    assert (code, out.strip()) == (0, "no “vacancy taken” message awaits a decision")
    code, _, err = batuta(*JULIA, "grupos", "manter", UNUSED_ID)
    assert code != 0
    assert "batuta grupos fechamentos" in err
    code, _, err = batuta(*JULIA, "grupos", "ver", "nada")
    assert code != 0
    assert "batuta grupos revisao" in err
    names = folder / "nomes.json"
    names.write_text(json.dumps({"hospitais": [{"canonico": "Hospital Inventado", "aliases": ["HI"]}]}))
    code, out, _ = batuta(*JULIA, "grupos", "carregar", str(names))
    assert (code, out.strip()) == (0, "names known now: hospitals 1, specialities 0")
    names.write_text('{"hospitais": [{"nome": "sem canonico"}]}')
    code, _, err = batuta(*JULIA, "grupos", "carregar", str(names))
    assert code == 2
    assert "(hospitais[0].canonico is missing or has the wrong format): docs/grupos.md" in err
    names.write_text("[" * 100_000)
    code, _, err = batuta(*JULIA, "grupos", "carregar", str(names))
    assert (code, "not JSON" in err) == (2, True)


def test_groups_worker_serves_only_the_stages_of_the_pipeline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import app.main
    from app.workers import grupos_worker

    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    app.main._julia.cache_clear()
    try:
        loops = [loop.name for loop, _ in grupos_worker.work._loops_of("worker")]
    finally:
        app.main._julia.cache_clear()
    assert [name for name in loops if name.startswith("worker:")] == [f"worker:{stage}" for stage in Estagio]
    assert "rescuer:pendente" in loops
    assert not [name for name in loops if "fila_mensagens" in name or "campan" in name]


def test_dead_rows_of_a_stage_are_listed_shown_retried_and_discarded(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    asyncio.run(post_one_message())

    def command(*words: str) -> tuple[int, Any]:
        code, out, err = batuta(*JULIA, *words, "--json")
        return code, json.loads(out) if out else err

    def states() -> dict[str, int]:
        (stage,) = [each for each in command("queue", "list")[1]["queues"] if each["queue"] == "extracao"]
        return dict(stage["states"])

    asyncio.run(fail_in_extraction())
    (found,) = [each for each in command("health")[1]["findings"] if each["cause"] == "queue.dead_kept.extracao"]
    assert "batuta queue show extracao" in found["next_step"]
    assert states() == {"erro": 1}
    ready = ("queue", "show", "extracao", "--state", "ready")
    assert command(*ready) == (0, {"queue": "extracao", "items": []})
    (item,) = command("queue", "show", "extracao")[1]["items"]
    assert item["error"] == "no model"
    id = item["id"]
    assert command("queue", "retry", "extracao", id) == (0, {"queue": "extracao", "id": id, "retried": True})
    assert states() == {"extracao": 1}
    assert [each["id"] for each in command(*ready)[1]["items"]] == [id]
    asyncio.run(fail_in_extraction())
    assert command("queue", "discard", "extracao", id) == (0, {"queue": "extracao", "id": id, "discarded": True})
    assert states() == {}


async def post_one_message() -> None:
    from app.main import work

    async with work, work.database.transaction() as transaction:
        now = work.clock.now()
        await julia_of(work).groups.grupos.ensaiar(transaction, "Plantão de pediatria", now.date(), now=now)


async def fail_in_extraction() -> None:
    from app.main import work

    async with work:
        await write(
            work.database,
            "UPDATE fila_processamento_grupos SET estagio = 'erro', ultimo_estagio = 'extracao', ultimo_erro = 'no model',"
            " finished_at = created_at",
        )
