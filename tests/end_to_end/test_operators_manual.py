"""Every command and HTTP call in the operations manuals works on a database with synthetic rows."""

import asyncio
import io
import os
import re
import shlex
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

import app.main
from app.composition.julia import julia_of
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.cli import main
from batuta.kernel.clock import SystemClock
from batuta.processes.address import listen
from batuta.web.api import serve
from simulador.main import create_app as create_simulator
from simulador.telegram.api import create_app as create_telegram
from simulador.telegram.mundo import LOGIN_CODE
from tests.command import Command
from tests.julia.filled import fill_office
from tests.julia.grupos.bancada import bancada
from tests.julia.tables import one, write
from tests.servers import free_port

ROOT = Path(__file__).parents[2]
MANUALS = (
    "docs/operations.md",
    "docs/operacao.md",
    "docs/grupos.md",
    "docs/agendamentos.md",
    "docs/conversas.md",
    "docs/gatilhos.md",
    "docs/lgpd.md",
    "docs/medicos.md",
    "docs/vagas.md",
)
PORTUGUESE = "docs/operacao.md"
# Commands that run until a signal ends them. tests/faults starts them; here only their options are checked.
PROCESSES = {"api", "scheduler", "worker", "up"}
# Commands that other tests run, or that need a machine of the operator.
ELSEWHERE = {
    "batuta configurar-webhook INSTANCE": "test_whatsapp_commands.py runs it with a gateway",
    "batuta configurar-webhook INSTANCIA": "the same command in the Portuguese manual",
    "batuta queue show central_fila": "needs Chatwoot; tests/julia/equipe mirrors conversations to it",
    "batuta queue retry central_fila ID": "needs Chatwoot; tests/julia/equipe mirrors conversations to it",
    "batuta vagas realizada ID": "needs a shift that has ended; tests/julia/plantoes confirms one",
    "batuta keys rotate": "needs keys; tests/engine/cli/test_keys.py runs it",
    "batuta batches close ID": "needs an open batch; tests/engine/cli/test_batches.py closes one",
}
# Accepted exit codes of commands that judge the system. The database of these tests has no process with heartbeats.
CODES = {"health": {0, 1}, "doctor": {0, 1}}
DEAD, PARKED, QUESTION, PENDING, TALK, REPORT, SCORED, HANDOFF = (str(UUID(int=n)) for n in (1, 2, 4, 5, 6, 8, 10, 11))
# Values for placeholders in capitals and for ids, by the beginning of the command. The longest match applies.
PLACEHOLDERS: Mapping[str, Mapping[str, str]] = {
    "batuta": {
        "FILE": "copy.batuta",
        "NAME": "limpar_historico",
        "INSTANCE": "julia-sim",
        "ARQUIVO": "copy.batuta",
        "NOME": "limpar_historico",
        "INSTANCIA": "julia-sim",
    },
    "batuta campanhas agendar": {"7": "1"},
    "batuta campanhas": {"7": "2"},
    "batuta queue": {"ID": DEAD, "X": "antiga", "Y": "agendamentos"},
    "batuta decidir": {"ID": PARKED},
    "batuta conversas": {"ID": QUESTION, "CONVERSA": TALK},
    "batuta followups": {"CONVERSA": TALK, "DIA": "{day}"},
    "batuta conversas resolver": {"ID": PENDING},
    "batuta grupos": {"ID": "{review}", "AVISO": "{notice}", "VAGA": "{vacancy}", "AUTOR": "{author}"},
    "batuta handoffs": {"HANDOFF": HANDOFF, "ID": "{vacancy}", "MEDICO": "{doctor}"},
    "batuta agendamentos": {"ID": "{appointment}"},
    "batuta agendamentos importacoes": {"ID": "{import}"},
    "batuta batches": {"ID": "{import}"},
    "batuta relatorios": {"ID": REPORT},
    "batuta qualidade": {"ID": SCORED},
    "batuta medicos": {"MEDICO": "{doctor}"},
    "batuta lgpd": {"5511900000001": "{doctor}"},
    "batuta token": {"ID": "{token}"},
    "batuta vagas": {"ID": "{vacancy}", "MEDICO": "{doctor}", "DIA": "{day}"},
}
# The switch of each job that acts without an operator.
TRIGGERS = {
    "recovery_vagas_incompletas": "recuperacao_automatica_enabled",
    "discovery_autonomo": "discovery_automatico_enabled",
    "oferta_autonoma": "oferta_automatica_enabled",
    "reativacao_autonoma": "reativacao_automatica_enabled",
    "feedback_autonomo": "feedback_automatico_enabled",
}
# Commands that must run before a command.
FIRST: Mapping[str, tuple[str, ...]] = {
    "batuta campanhas retomar": ("batuta campanhas pausar 2",),
    "batuta grupos liberar": ("batuta grupos bloquear {review}",),
    "batuta grupos nomes": ('batuta grupos aprovar {review} --hospital "Hospital Inventado"',),
    "batuta grupos esquecer": ('batuta grupos aprovar {review} --hospital "Hospital Inventado"',),
    "batuta conversas devolver": ("batuta conversas assumir CONVERSA --motivo teste",),
    "batuta vagas liberar": ("batuta vagas reservar ID --medico MEDICO",),
    **{
        f"batuta run {job}": (
            "batuta switch off pilot_mode --reason teste",
            f"batuta switch on {switch} --reason teste",
        )
        for job, switch in TRIGGERS.items()
    },
    "batuta lgpd apagar": (f"batuta decidir {PARKED} nao-enviada",),
    "batuta restore": ("batuta backup copy.batuta", "batuta backup backups/julia.batuta"),
}
OFFER = "Plantão de pediatria no Hospital Fictício, dia {day}, noturno, R$ 1.500"
UNCERTAIN = "Vaga de pediatria\nLocal: Vila Inventada\n{day} SN, R$ 1.500"
AGENDA = (
    "Nome do Paciente;Data;Hora;Unidade;Endereço Completo;Documento Completo\n"
    "Paciente Fictício;11/03/2026;09:30;Unidade Teste;Rua Fictícia, 1, Centro, Campinas SP;CPF 529.982.247-25\n"
)


