"""Julia's list of jobs: each job has the expected schedule in both timetable profiles, and each scheduled endpoint
exists.
"""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from app.composition.jobs import CATALOGUE, PROFILES, WINDOWS, Entry, timetable
from app.main import build
from app.settings import Settings
from batuta.config import load_settings
from batuta.dispatch.plan import compare
from batuta.engine.batuta import Batuta
from batuta.runlog.log import Controls
from tests import ROOT

# Name and schedule of each job, as in the operators' documents, and the endpoint if it is not the name with hyphens.
CONTINUO = """
heartbeat                       * * * * *
processar_mensagens_agendadas   * * * * *
processar_campanhas_agendadas   * * * * *
processar_grupos                * * * * *
verificar_whatsapp              */5 * * * *
sincronizar_chips               */5 * * * *
validar_telefones               */5 8-19 * * *
processar_handoffs              */10 * * * *
verificar_alertas               */15 * * * *
verificar_alertas_grupos        */15 * * * *
atualizar_trust_scores          */15 * * * *
sincronizar_briefing            0 * * * *
processar_confirmacao_plantao   0 * * * *
oferta_autonoma                 0 * * * *       /jobs/executar-oferta-autonoma
consolidar_metricas_grupos      0 1 * * *
avaliar_conversas_pendentes     0 2 * * *
atualizar_prompt_feedback       0 2 * * 0
doctor_state_manutencao_diaria  0 3 * * *
limpar_grupos_finalizados       0 3 * * *
doctor_state_manutencao_semanal 0 4 * * 1
processar_pausas_expiradas      0 6 * * *
sincronizar_templates           0 6 * * *       /jobs/sync-templates
processar_retomadas             0 8 * * 1-5
report_semanal                  0 9 * * 1
discovery_autonomo              0 9,14 * * 1-5  /jobs/executar-discovery-autonomo
processar_followups             0 10 * * *
reativacao_autonoma             0 10 * * 1      /jobs/executar-reativacao-autonoma
report_manha                    0 10 * * *      /jobs/report-periodo?tipo=manha
feedback_autonomo               0 11 * * *      /jobs/executar-feedback-autonomo
report_fim_dia                  0 20 * * *      /jobs/report-periodo?tipo=fim_dia
snapshot_chips_diario           55 23 * * *
resetar_contadores_chips        5 0 * * *
"""
JANELAS = """
processar_mensagens_agendadas   * * * * *       /jobs/processar-mensagens-agendadas    critico
processar_campanhas_manha       0 10 * * 1-5    /jobs/processar-campanhas-agendadas    campanha
processar_campanhas_tarde       0 14 * * 1-5    /jobs/processar-campanhas-agendadas    campanha
processar_campanhas_fim         0 17 * * 1-5    /jobs/processar-campanhas-agendadas    campanha
processar_followups_manha       0 10 * * 1-5    /jobs/processar-followups              followup
processar_followups_tarde       0 16 * * 1-5    /jobs/processar-followups              followup
verificar_whatsapp              */5 * * * *     /jobs/verificar-whatsapp               monitoramento
verificar_alertas               */30 * * * *    /jobs/verificar-alertas                monitoramento
verificar_alertas_grupos        */30 * * * *    /jobs/verificar-alertas-grupos         monitoramento
processar_grupos                */15 * * * *    /jobs/processar-grupos                 grupos
processar_handoffs              */15 * * * *    /jobs/processar-handoffs               handoff
processar_retomadas             0 8 * * 1-5     /jobs/processar-retomadas              retomada
sincronizar_briefing            0 * * * *       /jobs/sincronizar-briefing             sync
sincronizar_templates           0 6 * * *       /jobs/sync-templates                   sync
doctor_state_manutencao_diaria  0 3 * * *       /jobs/doctor-state-manutencao-diaria   manutencao
avaliar_conversas_pendentes     0 2 * * *       /jobs/avaliar-conversas-pendentes      manutencao
limpar_grupos_finalizados       0 3 * * *       /jobs/limpar-grupos-finalizados        manutencao
consolidar_metricas_grupos      0 1 * * *       /jobs/consolidar-metricas-grupos       manutencao
report_manha                    0 10 * * *      /jobs/report-periodo?tipo=manha        report
report_almoco                   0 13 * * *      /jobs/report-periodo?tipo=almoco       report
report_tarde                    0 17 * * *      /jobs/report-periodo?tipo=tarde        report
report_fim_dia                  0 20 * * *      /jobs/report-periodo?tipo=fim_dia      report
report_semanal                  0 9 * * 1       /jobs/report-semanal                   report
processar_confirmacao_plantao   0 * * * *       /jobs/processar-confirmacao-plantao    confirmacao
"""
UPKEEP = {"limpar_historico", "canario_grupos", "sincronizar_grupos", "limpeza_hospitais", "recovery_vagas_incompletas"}


@pytest.fixture
def work(tmp_path: Path) -> Batuta:
    return build(load_settings(Settings, {"DATABASE_URL": f"sqlite:///{tmp_path}/julia.db"})).work


def lines(text: str) -> list[list[str]]:
    """Split each line into a job's name, its cron expression of five fields, and the remaining words."""
    split = [line.split() for line in text.strip().splitlines()]
    return [[name, " ".join(rest[:5]), *rest[5:]] for name, *rest in split]


def test_profile_continuo_is_the_timetable_of_the_operators_manual() -> None:
    wanted = {
        name: (schedule, rest[0] if rest else f"/jobs/{name.replace('_', '-')}")
        for name, schedule, *rest in lines(CONTINUO)
    }
    found = {job["name"]: (job["schedule"], job["endpoint"]) for job in timetable("continuo")}
    assert {name: each for name, each in found.items() if name not in UPKEEP} == wanted


