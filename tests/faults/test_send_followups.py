"""The jobs and the workers are killed continuously while doctors receive their three follow-ups. Each doctor receives
each follow-up at most once and within the sending hours. After an opt-out, a pause, an answer or a take-over, no more
follow-ups are sent.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from app.composition.julia import Julia, julia_of
from tests.faults import job_plant
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import MORNING, SendingWorkers, sending_workers
from tests.faults.tally import Tally
from tests.faults.waiting import slowness
from tests.julia.tables import rows, write

RATE = 5.0
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
ZONE = ZoneInfo("America/Sao_Paulo")
# The call begins at most two seconds after the decision. The clock of the test runs fast.
IN_FLIGHT = timedelta(seconds=5 * RATE)
CHANGES = ("opt-out", "take-over", "pause", "answer")


async def test_kills_during_follow_ups_neither_repeat_nor_lose_one_nor_break_a_rule(places: Mapping[str, Path]) -> None:
    await together(*(_storm(url, folder) for url, folder in places.items()))


class People:
    """Doctors grouped by the change that affects them, and the instant of each change."""

    def __init__(self, doctors: Sequence[tuple[str, str]], each: int) -> None:
        self.phones = dict(doctors)
        ids = [id for id, _ in doctors]
        self.early = {what: ids[n * each : (n + 1) * each] for n, what in enumerate(CHANGES)}
        self.late = {what: ids[(n + 4) * each : (n + 5) * each] for n, what in enumerate(CHANGES)}
        self.silent = ids[8 * each :]
        self.changed_at: dict[str, datetime] = {}


async def _storm(url: str, folder: Path) -> None:
    each, silent = (12, 150) if LONG else (1, 8)
    doctors = 8 * each + silent
    done = (
        f"Julia sends up to three follow-ups to each of {doctors} doctors; jobs and workers are killed repeatedly,"
        " and a fifth of the gateway's answers is lost"
    )
    figures, chance = Figures("T39", kind(url), done), random.Random(20260316)
    pause = (0.3, 1.0) if LONG else (1.0, 3.0)
    async with sending_workers(folder, url, doctors=doctors, rate=RATE, lease=15) as office:
        people, julia = People(office.doctors, each), julia_of(office.work)
        await _open_conversations(office)
        await office.behave(lost_answers=0.2)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(office.storm(1, chance, pause, job_plant.run_followups))
            await stack.enter_async_context(office.storm(2, chance, pause))
            await _change(office, julia, people, people.early)
            await _reach(office, people, "followup_1_enviado")
            await _queue_at_night(office, people)
            await _change(office, julia, people, people.late)
            office.go_to(MORNING + 6 * DAY)
            await _reach(office, people, "followup_2_enviado")
            office.go_to(MORNING + 21 * DAY)
            await _reach(office, people, "nao_respondeu")
            office.go_to(MORNING + 85 * DAY)
            await _reach(office, people, "recontato")
        tally = await _judge(office, people)
        parked = sum(row["envio_estado"] == "parked" for row in (await office.rows()).values())
        assert tally.lost <= parked
        lost = sum(row["answer"] != "answered" for row in await office.receipts())
        figures.record_items(
            tally, f"kills: {office.killed}; lost answers: {lost}; messages left for a person's decision: {parked}"
        )


async def _open_conversations(office: SendingWorkers) -> None:
    """Open conversations whose first message was sent three days ago."""
    since = office.clock.now() - 3 * DAY
    await write(
        office.work.database,
        "INSERT INTO conversations (id, cliente_id, stage, ultima_mensagem_em, created_at, updated_at)"
        " SELECT id, id, 'msg_enviada', :since, :since, :since FROM clientes",
        since=since,
    )


async def _change(office: SendingWorkers, julia: Julia, people: People, groups: Mapping[str, Sequence[str]]) -> None:
    """Apply each kind of change to one doctor after another while messages are being sent, and record when each change
    was acknowledged.
    """
    for ids in zip(*groups.values(), strict=True):
        for what, id in zip(groups, ids, strict=True):
            await _change_one(office, julia, what, id, people.phones[id])
            people.changed_at[id] = office.clock.now()


async def _change_one(office: SendingWorkers, julia: Julia, what: str, id: str, phone: str) -> None:
    match what:
        case "take-over":
            await julia.messages.atendimento.assumir(id, por="ana", motivo="-")
        case "pause":
            await julia.followups.followups.pausar(id, office.clock.now() + 365 * DAY, por="ana", motivo="-")
        case _:
            await office.receive(phone, "PARAR" if what == "opt-out" else "não posso", f"in-{id}")


async def _reach(office: SendingWorkers, people: People, stage: str) -> None:
    """Wait until every silent doctor has reached the stage, or has a message that is waiting for an operator's
    decision.
    """

    async def have_it() -> bool:
        parked = {row["cliente_id"] for row in (await office.rows()).values() if row["envio_estado"] == "parked"}
        found = await rows(office.work.database, "SELECT cliente_id, stage FROM conversations")
        stages = {row["cliente_id"]: row["stage"] for row in found}
        return all(stages[id] == stage or id in parked for id in people.silent)

    await office.hurry(stage, have_it, MINUTE)


async def _queue_at_night(office: SendingWorkers, people: People) -> None:
    """Queue the second follow-ups at nine o'clock in the evening. They are not sent until the morning."""
    office.go_to(MORNING + 5 * DAY + 11 * timedelta(hours=1))

    async def are_queued() -> bool:
        found = Counter(row["cliente_id"] for row in (await office.rows()).values() if row["tipo"] == "followup_2")
        return all(found[id] for ids in (people.silent, *people.late.values()) for id in ids)

    await office.until("the second follow-ups are queued", are_queued)


async def _judge(office: SendingWorkers, people: People) -> Tally:
    """Check the follow-ups against the simulator's record of sent messages. Unlike follow-ups, answers to doctors may
    be sent at any hour.
    """
    queued = list((await office.rows()).values())
    answers = {(row["telefone_destino"], row["conteudo"]) for row in queued if not row["tipo"].startswith("followup_")}
    left: dict[str, list[datetime]] = defaultdict(list)
    times: Counter[tuple[str, str]] = Counter()
    for receipt in await office.receipts():
        number, at = receipt["number"], datetime.fromisoformat(receipt["at"])
        times[number, receipt["text"]] += 1
        if (number, receipt["text"]) not in answers:
            left[number].append(at)
            assert _is_open(at), receipt
    doubled = sum(count - 1 for count in times.values())
    assert doubled == 0, office.log()
    slow = slowness()
    for id, at in people.changed_at.items():
        assert [each for each in left[people.phones[id]] if each > at + IN_FLIGHT * slow] == [], id
    sent = Counter(row["cliente_id"] for row in queued if row["status"] == "enviada")
    marked = "SELECT cliente_id FROM business_events WHERE event_type = 'followup_enviado'"
    events = Counter(row["cliente_id"] for row in await rows(office.work.database, marked))
    assert {id: events[id] for id in people.silent} == {id: sent[id] for id in people.silent}
    lost = sum(not sent[id] == len(left[people.phones[id]]) == 3 for id in people.silent)
    return Tally(items=3 * len(people.silent), lost=lost, doubled=doubled, effects=sum(sent.values()), in_vain=0)


def _is_open(at: datetime) -> bool:
    local = at.astimezone(ZONE)
    return local.weekday() < 5 and 8 <= local.hour < 20
