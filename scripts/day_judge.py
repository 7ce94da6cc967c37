"""Check that a simulated day of the demonstration kept the engine's promises. The receipts come from the simulator. The
expected fires come from a calendar computation that shares no code with the scheduler. All other facts come from the
database rows.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from app.composition.jobs import CATALOGUE
from app.contexts.mensagens.api import TIPOS, Tipo
from batuta.engine.batuta import Batuta
from batuta.stores.sql.queries import in_dialect, query_of
from scripts.office import Plan, office
from simulador.evolution.vida import Receipt
from tests.faults.harness import walked

OPENS, CLOSES = time(8), time(20)
PAUSED = (time(15, 1), time(15, 30))
OPTED_OUT = time(9, 40)
REPORTS = {"manha": 10, "almoco": 13, "tarde": 17, "fim_dia": 20}  # hour at which each report is created
Facts = list[tuple[str, dict[str, object]]]


@dataclass(frozen=True)
class Evidence:
    starts: datetime
    ends: datetime
    receipts: Sequence[Receipt]
    opted_out: str
    runs: Sequence[dict[str, Any]]
    messages: Sequence[dict[str, Any]]
    shifts: Sequence[dict[str, Any]]
    history: Sequence[dict[str, Any]]
    reports: Sequence[dict[str, Any]]

    @property
    def zone(self) -> ZoneInfo:
        zone = self.starts.tzinfo
        assert isinstance(zone, ZoneInfo)
        return zone


async def judge_day(
    plan: Plan, span: tuple[datetime, datetime], receipts: Sequence[Receipt], opted_out: str
) -> tuple[list[str], Facts]:
    """Check a simulated day. Return a sentence for each promise that the engine broke, and the figures of the day."""
    work, _ = office(plan)
    async with work:
        evidence = Evidence(
            *span, receipts, opted_out,
            await _read(work, "SELECT job_name, scheduled_for, trigger, status, error FROM job_executions"),
            await _read(work, "SELECT id, tipo, status, envio_estado, provider_message_id FROM fila_mensagens"),
            await _read(work, "SELECT id, status FROM vagas"),
            await _read(work, "SELECT vaga_id, ordem, de, para FROM vagas_historico ORDER BY vaga_id, ordem"),
            await _read(work, "SELECT tipo FROM relatorios"),
        )  # fmt: skip
    return broken_promises(evidence), _figures(evidence)


def broken_promises(evidence: Evidence) -> list[str]:
    return [*_schedule(evidence), *_messages(evidence), *_vacancies(evidence), *_reports(evidence)]


async def _read(work: Batuta, sql: str) -> list[dict[str, Any]]:
    query = in_dialect(query_of("demo", sql, writes=False), work.database.dialect)
    return [dict(row) for row in await work.database.all(query)]


def _schedule(evidence: Evidence) -> Iterator[str]:
    """Yield the broken promises about the schedule: every fire of the day must have one row, and every row must belong
    to a fire.
    """
    begins, ends = evidence.starts, evidence.ends
    fires = Counter(
        (entry.name, fire)
        for entry in CATALOGUE
        if (schedule := entry.schedule("janelas")) is not None
        for fire in walked(schedule, evidence.zone, begins, ends)
        if begins < fire < ends
    )
    rows = Counter(
        (row["job_name"], row["scheduled_for"])
        for row in evidence.runs
        if row["trigger"] != "manual" and begins < row["scheduled_for"] < ends
    )
    for (job, fire), count in (fires - rows).items():
        yield f"{job}: {count} fire of {fire.astimezone(evidence.zone):%H:%M} has no row"
    for (job, fire), count in (rows - fires).items():
        yield f"{job}: {count} row too many for {fire.astimezone(evidence.zone):%H:%M}"
    for row in evidence.runs:
        if row["status"] in ("error", "abandoned", "missed", "running"):
            yield f"{row['job_name']}: the run of {row['scheduled_for']} is {row['status']}: {row['error']}"


def _messages(evidence: Evidence) -> Iterator[str]:
    """Yield the broken promises about messages: each message is sent at most once, at a permitted time and never after
    an opt-out, and its row agrees with the receipt.
    """
    by_id = {
        without_account(row["provider_message_id"]): row for row in evidence.messages if row["provider_message_id"]
    }
    sent: Counter[str] = Counter()
    for receipt in evidence.receipts:
        at = datetime.fromisoformat(receipt.at).astimezone(evidence.zone)
        row = by_id.get(receipt.id)
        if row is None:
            yield f"the message sent at {at:%H:%M} has no row"
            continue
        sent[row["id"]] += 1
        is_answer = TIPOS[Tipo(row["tipo"])].responde
        if not OPENS <= at.time() < CLOSES and not is_answer:
            yield f"{row['tipo']} was sent at {at:%H:%M}, out of hours"
        if PAUSED[0] <= at.time() < PAUSED[1]:
            yield f"{row['tipo']} was sent at {at:%H:%M}, during the pause"
        if receipt.number == evidence.opted_out and at.time() >= OPTED_OUT:
            yield f"{row['tipo']} was sent at {at:%H:%M} to a person who opted out"
    for id, count in sent.items():
        if count > 1:
            yield f"message {id} was sent {count} times"
    for row in evidence.messages:
        if row["envio_estado"] is not None:
            yield f"message {row['id']} is still in doubt"
        if (row["status"] == "enviada") != (sent[row["id"]] > 0):
            yield f"message {row['id']} is {row['status']} and was sent {sent[row['id']]} times"


def without_account(message_id: str) -> str:
    """Remove the Telegram account from the id of a message, because the simulator's receipts do not contain the
    account.
    """
    return re.sub(r"^tg:[0-9a-f-]{36}:", "tg:", message_id)


def _vacancies(evidence: Evidence) -> Iterator[str]:
    holder: dict[str, str | None] = {}
    for row in evidence.history:
        if row["para"] == "reservada" and holder.get(row["vaga_id"]) == "reservada":
            yield f"vacancy {row['vaga_id']} was reserved twice"
        holder[row["vaga_id"]] = row["para"]
    for row in evidence.shifts:
        if holder.get(row["id"]) != row["status"]:
            yield f"vacancy {row['id']} is {row['status']}, and its history ends with {holder.get(row['id'])}"


def _reports(evidence: Evidence) -> Iterator[str]:
    made = {row["tipo"] for row in evidence.reports}
    midnight = evidence.starts.replace(hour=0)
    for tipo, hour in REPORTS.items():
        if evidence.starts < midnight + timedelta(hours=hour) < evidence.ends and tipo not in made:
            yield f"report {tipo} was not made"


def _figures(evidence: Evidence) -> Facts:
    runs = Counter(row["status"] for row in evidence.runs)
    messages = Counter(row["tipo"] for row in evidence.messages if row["status"] == "enviada")
    shifts = Counter(row["status"] for row in evidence.shifts)
    return [
        ("runs", {"count": len(evidence.runs), "jobs": len({row["job_name"] for row in evidence.runs}),
                  "ok": runs["success"], "skipped": runs["skipped"]}),
        ("messages", {"count": len(evidence.receipts), "what": ", ".join(f"{tipo} {n}" for tipo, n in sorted(messages.items()))}),
        ("vagas", {"count": len(evidence.shifts), "what": ", ".join(f"{status} {n}" for status, n in sorted(shifts.items()))}),
        ("reports", {"count": len(evidence.reports)}),
    ]  # fmt: skip