def test_profile_janelas_is_the_rationalised_one_and_keeps_unmentioned_jobs() -> None:
    found = {job["name"]: (job["schedule"], job["endpoint"], job["categoria"]) for job in timetable("janelas")}
    wanted = {name: (schedule, endpoint, categoria) for name, schedule, endpoint, categoria in lines(JANELAS)}
    assert {name: found.get(name) for name in wanted} == wanted
    unmentioned = (
        {job["name"] for job in timetable("continuo")}
        - set(wanted)
        - {
            "processar_campanhas_agendadas",
            "processar_followups",
        }
    )
    assert set(found) == set(wanted) | unmentioned


def test_list_can_be_imported_as_plain_mappings_and_follows_the_profile(tmp_path: Path) -> None:
    program = (
        "from app.workers.scheduler import JOBS\n"
        "for job in JOBS:\n"
        "    print(f\"{job['name']:40} {job['schedule']:20} {job.get('categoria', 'N/A')}\")\n"
    )
    for profile, name in (("continuo", "processar_campanhas_agendadas"), ("janelas", "processar_campanhas_fim")):
        environment = {**os.environ, "SCHEDULE_PROFILE": profile, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert [line for line in done.stdout.splitlines() if line.startswith(f"{name} ")]
        assert len(done.stdout.splitlines()) == len(timetable(profile))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("module", "role"),
    [
        ("app.workers", "worker"),
        ("app.workers.fila_worker", "worker"),
        ("app.workers.grupos_worker", "worker"),
        ("app.workers.scheduler", "scheduler"),
    ],
)
def test_module_starts_its_role(tmp_path: Path, module: str, role: str) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "DATABASE_URL": f"sqlite:///{tmp_path}/a.db"}
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"batuta {role}" in done.stdout


def test_list_follows_the_profile_that_an_operator_chose(tmp_path: Path, julia_url: str) -> None:
    environment = {
        **os.environ, "SCHEDULE_PROFILE": "continuo", "DATABASE_URL": julia_url,
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }  # fmt: skip

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    choose = "import sys; from batuta.cli import main; sys.exit(main(['--app', 'app.main:work', *sys.argv[1:]]))"
    run("-c", choose, "schedule", "use", "janelas")
    program = "from app.workers.scheduler import JOBS; print(*(job['name'] for job in JOBS))"
    assert "processar_campanhas_fim" in run("-c", program)


def test_sla_of_a_job_of_the_day_is_25_hours(work: Batuta) -> None:
    of = {job.name: job.sla for job in work.registry}
    assert of["discovery_autonomo"] == of["report_manha"] == timedelta(hours=25)


def test_every_scheduled_endpoint_exists_and_handlers_are_scheduled_or_manual(work: Batuta) -> None:
    scheduled = {entry.path.removeprefix("/jobs/").partition("?")[0] for entry in CATALOGUE}
    assert scheduled == {endpoint.name for endpoint in work.endpoints if not endpoint.manual}


def test_job_without_a_handler_is_marked(work: Batuta) -> None:
    finished = {job.name for job in work.registry if job.finished}
    assert {"heartbeat", "limpar_historico", "processar_confirmacao_plantao"} <= finished
    for job in work.registry:
        endpoint = work.endpoints.find(job.target.address.removeprefix("/jobs/").partition("?")[0])
        assert endpoint is not None
        assert endpoint.finished is job.finished


def test_critical_jobs_are_the_indispensable_ones() -> None:
    assert {entry.name for entry in CATALOGUE if entry.critical} == {
        "processar_mensagens_agendadas",
        "processar_campanhas_agendadas",
        "processar_campanhas_manha",
        "processar_campanhas_tarde",
        "processar_campanhas_fim",
        "verificar_whatsapp",
        "processar_grupos",
    }


def test_windowed_job_is_scheduled_when_its_window_opens() -> None:
    windowed = [entry for entry in CATALOGUE if entry.window is not None]
    assert {entry.window for entry in windowed} == set(WINDOWS)
    for entry in windowed:
        assert entry.window is not None
        assert entry.janelas == WINDOWS[entry.window].cron


def test_every_autonomous_trigger_needs_pilot_mode_off_and_its_own_flag(work: Batuta) -> None:
    triggers = [job for job in work.registry if job.category == "gatilho"]
    assert len({job.name for job in triggers}) == 5
    for job in triggers:
        assert job.autonomous
        assert [(rule.key == "pilot_mode", rule.hold_when) for rule in job.holds] == [(True, True), (False, False)]
    assert {job.name for job in work.registry if job.autonomous} == {job.name for job in triggers}


def test_profile_janelas_halves_the_runs_of_the_changed_jobs(work: Batuta) -> None:
    before, after = (list(work.registry.timetable(Controls(profile=profile)).values()) for profile in PROFILES)
    found = compare(before, after)
    assert found.changed.reduction >= 0.5
    assert found.all.reduction == pytest.approx(0.42, abs=0.01)
    assert {change.job for change in found.per_job} == {
        "processar_campanhas_agendadas",
        "processar_followups",
        "processar_grupos",
        "verificar_alertas",
        "verificar_alertas_grupos",
        "processar_handoffs",
        "report_almoco",
        "report_tarde",
    }
    hourly = sum(change.before for change in found.per_hour)
    assert hourly == pytest.approx(found.all.before)


def test_job_is_added_in_one_line() -> None:
    entry = Entry("meu_novo_job", "sync", "0 * * * *")
    assert (entry.path, entry.schedule("continuo"), entry.schedule("janelas")) == (
        "/jobs/meu-novo-job",
        "0 * * * *",
        "0 * * * *",
    )