MESSAGE = (
    '{"id": "1", "texto": "Plantão amanhã, Hospital Teste, 19h às 7h", "enviado_em": "2026-03-02T09:00:00-03:00"}\n'
)
_DEAD_DELIVERY = """
    INSERT INTO webhook_inbox (id, canal, chave, instance_name, evento, payload, status, available_at, erro,
                               created_at, finished_at)
    VALUES (:id, 'evolution', 'chave', 'julia-sim', 'messages.upsert', '{}', 'erro', :now, 'unreadable', :now, :now)
"""
_PARKED_MESSAGE = """
    INSERT INTO fila_mensagens (id, cliente_id, telefone_destino, conteudo, agendar_para, envio_estado, envio_desde, created_at)
    SELECT :id, id, telefone, 'Olá', :now, 'parked', :now, :now FROM clientes WHERE telefone = :phone
"""
_OPEN_QUESTION = """
    INSERT INTO optouts_provaveis (id, telefone, telefone_chave, provider_message_id, regra, created_at)
    VALUES (:id, '5511900000099', '551190000099', '3EB0', 'irritacao', :now)
"""
_PENDING = """
    INSERT INTO pendencias (id, quem, telefone, provider_message_id, motivo, ultima_em, created_at)
    VALUES (:id, '551190000098', '5511900000098', '3EB1', 'sem_resposta', :now, :now)
"""
_REPORT = """
    INSERT INTO relatorios (id, tipo, inicio, fim, metricas, destaques, por, created_at)
    VALUES (:id, 'manha', :now, :until, :figures, '[]', 'teste', :now)
"""
_FIGURES = '{"periodo": {"enviadas": 0, "recebidas": 0, "plantoes_reservados": 0, "medicos_contatados": 0}}'
_BRIEFING = """
    INSERT INTO briefing_sync_log
        (id, documento, origem, doc_title, doc_hash, conteudo_raw, parseado, avisos, resultado, created_at)
    VALUES (:id, 'briefing', 'pasta', 'briefing.md', 'x', '# Foco', '{}', '[]', 'aplicado', :now)
"""
_DIRECTIVE = """
    INSERT INTO diretrizes (id, tipo, versao, conteudo, prioridade, sync_id, documento, created_at)
    VALUES (:id, 'foco_semana', 1, '["Pediatria"]', 1, :id, 'briefing', :now)
"""
_TALK = """
    INSERT INTO conversations (id, cliente_id, created_at, updated_at)
    SELECT :id, id, :now, :now FROM clientes WHERE telefone = :phone
"""
_EVALUATION = """
    INSERT INTO avaliacoes_qualidade
        (id, conversa_id, avaliador, score_geral, positivos, negativos, sugestoes, mensagens, created_at)
    VALUES (:id, :talk, 'regras', 6, '[]', '[]', '[]', 2, :now)
"""
_HELD_VACANCY = """
    INSERT INTO vagas
        (id, hospital_id, especialidade_id, data, hora_inicio, status, origem, contato_whatsapp, created_at, updated_at)
    SELECT :id, hospital_id, especialidade_id, data, '19:00', 'aguardando_confirmacao', origem, '5511900000097', :now, :now
    FROM vagas WHERE status = 'aberta'
"""
_HANDOFF = """
    INSERT INTO external_handoffs
        (id, vaga_id, cliente_id, divulgador_id, status, reserved_until, mensagem_id, contatado_em, created_at, updated_at)
    SELECT :id, :id, one.id, other.id, 'contacted', :until, :message, :now, :now, :now
    FROM clientes AS one, clientes AS other WHERE one.telefone = '5511900001002' AND other.telefone = '5511900001003'
"""
_FIRST_LINE = """
    INSERT INTO {table} ({column}, ordem, para, por, motivo, em) VALUES (:id, 1, 'aguardando_confirmacao', 'teste', '-', :now)
"""
_DEAD_NOTICE = """
    INSERT INTO avisos_equipe (id, chave, destino, motivo, status, available_at, created_at, finished_at)
    VALUES (:id, 'slack:x', 'slack', 'sem_resposta', 'erro', :now, :now, :now)
"""
_ACCOUNT = """
    INSERT INTO telegram_contas (id, nome, created_at, updated_at) VALUES (:id, 'julia-telegram', :now, :now)
"""
_ORPHAN_TASK = """
    INSERT INTO tasks (id, queue, name, args, available_at, created_at) VALUES (:id, 'antiga', 'sumiu', '{}', :now, :now)
"""


