"""Both of Julia's timetable profiles (continuo and janelas) run on a clock that jumps, in a time zone with clock
changes and in one without. Simulated people answer the messages.

Every fire of every job happens once, the figures that each job reports match the database, and the gateway's own record
contains no message that a rule forbids.

The long form of the test (``FAULTS=long``) simulates two weeks for each profile, zone and database. To save time, jobs
with a fire every minute or every five minutes get a fire every ten minutes instead; all other jobs keep their schedule.

The short form, which is the default, simulates the three days around the clock change. To save time, jobs with a fire
every minute, every few minutes or some minutes after each hour get a fire every six hours instead. The short form also
omits two thirds of the doctors and the profile continuo in São Paulo, and it runs each case on only one database.

The clock skips minutes in which no job fires. `make demo` plays a day of the profile janelas with every minute. Only
the long form reaches second follow-ups. Neither form reaches the end of the pause after the third follow-up, which
comes after 82 days.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.composition import jobs
from app.composition.jobs import SAME, Entry, Profile
from tests.end_to_end.population import EVERY_NUMBER, Office, Population, office_of
from tests.faults.figures import LONG, Figures, kind
from tests.faults.harness import logged
from tests.judges.evidence import Receipt, Rules, Status, Target
from tests.judges.scheduler import Verdict, judge
from tests.julia.tables import one, rows
from tests.oracles import cron_fires

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
STATUS: dict[str, Status] = {"ok": "success", "partial": "success", "skipped": "skipped", "error": "error"}
PEOPLE = 40 if LONG else 12
ANSWERS = ("resposta", "recebimento", "retomada")


@dataclass(frozen=True, slots=True)
class Case:
    """A timetable profile in a time zone. The simulated two weeks start on ``monday``. If the zone changes its clocks
    in these weeks, it does so on the first Sunday.
    """

    profile: Profile
    place: str
    monday: datetime

    def __str__(self) -> str:
        return f"{self.profile}-{self.place}"

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.place)

    @property
    def starts(self) -> datetime:
        day = self.monday if LONG else self.monday + 4 * DAY
        return day.replace(hour=7, minute=30, tzinfo=self.zone).astimezone(UTC)

    @property
    def ends(self) -> datetime:
        day = self.monday + (14 if LONG else 7) * DAY
        return day.replace(hour=11, minute=10, tzinfo=self.zone).astimezone(UTC)

    def expected(self) -> Iterator[Target]:
        """Compute every fire after the start without using the scheduler's code."""
        for entry in jobs.CATALOGUE:
            if (schedule := entry.schedule(self.profile)) is not None:
                for at in cron_fires(schedule, self.zone, self.starts + MINUTE, self.ends):
                    yield Target(entry.name, at.astimezone(UTC))


AUTUMN, SPRING = datetime(2026, 10, 26), datetime(2026, 3, 2)
CASES = [
    Case("continuo", "America/New_York", AUTUMN),
    Case("janelas", "America/New_York", SPRING),
    Case("janelas", "America/Sao_Paulo", AUTUMN),
    Case("continuo", "America/Sao_Paulo", AUTUMN),
]
BOTH = ["sqlite", "postgres"]
# The cases of the short form, each with its database.
SHORT = [(CASES[0], "sqlite"), (CASES[1], "postgres"), (CASES[2], "sqlite")]
RUNS = [(case, kind) for case in CASES for kind in BOTH] if LONG else SHORT
CANARY = "(SELECT id FROM grupos_whatsapp WHERE tipo = 'canario')"
# For a job, a figure in its results, and the table of the rows that it created. The sum of the figure over all runs
# must equal the number of rows.
FIGURES = (
    ("processar_followups%", "enfileirados", "fila_mensagens WHERE tipo LIKE 'followup_%'"),
    ("processar_pausas_expiradas", "reativadas", "conversations WHERE stage = 'recontato'"),
    ("discovery_autonomo", "enfileirados", "gatilhos_contatos WHERE gatilho = 'discovery_autonomo'"),
    ("reativacao_autonoma", "enfileirados", "gatilhos_contatos WHERE gatilho = 'reativacao_autonoma'"),
    ("feedback_autonomo", "enfileirados", "gatilhos_contatos WHERE gatilho = 'feedback_autonomo'"),
    ("oferta_autonoma", "ofertas_enfileiradas", "vagas_ofertas WHERE por = 'oferta_autonoma'"),
    ("recovery_vagas_incompletas", "dms_enfileirados", "fila_mensagens WHERE tipo = 'recuperacao'"),
    ("processar_campanhas%", "iniciadas", "campanhas WHERE iniciada_em IS NOT NULL"),
    ("processar_campanhas%", "enfileiradas", "fila_mensagens WHERE tipo = 'campanha'"),
    ("processar_handoffs", "lembretes_enfileirados", "fila_mensagens WHERE tipo = 'lembrete_handoff'"),
    ("processar_handoffs", "expirados", "external_handoffs WHERE status = 'expired'"),
    ("processar_handoffs", "encerrados", "external_handoffs WHERE decidido_via = 'vaga'"),
    ("processar_retomadas", "enfileiradas", "fila_mensagens WHERE tipo = 'retomada'"),
    ("processar_confirmacao_plantao", "processadas", "vagas_historico WHERE para = 'pendente_confirmacao'"),
    ("processar_confirmacao_plantao", "vencidas", "vagas_historico WHERE para = 'cancelada' AND de IS NOT NULL"),
    ("validar_telefones", "validados", "clientes WHERE status_telefone = 'validado' AND tipo = 'medico'"),
    ("validar_telefones", "invalidos", "clientes WHERE status_telefone = 'invalido'"),
    (
        "consolidar_metricas_grupos",
        "mensagens_total",
        f"mensagens_grupo WHERE created_at < :midnight AND grupo_id NOT IN {CANARY}",
    ),
    ("canario_grupos", "items", f"mensagens_grupo WHERE grupo_id IN {CANARY}"),
    ("%_chips%", "snapshots_criados", "chip_daily_snapshots"),
    ("doctor_state_%", "expired_cooling_off", "business_events WHERE event_type = 'medico_fim_do_descanso'"),
    ("doctor_state_%", "churned", "business_events WHERE event_type = 'medico_perdido'"),
    ("avaliar_conversas_pendentes", "items", "avaliacoes_qualidade"),
    ("atualizar_prompt_feedback", "items", "prompts"),
    ("sincronizar_%", "documentos aplicados", "briefing_sync_log WHERE resultado = 'aplicado'"),
    ("report_%", "items", "relatorios"),
    ("report_semanal", "semanas", "relatorios WHERE tipo = 'semanal'"),
    (
        "processar_mensagens_agendadas",
        "enviadas",
        "fila_mensagens JOIN job_executions ON enviada_em BETWEEN started_at AND finished_at"
        " WHERE job_name = 'processar_mensagens_agendadas'",
    ),
)


