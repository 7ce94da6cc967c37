"""Generated documents match the code, links resolve, and decision records have all their sections."""

import re
import tomllib
from inspect import signature
from pathlib import Path

import pytest

from app.composition.jobs import CATALOGUE
from app.main import build
from app.settings import Settings
from batuta import Batuta
from batuta.config import load_settings
from batuta.jobs import JobOptions
from batuta.runlog.log import Controls
from batuta.stores.sql.database import DIALECTS, Dialect
from scripts import queue_sql, timetable
from scripts.reference import FILE, document
from scripts.sql_layout import layout, tokens

ROOT = Path(__file__).parents[2]
# Names in the five seed documents, except those of examples and of local variables in code sketches.
NAMED_BY_THE_SEEDS = {
    "S0": """
        app/workers/__init__.py app/workers/__main__.py JOBS backfill_extraction.py fila_worker grupos_worker.py
        handoff_processor.py pilot_mode.py PILOT_MODE retomada_fora_horario.py temperature_decay.py RUN_MODE
        scripts/entrypoint.sh Dockerfile app.main:app POST_/jobs/* app/api/routes/jobs.py app/api/routes/health.py APP_ENV
        SUPABASE_PROJECT_REF whats-agents whats-agents-scheduler whats-agents-worker railway uv heartbeat
        processar_mensagens_agendadas processar_campanhas_agendadas processar_grupos verificar_whatsapp sincronizar_chips
        validar_telefones processar_handoffs verificar_alertas verificar_alertas_grupos atualizar_trust_scores
        sincronizar_briefing processar_confirmacao_plantao oferta_autonoma consolidar_metricas_grupos
        avaliar_conversas_pendentes atualizar_prompt_feedback doctor_state_manutencao_diaria limpar_grupos_finalizados
        doctor_state_manutencao_semanal processar_pausas_expiradas sincronizar_templates processar_retomadas report_semanal
        discovery_autonomo processar_followups reativacao_autonoma report_manha feedback_autonomo report_fim_dia
        snapshot_chips_diario resetar_contadores_chips batch_size=200 max_workers=20 35_jobs 300_s /health /health/jobs
        /health/fila /health/grupos /health/alerts /health/score /health/rate-limit /health/chips /health/circuits
        /health/circuits/history job_executions job_name started_at finished_at duration_ms response_code items_processed
        fila_mensagens telefone_destino updated_at grupo_pipeline_fila grupo_id 2_and_25_hours 8_days stale 429
        circuit_open 60_s 0=domingo Hora_atual Executando_job FAIL
    """,
    "S1": """
        categoria docs/jobs-schedule.md processar_campanhas_manha processar_campanhas_tarde processar_campanhas_fim
        processar_followups_manha processar_followups_tarde report_almoco report_tarde executed_at 10:00 14:00 17:00 50_% 67_%
    """,
    "S2": """
        app/services/grupos/fila.py app/services/grupos/pipeline_worker.py EstagioPipeline ItemFila PipelineGrupos GruposWorker
        Scheduler fila_processamento_grupos mensagem_id estagio tentativas max_tentativas ultimo_erro proximo_retry
        uq_fila_mensagem idx_fila_estagio idx_fila_proximo_retry enfileirar_mensagem buscar_proximos_pendentes
        atualizar_estagio 1,_5_and_15_minutes THRESHOLD_HEURISTICA THRESHOLD_LLM 0.3 0.7 0.8 processar_pendente
        processar_classificacao processar_extracao processar_normalizacao processar_deduplicacao processar_importacao
        calcular_score_heuristica classificar_com_llm extrair_dados_vaga criar_vaga_grupo normalizar_vaga sem_texto
        heuristica_baixa nao_eh_oferta extracao_falhou processar_ciclo decidir_proximo_estagio batch_size
        intervalo_segundos max_workers /health/grupos-worker health_grupos_worker pendentes travados erros_24h
        tool_reprocessar_fila ultimo_estagio S11.8
    """,
    "S3": """
        shared/watchdog.py LoopWatchdog GlobalHeartbeat telegram_op with_timeout TIMEOUT_TELEGRAM_SEND
        TIMEOUT_TELEGRAM_ENTITY TIMEOUT_TELEGRAM_MEDIA TIMEOUT_DB_OPERATION TIMEOUT_LOOP_CYCLE get_input_entity get_entity
        send_message send_file get_messages _send_telegram_message _send_with_attachments _handle_incoming_message
        _process_history_sync_jobs _sync_loop_safe _outbound_loop_safe _history_sync_loop_safe _message_jobs_loop_safe
        asyncio.gather() register ping _restart_loop get_status max_silence worker_heartbeats worker_id telegram-main
        last_heartbeat_at loops_status last_ping_ago alive 30_s 15_s 120_s
    """,
    "S4": """
        AppointmentService create_appointment import_appointments_from_excel _enqueue_normalization ExcelParserService
        TaskService enqueue_normalization get_job_status WorkerSettings max_jobs job_timeout keep_result max_tries
        normalize_appointment NormalizationStatus normalization_status normalization_job_id normalization_error
        endereco_normalizado documento_normalizado endereco_completo documento_completo cpf rg fields_normalized
        /api/v1/jobs/{job_id}/status enqueue_time start_time finish_time REDIS_URL REDIS_PASSWORD
        ADDRESS_NORMALIZATION_ENABLED DOCUMENT_NORMALIZATION_ENABLED OPENAI_API_KEY ARQ_MAX_JOBS ARQ_JOB_TIMEOUT
        ARQ_KEEP_RESULT 60_s 120_s Job_timeout_exceeded BATCH_SIZE MongoDB React Redis_metrics 3_s
    """,
}


