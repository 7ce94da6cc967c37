"""Workers that send reminders to people who posted vacancies are killed continuously. No reminder is lost or repeated.
Reminders that become due at night are sent in the morning.
"""

import random
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from app.composition.julia import julia_of
from app.contexts.handoffs.model import REMINDERS, SWITCH
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.limites import HORARIO
from app.contexts.plantoes.model import NovaVaga
from tests.faults import handoff_plant
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import SendingWorkers, sending_workers
from tests.faults.tally import Tally
from tests.faults.waiting import TIMEOUT, slowness
from tests.julia.tables import rows, write

HANDOFFS = 60 if LONG else 6
# Step of the clock, which moves as soon as all due work is done.
STEP = timedelta(minutes=20) if LONG else timedelta(hours=2)
RATE, LEASE = 10.0, 15.0
PAUSE = (0.2, 0.6) if LONG else (1.0, 3.0)
# Longest time from a decision to a send that was already in progress when the decision was made.
CALL_WITHIN = timedelta(seconds=2 * RATE)
# Words of the first message and of each reminder.
TEXTS = ("quer esta vaga", "Ainda preciso da sua resposta", "continua esperando", "último aviso")


async def test_kills_during_reminders_repeat_and_lose_nothing(places: dict[str, Path]) -> None:
    await together(*(_storm(url, folder) for url, folder in places.items()))


async def _storm(url: str, folder: Path) -> None:
    what = f"for 48 simulated hours, workers that send reminders of {HANDOFFS} hand-offs are killed repeatedly"
    figures, chance = Figures("T46", kind(url), what), random.Random(46)
    async with sending_workers(folder, url, doctors=HANDOFFS, rate=RATE, lease=LEASE) as office:
        posters = await _open(office)
        decided: dict[str, int] = {}  # maps a hand-off to the number of reminders that were due when it was decided
        revived = 0
        ends = time.monotonic() + TIMEOUT
        async with office.storm(2, chance, PAUSE, handoff_plant.run):
            revived += await _until_settled(office)
            while open_now := await _open_handoffs(office):
                assert time.monotonic() < ends, f"{len(open_now)} open at {office.clock.now()}\n{office.log()}"
                asked = [each for each in open_now if each["status"] == "contacted"]
                if chance.random() < 0.1 and len(asked) > HANDOFFS // 2:
                    await _decide(office, chance.choice(asked), decided)
                office.clock.step(STEP)
                revived += await _until_settled(office)
        tally = await _judge(office, posters, decided)
        note = (
            f"hand-offs decided by a person: {len(decided)};"
            f" messages given up after three kills, reported, and then retried: {revived}"
        )
        figures.record_items(tally, f"kills: {office.killed}; {note}")
        assert (tally.lost, tally.doubled) == (0, 0)


async def _open(office: SendingWorkers) -> dict[str, str]:
    """Open one hand-off for each doctor. Every hand-off is about a separate vacancy, posted by a separate person.
    Return the poster's phone number by the id of the hand-off.
    """
    julia, now, posters = julia_of(office.work), office.clock.now(), {}
    await office.work.switches.set(SWITCH.key, True, by="ensaio", reason="-", now=now)
    for n, (doctor, _) in enumerate(office.doctors[:HANDOFFS]):
        nova = NovaVaga(
            hospital=f"Hospital Inventado {n}", especialidade="Pediatria", data=(now + timedelta(days=9)).date(),
            periodo=Periodo.NOTURNO, novo_hospital=True,
        )  # fmt: skip
        id, number = await julia.shifts.plantoes.criar(nova, por="gestora"), f"55119{80_000_000 + n}"
        sql = "UPDATE vagas SET origem = 'grupo_whatsapp', contato_whatsapp = :number WHERE id = :id"
        await write(office.work.database, sql, number=number, id=id)
        opened = await julia.handoffs.handoffs.abrir(id, doctor, por="gestora", motivo="ensaio")
        posters[opened.id] = number
    return posters


async def _open_handoffs(office: SendingWorkers) -> list[dict[str, Any]]:
    return await rows(
        office.work.database, "SELECT * FROM external_handoffs WHERE status IN ('pending', 'contacted') ORDER BY id"
    )