def code(text: str) -> list[str]:
    """Return the inline code and the lines of shell blocks, without comments and duplicates."""
    blocks = re.findall(r"```(?:sh)?\n(batuta .*?)```", text, re.DOTALL)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return list(dict.fromkeys([*lines, *spans]))


def manual(prefix: str) -> list[str]:
    found = [each for name in MANUALS for each in code((ROOT / name).read_text(encoding="utf-8"))]
    return [each for each in dict.fromkeys(found) if each.startswith(f"{prefix} ")]


def language_of(command: str) -> str:
    """Return the language of the manual that contains this command. Some option values in the command are words of that
    language.
    """
    is_shared = any(
        command in code((ROOT / name).read_text(encoding="utf-8")) for name in MANUALS if name != PORTUGUESE
    )
    return "en" if is_shared else "pt-BR"


def longest(table: Mapping[str, object], command: str) -> list[str]:
    """Return the keys of ``table`` that the command starts with, longest first."""
    return sorted((key for key in table if command.startswith(key)), key=len, reverse=True)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with Julia's database and sample files, and a mapping from each placeholder in the manuals to the id of
    a row.
    """
    folder = tmp_path_factory.mktemp("manual")
    (folder / "agenda.csv").write_text(AGENDA, encoding="utf-8")
    (folder / "mensagens.jsonl").write_text(MESSAGE, encoding="utf-8")
    (folder / "medicos.csv").write_text("telefone;nome\n11 90000-9001;Pessoa Fictícia\n", encoding="utf-8")
    (folder / "escala.pdf").write_bytes(b"%PDF-1.7 synthetic")
    (folder / "textos.txt").write_text("me deixa em paz\n", encoding="utf-8")
    shown = re.search(r"```json\n(.*?)```", (ROOT / "docs/grupos.md").read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    (folder / "canonicos.json").write_text(shown[1], encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("DATABASE_URL", "sqlite:///julia.db")
        token = ["token", "create", "--name", "teste", "--role", "admin"]
        for words in (["migrate"], token, ["agendamentos", "importar", "agenda.csv"]):
            app.main._julia.cache_clear()
            assert main(["--app", "app.main:work", *words]) == 0
        asyncio.run(fill_office("sqlite:///julia.db"))
        app.main._julia.cache_clear()
        yield folder, asyncio.run(_fill(f"sqlite:///{folder}/julia.db"))


async def _fill(url: str) -> dict[str, str]:
    clock = SystemClock()
    day = f"{clock.now() + timedelta(days=10):%d/%m}"
    async with bancada(url, clock, leitor=None) as bench:
        for text in (OFFER, UNCERTAIN):
            await bench.dizem(text.format(day=day))
            await bench.trabalha()
        await bench.dizem("Vaga preenchida")
        await bench.trabalha()
        database = bench.work.database
        now = clock.now()
        await write(database, _DEAD_DELIVERY, id=DEAD, now=now)
        await write(database, _DEAD_NOTICE, id=DEAD, now=now)
        await write(database, _PARKED_MESSAGE, id=PARKED, now=now, phone="5511900001001")
        await write(database, _OPEN_QUESTION, id=QUESTION, now=now)
        await write(database, _PENDING, id=PENDING, now=now)
        await write(database, _TALK, id=TALK, now=now, phone="5511900001002")
        await write(database, _REPORT, id=REPORT, now=now, until=now + timedelta(hours=1), figures=_FIGURES)
        await write(database, _EVALUATION, id=SCORED, talk=TALK, now=now)
        await write(database, _BRIEFING, id=str(UUID(int=9)), now=now)
        await write(database, _DIRECTIVE, id=str(UUID(int=9)), now=now)
        await write(database, _HELD_VACANCY, id=HANDOFF, now=now)
        await write(database, _HANDOFF, id=HANDOFF, now=now, until=now + timedelta(days=2), message=PARKED)
        for table, column in (("vagas_historico", "vaga_id"), ("external_handoffs_historico", "handoff_id")):
            await write(database, _FIRST_LINE.format(table=table, column=column), id=HANDOFF, now=now)
        await write(database, _ACCOUNT, id=str(UUID(int=12)), now=now)
        await write(database, _ORPHAN_TASK, id=str(UUID(int=3)), now=now)
        found = {
            "review": "SELECT id FROM vagas_grupo WHERE status = 'aguardando_revisao'",
            "notice": "SELECT id FROM fechamentos_grupo WHERE status = 'aguardando_revisao'",
            "vacancy": "SELECT id FROM vagas WHERE status = 'aberta'",
            "author": "SELECT contato_id AS id FROM mensagens_grupo LIMIT 1",
            "doctor": "SELECT id FROM clientes WHERE telefone = '5511900001001'",
            "appointment": "SELECT id FROM appointments",
            "import": "SELECT id FROM batches",
            "token": "SELECT id FROM api_tokens",
            "job_id": "SELECT normalization_job_id AS id FROM appointments",
        }
        ids = {role: str((await one(database, query))["id"]) for role, query in found.items()}
        return {**ids, "day": f"{clock.now() + timedelta(days=20):%d/%m/%Y}"}


@pytest.fixture
def ids(
    filled: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """Copy the folder ``filled`` for one test, make the copy the working directory, and yield the row ids by
    placeholder.
    """
    folder, found = filled
    shutil.copytree(folder, tmp_path / "work")
    (tmp_path / "work" / "backups").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    monkeypatch.setenv("PORT", str(free_port()))
    monkeypatch.setenv("BATUTA_LANG", "en")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    yield found
    app.main._julia.cache_clear()


def words_of(command: str, ids: Mapping[str, str]) -> list[str]:
    """Return the arguments after `batuta`, with the manual's placeholders replaced by real values."""
    values = {
        key: value for name in reversed(longest(PLACEHOLDERS, command)) for key, value in PLACEHOLDERS[name].items()
    }
    filled = [values.get(word, word) for word in shlex.split(command)[1:]]
    return [ids.get(word.strip("{}"), word) if word.startswith("{") else word for word in filled]


