"""Helpers that add vacancies and doctors to the application of an ``Office``."""

from datetime import date
from typing import Any

from app.composition.julia import julia_of
from app.composition.plantoes import Shifts
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.plantoes.model import NovaVaga
from tests.julia.envio.sending import Office
from tests.julia.tables import add_doctor, one, rows, write

HOSPITAL, AREA = "Hospital Fictício", "Pediatria"
DAY = date(2026, 3, 20)
UNKNOWN_ID = "00000000-0000-7000-8000-999999999999"


def shifts(office: Office) -> Shifts:
    return julia_of(office.work).shifts


async def load_hospital(office: Office, name: str = HOSPITAL, **where: str) -> None:
    place = {"canonico": name, "aliases": ["HFic"] if name == HOSPITAL else [], **where}
    await julia_of(office.work).groups.dicionario.carregar({"hospitais": [place]}, now=office.clock.now())


async def add_vaga(office: Office, **values: Any) -> str:
    """Add a vacancy as an operator would enter it. A hospital is created when it is mentioned for the first time."""
    nova: dict[str, Any] = {
        "hospital": HOSPITAL, "especialidade": AREA, "data": DAY, "periodo": Periodo.NOTURNO, "valor": 1500, "outra": True,
        "novo_hospital": True,
    }  # fmt: skip
    return await shifts(office).plantoes.criar(NovaVaga(**{**nova, **values}), por="gestora")


async def add_doctors(office: Office, count: int, especialidade: str | None = AREA) -> list[str]:
    made = []
    for n in range(count):
        id = await add_doctor(office.work.database, f"55119{10_000_000 + n + 1000 * len(especialidade or ''):08d}")
        made.append(id)
        await write(
            office.work.database, "UPDATE clientes SET especialidade = :area WHERE id = :id", area=especialidade, id=id
        )
    return made


async def vaga(office: Office, id: str) -> dict[str, Any]:
    return await one(office.work.database, "SELECT * FROM vagas WHERE id = :id", id=id)


async def history(office: Office, id: str) -> list[tuple[str | None, str, str, str]]:
    found = await rows(
        office.work.database,
        "SELECT ordem, de, para, por, motivo FROM vagas_historico WHERE vaga_id = :id ORDER BY ordem",
        id=id,
    )
    assert [row["ordem"] for row in found] == list(range(1, len(found) + 1))
    return [(row["de"], row["para"], row["por"], row["motivo"]) for row in found]


async def events(office: Office, id: str) -> list[str]:
    found = await rows(
        office.work.database, "SELECT event_type FROM business_events WHERE vaga_id = :id ORDER BY ts, id", id=id
    )
    return [row["event_type"] for row in found]