async def _until_settled(office: SendingWorkers) -> int:
    """Wait until all due work is done. Revive the messages that died after three kills, and return how many were
    revived.
    """
    revived = 0
    await _until_idle(office)
    while dead := await _given_up(office):
        for row in dead:
            assert await office.work.queues[FILA_MENSAGENS.name].revive(row["id"])
        revived += len(dead)
        await _until_idle(office)
    return revived


async def _given_up(office: SendingWorkers) -> list[dict[str, Any]]:
    """Return the messages that died after three kills and were certainly not sent. Check that operators are notified of
    each of them.
    """
    async with office.work.database.transaction() as transaction:
        # In production, a job that runs every minute makes this call.
        registro = julia_of(office.work).sending.registro
        await registro.store_dead_letters(transaction, now=office.clock.now(), limit=HANDOFFS)
    dead = [row for row in (await office.rows()).values() if row["status"] == "erro"]
    entries = await rows(office.work.database, "SELECT cliente_id FROM pendencias WHERE resolvida_em IS NULL")
    known = {entry["cliente_id"] for entry in entries}
    for row in dead:
        handoff = await rows(
            office.work.database,
            "SELECT cliente_id FROM external_handoffs WHERE id = :id",
            id=row["metadata"]["handoff_id"],
        )
        assert handoff[0]["cliente_id"] in known, f"nobody learns of {row}"
    return dead


async def _until_idle(office: SendingWorkers) -> None:
    """Wait until the job ``processar_handoffs`` has completed a run that began after this call, and every due message
    has been settled.
    """
    since = office.clock.now()

    async def is_settled() -> bool:
        ran = [datetime.fromisoformat(at) for word, at in office.notes() if word == "ran"]
        if not ran or max(ran) < since:
            return False
        now, found = office.clock.now(), (await office.rows()).values()
        busy = [row for row in found if row["lease_until"] or row["envio_estado"] in ("intent", "unknown")]
        due = [row for row in found if row["status"] == "pendente" and row["agendar_para"] <= now]
        return not busy and not due

    await office.until("all due work is done", is_settled)


async def _decide(office: SendingWorkers, handoff: dict[str, Any], decided: dict[str, int]) -> None:
    since, zone = handoff["contatado_em"], office.work.zone
    due = sum(HORARIO.next_open(since + age, zone) + STEP <= office.clock.now() for age in REMINDERS)
    service = julia_of(office.work).handoffs.handoffs
    await service.confirmar(handoff["id"], por="gestora", motivo="ensaio")
    decided[handoff["id"]] = due


async def _judge(office: SendingWorkers, posters: dict[str, str], decided: dict[str, int]) -> Tally:
    """Compare the gateway's receipts with the hand-offs, their vacancies and the messages to the doctors."""
    found = {row["id"]: row for row in await rows(office.work.database, "SELECT * FROM external_handoffs")}
    vacancies = {row["id"]: row["status"] for row in await rows(office.work.database, "SELECT id, status FROM vagas")}
    sent: dict[str, list[tuple[int, datetime]]] = {number: [] for number in posters.values()}
    for receipt in await office.receipts():
        at = datetime.fromisoformat(receipt["at"])
        assert HORARIO.next_open(at, office.work.zone) == at, f"sent at night: {at}"
        if receipt["number"] in sent:
            sent[receipt["number"]].append((_which(receipt["text"]), at))
    queued = (await office.rows()).values()
    lost, doubled, effects, slow = 0, 0, 0, slowness()
    for id, number in posters.items():
        handoff, times = found[id], Counter(which for which, _ in sent[number])
        assert handoff["status"] == ("confirmed" if id in decided else "expired")
        assert vacancies[handoff["vaga_id"]] == ("reservada" if id in decided else "aberta")
        assert all(at <= handoff["decidido_em"] + CALL_WITHIN * slow for _, at in sent[number]), (
            "sent after the decision"
        )
        doubled += sum(count - 1 for count in times.values())
        effects += len(sent[number])
        assert handoff["followup_count"] == len(times) - 1
        wanted = decided.get(id, len(REMINDERS))
        lost += max(0, wanted - handoff["followup_count"])
        notice = [row["status"] for row in queued if row["chave"] == f"confirmacao:{id}:{handoff['status']}"]
        lost += notice != ["enviada"]
    return Tally(items=len(posters) * 4, lost=lost, doubled=doubled, effects=effects, in_vain=0)


def _which(text: str) -> int:
    (number,) = [n for n, words in enumerate(TEXTS) if words in text]
    return number