def call(batuta: Command, words: list[str]) -> tuple[int, str, str]:
    app.main._julia.cache_clear()
    return batuta("--app", "app.main:work", *words)


@contextmanager
def served(port: int, make: Callable[[], AbstractAsyncContextManager[Any]]) -> Iterator[None]:
    """Serve an application in a thread while the block runs a command."""
    listening = listen("127.0.0.1", port)
    stopping: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    ready = threading.Event()

    async def run() -> None:
        stop = asyncio.Event()
        async with make() as application:
            stopping.append((asyncio.get_running_loop(), stop))
            ready.set()
            await serve(application, listening, stop, timedelta(seconds=1))

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        loop, stop = stopping[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@contextmanager
def api_for(words: list[str]) -> Iterator[None]:
    """Serve Julia's api at the port PORT while the block runs `batuta run`, which calls it."""

    @asynccontextmanager
    async def api() -> AsyncIterator[Any]:
        async with build(Settings(database_url="sqlite:///julia.db")).work as work:
            yield create_app(julia_of(work))

    with served(int(os.environ["PORT"]), api) if words[0] == "run" else nullcontext():
        yield


@contextmanager
def telegram_for(words: list[str], patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve a simulated Telegram with an account for `batuta telegram login`, and type the answers to the command's
    questions.
    """
    if words[:2] != ["telegram", "login"]:
        yield
        return
    app, port = create_telegram(SystemClock()), free_port()
    mundo = app.state.telegram.mundo
    usuario = mundo.add_person("Conta Fictícia", telefone="5511900000999")
    typed = mundo.open_session(usuario) if "--importar" in words else f"+5511900000999\n{LOGIN_CODE}"
    patch.setenv("TELEGRAM_SIMULADOR_URL", f"http://127.0.0.1:{port}/telegram")
    patch.setenv("TELEGRAM_SESSION_KEYS", "synthetic key")
    patch.setenv("APP_ENV", "development")
    patch.setattr("sys.stdin", io.StringIO(f"{typed}\n"))
    with served(port, lambda: nullcontext(app)):
        yield


@pytest.mark.parametrize("command", manual("batuta"))
def test_command_of_the_manual_works(
    command: str, ids: dict[str, str], batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATUTA_LANG", language_of(command))
    words = words_of(command, ids)
    if words[0] in PROCESSES or words == ["telegram"]:
        words = [words[0], "--help"]
    if command in ELSEWHERE:
        pytest.skip(ELSEWHERE[command])
    for name in longest(FIRST, command):
        for before in FIRST[name]:
            done, _, wrong = call(batuta, words_of(before, ids))
            assert done == 0, wrong
    with api_for(words), telegram_for(words, monkeypatch):
        done, said, wrong = call(batuta, words)
    assert done in CODES.get(words[0], {0}), said + wrong
    assert "Traceback" not in said + wrong
    assert said + wrong


@pytest.fixture
async def client(ids: dict[str, str]) -> AsyncIterator[httpx2.AsyncClient]:
    async with build(Settings(database_url="sqlite:///julia.db")).work as work:
        transport = httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
            yield client


async def test_every_page_of_the_manual_answers(client: httpx2.AsyncClient, ids: dict[str, str]) -> None:
    pages = [each.removeprefix("GET ").replace("/7", "/2").format_map(ids) for each in manual("GET")]
    answers = {page: (await client.get(page)).status_code for page in pages if not page.startswith("/controle/")}
    assert len(answers) > 15
    assert {page: status for page, status in answers.items() if status != 200} == {}


async def test_simulator_answers_the_page_of_the_manual() -> None:
    (page,) = {each.removeprefix("GET ") for each in manual("GET") if "/controle/" in each}
    transport = httpx2.ASGITransport(app=create_simulator(SystemClock(), instances=[]))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8099") as client:
        assert (await client.get(page)).status_code == 200


async def test_every_call_of_the_manual_is_in_the_openapi_document(client: httpx2.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    known = [re.sub(r"\{\w+\}", r"[^/]*", path) for path, methods in paths.items() if "post" in methods]
    calls = [each.removeprefix("POST ").removesuffix("…") for each in manual("POST")]
    assert len(calls) > 3
    assert [call for call in calls if not any(re.fullmatch(path, call) for path in known)] == []


def test_every_setting_of_the_manual_exists() -> None:
    known = set(re.findall(r"`([A-Z][A-Z_]+)`", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")))
    deployed = (ROOT / "compose.yaml").read_text(encoding="utf-8") + (ROOT / "scripts" / "entrypoint.sh").read_text(
        encoding="utf-8"
    )
    named = {
        match[1]
        for name in MANUALS
        for each in code((ROOT / name).read_text(encoding="utf-8"))
        if (match := re.fullmatch(r"([A-Z]+(?:_[A-Z]+)+)(?:=.*)?", each))
    }
    assert len(named) > 20
    assert {each for each in named if each.removesuffix("_FILE") not in known and each not in deployed} == set()
