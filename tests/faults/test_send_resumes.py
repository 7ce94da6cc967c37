"""The morning job and the workers are killed continuously. Each conversation from the night receives one answer, but
none if the doctor opted out or an operator is handling the conversation.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.composition.julia import julia_of
from tests.faults import job_plant
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import SendingWorkers, end_of, sending_workers
from tests.faults.tally import Tally
from tests.faults.waiting import slowness
from tests.judges.messages import End
from tests.julia.tables import rows

RATE = 5.0
MINUTE = timedelta(minutes=1)
# Half past ten in the evening of a Wednesday in São Paulo, and eight o'clock of the next day.
NIGHT = datetime(2026, 3, 12, 1, 30, tzinfo=UTC)
MORNING = datetime(2026, 3, 12, 11, 0, tzinfo=UTC)
# The call begins at most two seconds after the decision. The clock of the test runs fast.
IN_FLIGHT = timedelta(seconds=5 * RATE)
QUESTIONS = ("qual o prazo de pagamento?", "tem estacionamento?")


async def test_kills_in_the_morning_neither_repeat_nor_lose_an_answer(places: Mapping[str, Path]) -> None:
    await together(*(_storm(url, folder) for url, folder in places.items()))


async def _storm(url: str, folder: Path) -> None:
    each, silent = (20, 150) if LONG else (2, 8)
    doctors = 2 * each + silent
    done = (
        f"in the morning, Julia answers {doctors} doctors who wrote at night; job and workers are killed repeatedly,"
        " and a fifth of the gateway's answers is lost"
    )
    figures, chance = Figures("T39", kind(url), done), random.Random(20260312)
    pause = (0.3, 1.0) if LONG else (1.0, 3.0)
    async with sending_workers(folder, url, doctors=doctors, rate=RATE, origin=NIGHT, lease=15) as office:
        phones = dict(office.doctors)
        ids = list(phones)
        stop, taken, waiting = ids[:each], ids[each : 2 * each], ids[2 * each :]
        await office.behave(lost_answers=0.2)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(office.storm(1, chance, pause, job_plant.run_resumes))
            await stack.enter_async_context(office.storm(2, chance, pause))
            for id, phone in phones.items():
                for n, question in enumerate(QUESTIONS):
                    await office.receive(phone, question, f"{n}-{id}")
            await _end(office, ids, "recebimento")
            office.go_to(MORNING)
            changed = {id: await _opt_out(office, id, phones[id]) for id in stop}
            changed |= {id: await _take_over(office, id) for id in taken}
            await _end(office, waiting, "retomada")
            await office.hurry("no message waits", lambda: _is_done(office, stop), MINUTE)
        tally = await _judge(office, phones, waiting, changed)
        parked = sum(row["envio_estado"] == "parked" for row in (await office.rows()).values())
        assert tally.lost == 0
        lost = sum(row["answer"] != "answered" for row in await office.receipts())
        figures.record_items(
            tally, f"kills: {office.killed}; lost answers: {lost}; messages left for a person's decision: {parked}"
        )


async def _opt_out(office: SendingWorkers, id: str, phone: str) -> datetime:
    await office.receive(phone, "PARAR", f"stop-{id}")
    return office.clock.now()


async def _take_over(office: SendingWorkers, id: str) -> datetime:
    (talk,) = await rows(office.work.database, "SELECT id FROM conversations WHERE cliente_id = :id", id=id)
    await julia_of(office.work).messages.atendimento.assumir(talk["id"], por="ana", motivo="-")
    return office.clock.now()


async def _end(office: SendingWorkers, ids: Sequence[str], tipo: str) -> None:
    """Wait until each doctor has a message of this type that was sent, has failed, or is waiting for an operator's
    decision.
    """

    async def have_ended() -> bool:
        found = (await office.rows()).values()
        return set(ids) <= {row["cliente_id"] for row in found if row["tipo"] == tipo and end_of(row) is not End.OPEN}

    await office.hurry(f"each has a {tipo}", have_ended, MINUTE)


async def _is_done(office: SendingWorkers, ids: Sequence[str]) -> bool:
    query = "SELECT cliente_id FROM mensagens_fora_horario WHERE processada_em IS NULL"
    open_rows = {row["cliente_id"] for row in await rows(office.work.database, query)}
    return not open_rows & set(ids)


async def _judge(
    office: SendingWorkers, phones: Mapping[str, str], waiting: Sequence[str], changed: Mapping[str, datetime]
) -> Tally:
    """Check Julia's answers to the doctors against the simulator's record of sent messages."""
    queued, receipts = list((await office.rows()).values()), await office.receipts()
    times = Counter((receipt["number"], receipt["text"]) for receipt in receipts)
    doubled = sum(count - 1 for count in times.values())
    assert doubled == 0, office.log()
    for tipo in ("recebimento", "retomada"):
        assert max(Counter(row["cliente_id"] for row in queued if row["tipo"] == tipo).values()) == 1
    slow = slowness()
    for id, at in changed.items():
        morning = {row["conteudo"] for row in queued if row["cliente_id"] == id and row["tipo"] == "retomada"}
        late = [
            receipt
            for receipt in receipts
            if receipt["number"] == phones[id] and datetime.fromisoformat(receipt["at"]) > at + IN_FLIGHT * slow
        ]
        assert [receipt for receipt in late if receipt["text"] in morning] == [], id
    nights = await rows(office.work.database, "SELECT cliente_id, processada_resultado FROM mensagens_fora_horario")
    open_entries = "SELECT cliente_id FROM pendencias WHERE resolvida_em IS NULL"
    with_people = {row["cliente_id"] for row in await rows(office.work.database, open_entries)}
    unanswered = {row["cliente_id"] for row in nights if row["processada_resultado"] != "sucesso"}
    # A person reads each message whose answer failed; an operator decides about a parked answer.
    failed = {row["cliente_id"] for row in queued if row["tipo"] == "retomada" and row["status"] == "erro"}
    parked = {row["cliente_id"] for row in queued if row["envio_estado"] == "parked"}
    lost = len(unanswered.intersection(waiting) - (failed & with_people) - parked)
    return Tally(items=len(waiting), lost=lost, doubled=doubled, effects=len(receipts), in_vain=0)