def rows() -> list[list[str]]:
    lines = [line for line in (ROOT / "docs" / "seeds.md").read_text().splitlines() if line.startswith("| S")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_reference_matches_the_code() -> None:
    assert FILE.read_text(encoding="utf-8") == document(), "run `python3 dev.py check --fix`"


def test_schedule_matches_the_catalogue() -> None:
    assert timetable.FILE.read_text(encoding="utf-8") == timetable.document(), "run `python3 dev.py check --fix`"


def test_sql_document_of_the_queue_matches_the_code() -> None:
    assert queue_sql.FILE.read_text(encoding="utf-8") == queue_sql.document(), "run `python3 dev.py check --fix`"


def test_document_has_every_statement_of_a_queue_without_groups() -> None:
    text = queue_sql.document()
    postgres, sqlite = text.split("\n## SQLite\n")
    for name in (
        "claim",
        "settle_and_claim",
        "claim_reversed",
        "settle",
        "put",
        "renew",
        "lapsing",
        "rescue",
        "cancel",
        "pulse",
    ):
        assert f"\n### {name}\n" in postgres
    for name in ("pick", "take", "taken", "settle", "put", "renew", "lapsing", "rescue", "cancel", "pulse", "mark"):
        assert f"\n### {name}\n" in sqlite
    assert "group" not in re.sub("GROUP BY|groups|json_group_array", "", text)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_layout_of_a_statement_changes_white_space_only(dialect: Dialect) -> None:
    for query in queue_sql.queries(dialect):
        assert [each.text for each in tokens(layout(query.text))] == [each.text for each in tokens(query.text)]


def test_every_name_of_the_source_documents_is_mapped() -> None:
    missing = {}
    for source, names in NAMED_BY_THE_SEEDS.items():
        mapped = " ".join(row[1] for row in rows() if source in f"{row[0]} {row[1]}")
        missing[source] = [
            name for name in names.split() if name not in mapped and name.replace("_", " ") not in mapped
        ]
    assert not any(missing.values()), missing
    assert {row[0] for row in rows()} == set(NAMED_BY_THE_SEEDS)


def test_place_marked_built_exists_and_an_unbuilt_interface_has_no_place() -> None:
    for _, names, places, state in rows():
        paths = re.findall(r"`([^`]+)`", places)
        assert state.startswith(("built", "not yet")), names
        assert bool(paths) == state.startswith("built"), names
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_defect_of_the_earlier_system_has_a_test_that_exists() -> None:
    named = re.findall(r"`(tests/[^`]+\.py)::(test_\w+)`", (ROOT / "docs" / "seeds.md").read_text())
    assert len(named) > 40
    assert [f"{file}::{test}" for file, test in named if f"def {test}(" not in (ROOT / file).read_text()] == []


def test_readme_begins_with_the_two_commands_and_its_links_resolve() -> None:
    readme = (ROOT / "README.md").read_text()
    for command in ("make run", "make test", "python3 dev.py run", "python3 dev.py test"):
        assert command in readme
    assert max(readme.index("make run"), readme.index("make test")) < 800  # on the first screen
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", readme) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("file", sorted((ROOT / "docs").rglob("*.md")), ids=lambda file: file.name)
def test_links_between_documents_resolve(file: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", file.read_text()) if "://" not in link]
    assert [link for link in links if not (file.parent / link).exists()] == []


def test_links_to_sections_lead_to_a_heading() -> None:
    documents = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        ROOT / "SECURITY.md",
        ROOT / "app" / "README.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
    links = [
        (file, *link) for file in documents for link in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", file.read_text("utf-8"))
    ]
    assert links
    assert [
        f"{file.name}: {target}#{section}"
        for file, target, section in links
        if section not in anchors((file.parent / target) if target else file)
    ] == []


def anchors(file: Path) -> set[str]:
    """Return the anchors that GitHub generates for the headings of a file."""
    text = re.sub(r"^```.*?^```$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_picture_is_shown_and_small() -> None:
    shown = {
        link.rpartition("/")[2]
        for file in (ROOT / "README.md", ROOT / "app" / "README.md", *(ROOT / "docs").rglob("*.md"))
        for link in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", file.read_text(encoding="utf-8"))
    }
    pictures = {file.name: file.stat().st_size for file in (ROOT / "docs" / "pictures").iterdir()}
    assert pictures.keys() == shown
    assert max(pictures.values()) < 250_000


@pytest.mark.parametrize(
    ("document", "heading", "options"),
    [
        (
            "scheduler.md",
            "## Options of a job",
            {*JobOptions.__annotations__, *signature(Batuta.job).parameters} - {"self", "schedule", "options"},
        ),
        ("lifecycle.md", "## Tasks", {*signature(Batuta.task).parameters} - {"self", "bare", "name"}),
        ("supervision.md", "## Loops", {*signature(Batuta.loop).parameters} - {"self", "name"}),
    ],
)
def test_table_lists_every_option(document: str, heading: str, options: set[str]) -> None:
    section = (
        (ROOT / "docs" / document).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    )
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == options


def test_every_job_of_julia_has_a_handler_and_the_documents_state_the_number() -> None:
    registry = build(load_settings(Settings, {})).work.registry
    jobs = list(registry.timetable(Controls(profile="continuo")).values())
    assert [job.name for job in jobs if not job.finished] == []
    stated = {
        "app/README.md": f"All {len(jobs)} jobs of the [timetable](../docs/jobs-schedule.md) have a handler",
        "docs/seeds.md": f"{len(jobs)} of {len(jobs)} jobs have a handler",
    }
    assert [name for name, text in stated.items() if text not in (ROOT / name).read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("name", ["operations.md", "operacao.md"])
def test_manual_says_how_each_job_runs_by_hand_and_what_to_do_if_it_fails(name: str) -> None:
    section = re.split(
        r"^#### .* (?:by hand|manualmente)\b.*$", (ROOT / "docs" / name).read_text(), flags=re.MULTILINE
    )[1]
    rows = [line.split("|")[1] for line in section.partition("\n### ")[0].splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", "".join(rows))) == sorted(entry.name for entry in CATALOGUE)


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))


@pytest.mark.parametrize("file", DECISIONS, ids=lambda file: file.name)
def test_decision_has_a_date_a_status_and_its_three_sections(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    status = r"Date: \d{4}-\d\d-\d\d\. Status: (accepted|superseded by \[\d+\]\(\d{4}-[\w-]+\.md\))\."
    assert re.match(rf"# {int(file.name[:4])}\. [^\n]+\n\n{status}\n", text)
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]


def test_index_lists_every_decision_with_its_title_and_date() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    for file in DECISIONS:
        title, _, stated = file.read_text(encoding="utf-8").splitlines()[:3]
        number, _, name = title.removeprefix("# ").partition(". ")
        date, _, status = stated.removeprefix("Date: ").partition(". Status: ")
        row = rf"^\| \[{number}\]\({file.name}\) \| {re.escape(name)} \| {date} \| {re.escape(status.rstrip('.'))} \| [\w, ]+ \|$"
        assert re.search(row, index, re.MULTILINE), file.name


def test_index_of_documents_links_to_every_document() -> None:
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\(([^)#]+)\)", (docs / "README.md").read_text(encoding="utf-8")))
    existing = {file.relative_to(docs).as_posix() for file in docs.rglob("*.md") if file.parent.name != "decisions"} | {
        "decisions/README.md"
    }
    assert existing - linked == {"README.md"}


def test_table_of_contexts_has_the_order_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    [layers] = [each["layers"] for each in contracts if each.get("containers") == ["app.contexts"]]
    section = (ROOT / "app/README.md").read_text(encoding="utf-8").partition("### Contexts")[2].partition("### ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == re.findall(r"\w+", " ".join(layers))


@pytest.mark.parametrize(("english", "portuguese"), [("operations.md", "operacao.md"), ("operate.md", "operar.md")])
def test_both_languages_of_a_manual_name_the_same_commands_and_settings(english: str, portuguese: str) -> None:
    def words(name: str) -> set[str]:
        commands = r"`((?:batuta|make|GET|POST|docker|python3) [^`\n]*|[A-Z][A-Z_]+(?:=[^`\n]*)?)`"
        return set(re.findall(commands, (ROOT / "docs" / name).read_text()))

    def in_english(command: str) -> str:
        placeholders = {"NOME": "NAME", "ARQUIVO": "FILE", "INSTANCIA": "INSTANCE", "ANTIGA": "OLD", "NOVA": "NEW"}
        values = {
            "--status erro": "--status error",
            "--status ativo": "--status active",
            "--state aguardando": "--state ready",
            "--scope ler": "--scope read",
            "--role operador": "--role operator",
            "--scope dados-pessoais": "--scope pii",
            "--com uma-pessoa": "--com human",
            "--permissao em-descanso": "--permissao cooling_off",
            "--ciclo perdido": "--ciclo churned",
            "--ciclo qualificado": "--ciclo qualified",
            "--leitura falhou": "--leitura failed",
            "--tipo escuta": "--tipo listener",
            "05/01/2026": "2026-01-05",
            "11/03/2026": "2026-03-11",
            "01/01/2026": "2026-01-01",
            "31/01/2026": "2026-01-31",
            "11/03/2030": "2030-03-11",
            "11/03/2099": "2099-03-11",
        }
        known = placeholders | values
        return re.sub(rf"(?<!\w)({'|'.join(known)})\b", lambda found: known[found[0]], command)

    only_portuguese = {"BATUTA_LANG=pt-BR", "batuta --lang pt-BR …"}
    assert len(words(english)) > 15
    assert words(english) == {in_english(each) for each in words(portuguese) - only_portuguese}


def test_log_lines_that_the_manuals_quote_exist() -> None:
    source = (ROOT / "src" / "batuta" / "logs" / "subscriber.py").read_text(encoding="utf-8")
    manuals = [
        (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("operations", "operacao", "operate", "operar")
    ]
    quoted = {line for text in manuals for line in re.findall(r"`\[(?:WATCHDOG|TIMEOUT)\] ([^`]+)`", text)}
    # Names, durations and states in the quoted line may vary.
    constant = {part.strip(" ;:") for line in quoted for part in re.split(r"…|\bworker\b|\d+ s|\(.*?\)", line)} - {""}
    assert len(constant) > 5
    assert [part for part in constant if part not in source] == []


# Words with which a document says that the program lacks something.
LACK = re.compile(
    r"[^.|\n]*\b(?:not (?:there|implemented|available|supported|possible|built) yet|no \w+ yet|(?:is|are) not implemented"
    r"|ainda não (?:existe|há)|não (?:é|foi|está) implementad[oa])\b",
    re.IGNORECASE,
)
# Places that contain these words although the program lacks nothing, because they define states: the glossaries, the
# reference of the API and one line.
DEFINITIONS = ("docs/gloss", "docs/python.md", "`False`: the handler is not implemented")


def test_documents_deny_only_what_the_program_lacks() -> None:
    folders = (ROOT, ROOT / "app", ROOT / "docs", ROOT / "docs" / "howto")
    said = {
        f"{file.relative_to(ROOT)}: {found[0].strip()}"
        for folder in folders
        for file in folder.glob("*.md")
        for found in LACK.finditer(file.read_text(encoding="utf-8"))
    }
    assert {each for each in said if not any(words in each.lower() for words in map(str.lower, DEFINITIONS))} == set()
    work = build(load_settings(Settings, {})).work
    finished = [name for name, job in work.registry.timetable(Controls()).items() if job.finished]
    assert f"All {len(finished)} jobs" in (ROOT / "app" / "README.md").read_text(encoding="utf-8")
