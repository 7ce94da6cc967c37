"""The demonstration's rows on both databases."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from app.composition.development.demo import LISTENER, SENDER, Demo, planilha_de_demonstracao
from app.composition.development.simulator import SIMULATED
from app.composition.envio import hours
from app.settings import Settings
from batuta.config import load_settings
from batuta.stores.sql.database import Database
from batuta.testing import FakeClock
from tests.julia.tables import add_chip, add_doctor, one, rows

ZONE = ZoneInfo("America/Sao_Paulo")
NOW = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)


async def test_demonstration_is_filled_once_and_leaves_other_rows_alone(julia: Database, clock: FakeClock) -> None:
    await add_doctor(julia, "5511900001003")  # another doctor already has this number
    demo = Demo(julia, ZONE)
    assert await demo.fill(12, now=clock.now()) == {"medicos": 11, "chips": 2, "campanhas": 2}
    assert await demo.fill(12, now=clock.now()) == {"medicos": 0, "chips": 0, "campanhas": 0}
    listener = await one(
        julia, "SELECT pode_prospectar, pode_followup, pode_responder FROM chips WHERE tipo = 'listener'"
    )
    assert not any(listener.values())
    campaigns = await rows(julia, "SELECT status, agendar_para FROM campanhas ORDER BY id")
    assert [each["status"] for each in campaigns] == ["rascunho", "agendada"]
    at = campaigns[1]["agendar_para"].astimezone(ZONE)
    assert (at.hour, at.weekday() < 5, at > clock.now()) == (10, True, True)


async def test_chips_first_found_at_the_simulator_join_the_demonstration(julia: Database, clock: FakeClock) -> None:
    for instance in (SENDER, LISTENER):
        await add_chip(julia, instance, status="warming")
    demo = Demo(julia, ZONE)
    assert (await demo.fill(1, now=clock.now()))["chips"] == 2
    found = await rows(julia, "SELECT tipo, status, trust_score, pode_prospectar FROM chips ORDER BY tipo")
    assert found == [
        {"tipo": "julia", "status": "active", "trust_score": 90, "pode_prospectar": True},
        {"tipo": "listener", "status": "active", "trust_score": 90, "pode_prospectar": False},
    ]
    assert (await demo.fill(1, now=clock.now()))["chips"] == 0


async def test_some_phones_of_the_demonstration_are_not_validated_yet(julia: Database, clock: FakeClock) -> None:
    await Demo(julia, ZONE).fill(20, now=clock.now())
    found = await rows(
        julia, "SELECT status_telefone, count(*) AS many FROM clientes GROUP BY status_telefone ORDER BY 1"
    )
    assert found == [{"status_telefone": "pendente", "many": 2}, {"status_telefone": "validado", "many": 18}]


async def test_database_with_doctors_is_not_used_for_the_demonstration(julia: Database) -> None:
    await add_doctor(julia, "5511900001003")
    assert not await Demo(julia, ZONE).begin(now=NOW)
    assert await rows(julia, "SELECT id FROM chips") == []


async def test_demonstration_sends_at_any_hour_only_to_the_simulator() -> None:
    night = datetime(2026, 3, 15, 4, 0, tzinfo=UTC)  # a Sunday
    simulated = {"EVOLUTION_API_URL": "http://127.0.0.1:8099/evolution", "EVOLUTION_API_KEY": SIMULATED}
    assert hours(load_settings(Settings, {"DEMO": "1", **simulated})).is_open(night, ZONE)
    assert not hours(load_settings(Settings, simulated)).is_open(night, ZONE)
    elsewhere = {"EVOLUTION_API_URL": "https://gateway.exemplo.test", "EVOLUTION_API_KEY": "chave"}
    assert not hours(load_settings(Settings, {"DEMO": "1", **elsewhere})).is_open(night, ZONE)
    production = {**simulated, "DEMO": "1", "APP_ENV": "production", "API_TOKEN": "x" * 40, "SECRET_KEY": "y" * 40}
    assert not hours(load_settings(Settings, production)).is_open(night, ZONE)


def test_appointments_of_the_demonstration_are_of_the_next_two_weeks() -> None:
    today = date(2026, 12, 28)
    _, *lines = planilha_de_demonstracao(today).decode().splitlines()
    days = {datetime.strptime(line.split(";")[2], "%d/%m/%Y").date() for line in lines}
    assert days == {today + timedelta(days=n) for n in range(15)}
