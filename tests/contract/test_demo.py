"""The demonstration's rows on both databases."""

from zoneinfo import ZoneInfo

from app.demo import Demo
from batuta.stores.sql.database import Database
from batuta.testing import FakeClock
from tests.julia import add_doctor, one, rows

ZONE = ZoneInfo("America/Sao_Paulo")


async def test_a_demonstration_is_filled_once_and_leaves_others_alone(julia: Database, clock: FakeClock) -> None:
    await add_doctor(julia, "5511900001003")  # somebody has that line already
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