@pytest.mark.timeout(6 * 3600 if LONG else 300)
@pytest.mark.parametrize(("case", "empty_url"), RUNS, indirect=["empty_url"], ids=str)
async def test_every_fire_happens_once_and_figures_match_the_rows(
    case: Case, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "CATALOGUE", tuple(map(_thin, jobs.CATALOGUE)))
    figures = Figures(
        "T47",
        kind(empty_url),
        f"Julia works for two weeks with the timetable `{case.profile}` and {PEOPLE} doctors, in the time zone {case.place}",
    )
    async with office_of(empty_url, case.profile, case.place, case.starts) as office:
        people = Population(office, count=PEOPLE)
        await people.settle_in()
        await office.settle()
        targets = list(case.expected())
        for instant in _instants(case, targets):
            await office.step(instant)
            if instant.minute == 0:
                await people.act()
        verdict = await _judge_fires(office, targets)
        await _compare_figures(office)
        await _judge_campaigns(office)
        sent = await _judge_messages(office, people)
        await _judge_reservations(office)
        figures.record(verdict, f"{len(FIGURES)} figures that jobs reported equal the counted rows; {sent}")


def _thin(entry: Entry) -> Entry:
    """Give a frequent job a schedule with fewer fires, to save time. The short form of the test changes jobs with a
    fire every few minutes or some minutes after each hour, and gives them a fire every six hours. The long form
    (``FAULTS=long``) changes jobs with a fire every minute or every five minutes, and gives them a fire every ten
    minutes.
    """

    def thin(schedule: str | None) -> str | None:
        if schedule is None or schedule == SAME:
            return schedule
        minute, hours, *days = schedule.split()
        if LONG:
            return " ".join(["*/10" if minute in ("*", "*/5") else minute, hours, *days])
        if minute.startswith("*") and hours != "*":
            return " ".join(["0", f"{hours}/6", *days])
        return schedule if minute == "0" or hours != "*" else " ".join(["0", "*/6", *days])

    return replace(entry, continuo=thin(entry.continuo), janelas=thin(entry.janelas))


def _instants(case: Case, targets: list[Target]) -> list[datetime]:
    """Return every minute in which a job fires, and every tenth minute within the sending hours."""
    count = int((case.ends - case.starts) / MINUTE)
    every = [case.starts + n * MINUTE for n in range(1, count + 1)]
    fires = {target.at for target in targets}
    return [at for at in every if at in fires or (at.minute % 10 == 0 and _is_open(at, case.zone))]


def _is_open(at: datetime, zone: ZoneInfo) -> bool:
    local = at.astimezone(zone)
    return local.weekday() < 5 and 8 <= local.hour < 20


