"""The demonstration's database, opening hours and spreadsheet."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from app.composition.development.demo import FIRST_NUMBER, is_free, planilha_de_demonstracao
from app.composition.development.simulator import SIMULATED, new_seed
from app.composition.envio import hours
from app.settings import Settings
from batuta.config import load_settings
from batuta.stores.sql.database import Database
from batuta.testing import FakeClock
from simulador.evolution.gateway import Evolution
from tests.julia.tables import add_doctor, write

ZONE = ZoneInfo("America/Sao_Paulo")


async def test_demonstration_uses_an_empty_database_or_its_own(julia: Database) -> None:
    assert await is_free(julia)
    await add_doctor(julia, str(FIRST_NUMBER))
    assert not await is_free(julia)  # another doctor has this number
    await write(julia, "UPDATE clientes SET sobrenome = 'Fictícia 00'")
    await add_doctor(julia, "5511900001003")
    assert await is_free(julia)


async def test_database_with_doctors_is_not_used_for_the_demonstration(julia: Database) -> None:
    await add_doctor(julia, "5511900001003")
    assert not await is_free(julia)


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


def test_restarted_simulator_repeats_no_message_id(clock: FakeClock) -> None:
    def first_id() -> str:
        evolution = Evolution(clock, seed=new_seed(clock))
        (instance,) = evolution._instances.values()
        return evolution.vida.new_id(instance, "5511900000001@s.whatsapp.net")

    before = first_id()
    clock.step(timedelta(seconds=1))
    assert first_id() != before
