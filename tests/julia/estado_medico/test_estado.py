"""A doctor's state is updated when messages are sent and received, and is changed by two jobs. The tests run on both
databases.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from app.composition.julia import Julia, julia_of
from app.contexts.comum.telefone import Address
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.queue.outcome import Done, Partial
from batuta.receive.endpoints import JobCall
from batuta.testing import FakeClock
from tests.julia.conversas.test_duvidas import HIDDEN, PHONE, receive
from tests.julia.envio.sending import Office
from tests.julia.tables import add_doctor, one, rows, write

DAY = timedelta(days=1)
OTHER = "5511999990002"


@pytest.fixture
async def work(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with build(Settings(database_url=database_url), clock=clock).work as work:
        yield work


@pytest.fixture
def julia(work: Batuta) -> Julia:
    return julia_of(work)


@pytest.fixture
async def medica(julia: Julia) -> str:
    return await add_doctor(julia.work.database, PHONE, now=julia.work.clock.now())


async def state(julia: Julia, id: str) -> dict[str, Any]:
    return await one(julia.work.database, "SELECT * FROM doctor_state WHERE cliente_id = :id", id=id)


async def put_state(julia: Julia, id: str, **values: Any) -> None:
    known = {
        "permission_state": "active",
        "temperature": 0.5,
        "lifecycle_stage": "engaged",
        "last_inbound_at": None,
        **values,
    }
    names = ", ".join(known)
    slots = ", ".join(f":{name}" for name in known)
    await write(
        julia.work.database,
        f"INSERT INTO doctor_state (cliente_id, updated_at, {names}) VALUES (:id, :now, {slots})",
        id=id,
        now=julia.work.clock.now(),
        **known,
    )


async def run(julia: Julia, *, weekly: bool = False, within: timedelta = timedelta(minutes=5)) -> Any:
    now = julia.work.clock.now()
    call = JobCall(key="k", params={}, started_at=now, deadline=now + within)
    upkeep = julia.doctors.manutencao
    return await (upkeep.semanal(call) if weekly else upkeep.diaria(call))


async def figures(julia: Julia, *, weekly: bool = False) -> dict[str, int]:
    answer = await run(julia, weekly=weekly)
    assert isinstance(answer, Done)
    assert isinstance(answer.result, dict)
    assert answer.items == sum(answer.result.values())
    return answer.result


# Events


async def test_inbound_message_warms_and_engages_the_doctor(julia: Julia, medica: str) -> None:
    await receive(julia, "bom dia", message_id="m1")
    row = await state(julia, medica)
    assert (row["permission_state"], row["lifecycle_stage"], row["temperature_trend"]) == (
        "active",
        "engaged",
        "warming",
    )
    assert row["temperature"] == pytest.approx(0.6)
    assert row["last_inbound_at"] == julia.work.clock.now()
    await receive(julia, "bom dia", message_id="m1")  # delivered twice
    assert (await state(julia, medica))["temperature"] == pytest.approx(0.6)
    await receive(julia, "aceito, pode reservar", message_id="m2")
    row = await state(julia, medica)
    assert (row["temperature"], row["temperature_band"]) == (pytest.approx(0.85), "hot")
    for n in range(3):
        await receive(julia, "ok", message_id=f"more{n}")
    assert (await state(julia, medica))["temperature"] == 1


async def test_lost_doctor_who_writes_is_engaged_and_a_qualified_one_stays_qualified(julia: Julia, medica: str) -> None:
    await put_state(julia, medica, lifecycle_stage="churned")
    other = await add_doctor(julia.work.database, OTHER, now=julia.work.clock.now())
    await put_state(julia, other, lifecycle_stage="qualified")
    await receive(julia, "bom dia")
    assert (await state(julia, medica))["lifecycle_stage"] == "engaged"
    assert (await state(julia, other))["lifecycle_stage"] == "qualified"


async def test_sent_message_begins_prospecting_and_a_queued_one_does_not(
    office: Office, doctor: str, chip: str
) -> None:
    julia = julia_of(office.work)
    id = await office.put(doctor)
    assert await rows(office.work.database, "SELECT 1 FROM doctor_state") == []
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    row = await state(julia, doctor)
    assert (row["permission_state"], row["lifecycle_stage"], row["temperature"]) == ("initial", "prospecting", 0.5)
    assert row["last_outbound_at"] is not None
    seen = await julia.doctors.estados.ver(doctor)
    assert seen["contatos_7d"] == 1
    office.clock.step(7 * DAY)
    assert (await julia.doctors.estados.ver(doctor))["contatos_7d"] == 0


async def test_grave_objection_begins_a_rest_that_no_inbound_message_ends(julia: Julia, medica: str) -> None:
    clock = julia.work.clock
    await receive(julia, "isso é golpe?", message_id="m1")
    row, until = await state(julia, medica), clock.now() + 7 * DAY
    assert (row["permission_state"], row["cooling_off_until"]) == ("cooling_off", until)
    assert (row["objection_severity"], row["temperature"]) == ("grave", 0.5)
    events = await rows(julia.work.database, "SELECT * FROM business_events WHERE event_type = 'medico_em_descanso'")
    assert len(events) == 1
    assert isinstance(clock, FakeClock)
    clock.step(DAY)
    await receive(julia, "aceito, pode reservar", message_id="m2")
    row = await state(julia, medica)
    assert (row["permission_state"], row["cooling_off_until"], row["active_objection"]) == ("cooling_off", until, None)
    await receive(julia, "isso é golpe?", message_id="m3")
    assert (await state(julia, medica))["cooling_off_until"] == clock.now() + 7 * DAY


async def test_objection_does_not_replace_an_opt_out(julia: Julia, medica: str) -> None:
    await receive(julia, "PARAR", message_id="m1")
    await receive(julia, "isso é golpe?", message_id="m2")
    row = await state(julia, medica)
    assert (row["permission_state"], row["cooling_off_until"]) == ("opted_out", None)
    assert row["temperature"] == 0.5


# Jobs


async def test_temperature_falls_by_the_later_of_last_fall_and_last_message(julia: Julia, medica: str) -> None:
    clock, now = julia.work.clock, julia.work.clock.now()
    assert isinstance(clock, FakeClock)
    await put_state(julia, medica, temperature=0.6, last_inbound_at=now - 2 * DAY, last_decay_at=now - 9 * DAY)
    assert (await figures(julia))["decayed"] == 1
    row = await state(julia, medica)
    assert (row["temperature"], row["temperature_trend"]) == (pytest.approx(0.5), "cooling")
    assert (await figures(julia))["decayed"] == 0
    clock.step(DAY - timedelta(seconds=4))
    assert (await figures(julia))["decayed"] == 0
    clock.step(timedelta(seconds=4))
    assert (await figures(julia))["decayed"] == 1
    assert (await state(julia, medica))["temperature"] == pytest.approx(0.45)
    clock.step(30 * DAY)
    assert (await figures(julia))["decayed"] == 1
    row = await state(julia, medica)
    assert (row["temperature"], row["temperature_band"]) == (0, "cold")
    assert (await figures(julia))["decayed"] == 0


async def test_every_row_of_more_than_one_page_is_processed(julia: Julia, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.contexts.estado_medico.jobs.PAGE", 3)
    now = julia.work.clock.now()
    for n in range(10):
        id = await add_doctor(julia.work.database, f"55119888800{n:02d}", now=now)
        kind: dict[str, Any] = {"last_inbound_at": now - 100 * DAY}
        if n % 2:
            kind = {"permission_state": "cooling_off", "cooling_off_until": now, "last_inbound_at": now - 2 * DAY}
        await put_state(julia, id, **kind)
    assert await figures(julia) == {"decayed": 10, "expired_cooling_off": 5, "churned": 5}
    assert await figures(julia) == {"decayed": 0, "expired_cooling_off": 0, "churned": 0}
    events = await rows(julia.work.database, "SELECT event_type FROM business_events")
    assert sorted(row["event_type"] for row in events) == ["medico_fim_do_descanso"] * 5 + ["medico_perdido"] * 5


async def test_job_without_time_reports_a_partial_result(julia: Julia, medica: str) -> None:
    await put_state(julia, medica, last_inbound_at=julia.work.clock.now() - 2 * DAY)
    answer = await run(julia, within=timedelta(seconds=5))
    assert isinstance(answer, Partial)
    assert (await figures(julia))["decayed"] == 1


async def test_opted_out_doctor_and_one_who_never_wrote_do_not_change(julia: Julia, medica: str) -> None:
    now = julia.work.clock.now()
    await put_state(julia, medica, permission_state="opted_out", last_inbound_at=now - 200 * DAY)
    silent = await add_doctor(julia.work.database, OTHER, now=now)
    await put_state(
        julia, silent, permission_state="initial", lifecycle_stage="prospecting", last_outbound_at=now - 200 * DAY
    )
    assert set((await figures(julia)).values()) == {0}
    assert (await state(julia, silent))["temperature"] == 0.5
    assert (await state(julia, medica))["lifecycle_stage"] == "engaged"


async def test_rest_ends_at_its_instant_and_churn_begins_after_ninety_days(julia: Julia, medica: str) -> None:
    clock, now = julia.work.clock, julia.work.clock.now()
    assert isinstance(clock, FakeClock)
    await put_state(julia, medica, permission_state="cooling_off", cooling_off_until=now + DAY, last_inbound_at=now)
    assert (await figures(julia))["expired_cooling_off"] == 0
    clock.step(DAY)
    assert (await figures(julia))["expired_cooling_off"] == 1
    row = await state(julia, medica)
    assert (row["permission_state"], row["cooling_off_until"]) == ("active", None)
    clock.step(89 * DAY)
    assert (await figures(julia))["churned"] == 0
    clock.step(timedelta(seconds=1))
    assert (await figures(julia))["churned"] == 1


async def test_weekly_job_repeats_the_daily_work_without_a_second_fall_and_resets_nothing(
    office: Office, doctor: str, chip: str
) -> None:
    julia = julia_of(office.work)
    await put_state(julia, doctor, last_inbound_at=office.clock.now() - 3 * DAY)
    await office.put(doctor)
    await office.works()
    assert (await figures(julia))["decayed"] == 1
    cooled = (await state(julia, doctor))["temperature"]
    assert await figures(julia, weekly=True) == {"decayed": 0, "expired_cooling_off": 0, "churned": 0, "reconciled": 0}
    assert (await state(julia, doctor))["temperature"] == cooled
    assert (await julia.doctors.estados.ver(doctor))["contatos_7d"] == 1


async def test_weekly_job_adds_a_message_whose_sender_became_known_later(julia: Julia, medica: str) -> None:
    wrote = julia.work.clock.now()
    await receive(julia, "bom dia", message_id="m1", de=Address(HIDDEN, None, HIDDEN))
    await write(
        julia.work.database, "UPDATE interacoes SET cliente_id = :id, telefone = :phone", id=medica, phone=PHONE
    )
    assert await rows(julia.work.database, "SELECT 1 FROM doctor_state") == []
    assert (await figures(julia, weekly=True))["reconciled"] == 1
    row = await state(julia, medica)
    assert (row["last_inbound_at"], row["permission_state"], row["lifecycle_stage"]) == (wrote, "active", "engaged")
    assert (await figures(julia, weekly=True))["reconciled"] == 0