async def _judge_fires(office: Office, targets: list[Target]) -> Verdict:
    """Check that the expected fires, the calls that the job endpoints received, and the rows of the execution log
    agree.
    """
    scheduled = "SELECT * FROM job_executions WHERE trigger <> 'manual'"
    found = await rows(office.julia.work.database, scheduled)
    log = [logged(row) for row in found]
    names = {row.id: row.job for row in log}
    paths = {entry.name: entry.path.partition("?")[0] for entry in jobs.CATALOGUE}
    # The scheduler repeats a call that the API refuses with 503 because its database does not answer. No job began.
    calls = [call for call in office.recorder.calls if call.answer["status"] != 503]
    assert [call for call in calls if call.key not in names] == []
    assert [call for call in calls if paths[names[call.key]] != call.path] == []
    receipts = [
        Receipt(names[call.key], call.key, None, 1, call.start, call.end, STATUS[call.answer["status"]])
        for call in calls
    ]
    verdict = judge(targets, receipts, log, Rules(read_at=office.clock.now() + DAY, epsilon=2 * MINUTE))
    assert verdict.ok, str(verdict)
    assert (verdict.served, verdict.missed, verdict.unexplained) == (len(targets), 0, 0), verdict.summary()
    assert sorted((row.job, row.scheduled_for) for row in log) == sorted((each.job, each.at) for each in targets)
    return verdict


async def _compare_figures(office: Office) -> None:
    database, zone = office.julia.work.database, office.julia.work.zone
    midnight = office.clock.now().astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    different = {}
    for job, figure, sql in FIGURES:
        ran = await rows(
            database, "SELECT result, items_processed FROM job_executions WHERE job_name LIKE :job", job=job
        )
        values = {"midnight": midnight} if ":midnight" in sql else {}
        said = sum(_figure(row, figure) for row in ran)
        counted = (await one(database, f"SELECT count(*) AS n FROM {sql}", **values))["n"]
        print(f"{job:32} {figure:24} {said:5} {counted:5}")
        if said != counted:
            different[job, figure] = (said, counted)
    assert different == {}


async def _judge_campaigns(office: Office) -> None:
    """Check that each campaign ended when its last message did, with exactly one event, and that its batch ended
    too.
    """
    database = office.julia.work.database
    concluded = await rows(database, "SELECT id, lote_id FROM campanhas WHERE status = 'concluida'")
    events = await rows(database, "SELECT event_props FROM business_events WHERE event_type = 'campanha_concluida'")
    ended = await rows(database, "SELECT id FROM batches WHERE members = 'campanhas' AND ended_at IS NOT NULL")
    left = await rows(
        database,
        "SELECT id FROM campanhas WHERE status = 'ativa' AND enfileirada_em IS NOT NULL AND NOT EXISTS ("
        "SELECT 1 FROM fila_mensagens WHERE campanha_id = campanhas.id"
        " AND (status IN ('pendente', 'processando') OR envio_estado IS NOT NULL))",
    )
    assert left == []  # all their messages have ended
    assert sorted(row["event_props"]["campanha_id"] for row in events) == sorted(row["id"] for row in concluded)
    assert sorted(row["id"] for row in ended) == sorted(row["lote_id"] for row in concluded)


def _figure(row: dict[str, Any], name: str) -> int:
    result = row["result"] or {}
    match name:
        case "items":
            return row["items_processed"] or 0
        case "semanas":
            return int(bool(result.get("id")))
        case "documentos aplicados":
            return sum(each["resultado"] == "aplicado" for each in result.get("documentos", ()))
        case _:
            return int(result.get(name, 0))


async def _judge_messages(office: Office, people: Population) -> str:
    """Check the messages in the gateway's record. The database only supplies the type and the key of each message."""
    found = await rows(
        office.julia.work.database,
        "SELECT provider_message_id AS id, tipo, chave FROM fila_mensagens WHERE status = 'enviada'",
    )
    tipos = {row["id"]: row["tipo"] for row in found}
    keys = {row["id"]: row["chave"] for row in found}
    receipts = await office.receipts()
    assert sorted(receipt["id"] for receipt in receipts) == sorted(tipos)
    ours = [receipt for receipt in receipts if tipos[receipt["id"]] not in ANSWERS]
    # Two shifts of a doctor on one day have the same text; their keys differ.
    texts = [(receipt["number"], receipt["text"], keys[receipt["id"]] or "") for receipt in ours]
    assert sorted(set(texts)) == sorted(texts), "a message was sent twice"
    zone = office.julia.work.zone
    late = [each for each in ours if not _is_open(datetime.fromisoformat(each["at"]), zone)]
    assert late == [], "a message was sent outside the sending hours"
    wrong = [
        (each, since, until)
        for number, since, until in people.forbidden
        for each in ours
        if number in (EVERY_NUMBER, each["number"]) and since <= datetime.fromisoformat(each["at"]) < until
    ]
    assert wrong == [], (
        "a message was sent after an opt-out, in a rest or a pause, or while a person is handling the conversation"
    )
    return (
        f"messages sent: {len(receipts)}, of which {len(ours)} on Julia's initiative;"
        f" messages in the {len(people.forbidden)} forbidden periods: 0"
    )


async def _judge_reservations(office: Office) -> None:
    reserved = await rows(
        office.julia.work.database,
        "SELECT vaga_id, ordem, de, para, cliente_id FROM vagas_historico ORDER BY vaga_id, ordem",
    )
    twice = [row for row in reserved if row["para"] == "reservada" and row["de"] in ("reservada", "realizada")]
    assert twice == []
    assert any(row["para"] == "reservada" for row in reserved)
