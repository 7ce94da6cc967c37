"""Rows of a file that describe the same appointment are merged, rows that describe different appointments are not, and
every merge is reported.
"""

from typing import Any

import pytest

from tests.julia.agendamentos.sheets import HEADER, Cell, patient, xlsx
from tests.julia.agendamentos.test_service import Office, office
from tests.julia.tables import rows

__all__ = ["office"]
LABORATORY: list[Cell] = [
    "Nome da Marca",
    "Nome da Unidade",
    "Nome do Paciente",
    "Data/Hora Início Agendamento",
    "Exames",
]
PLAIN: list[Cell] = [*HEADER]
WITH_ID: list[Cell] = [*HEADER, "Protocolo"]


async def sent(office: Office, *linhas: list[Cell]) -> dict[str, Any]:
    return dict(await office.importacao.importar(xlsx(linhas), "agenda.xlsx", by="alguém"))


async def kept(office: Office) -> list[dict[str, Any]]:
    return await rows(office.database, "SELECT id, exames, observacoes, origem_id, chave FROM appointments ORDER BY id")


def visit(when: str, exam: str = "glicose") -> list[Cell]:
    return ["Marca", "Unidade", "Pessoa Fictícia", when, exam]


async def test_two_visits_of_one_day_with_unreadable_hours_stay_two(office: Office) -> None:
    linhas = [LABORATORY, visit("11/03/2026 manhã"), visit("11/03/2026 tarde", "jejum")]
    first, again = await sent(office, *linhas), await sent(office, *linhas)
    assert (first["imported"], again["imported"], again["duplicates"]) == (2, 0, 2)
    assert [each["problema"] for each in first["warnings"]] == ["hora_ilegivel", "hora_ilegivel"]
    morning, afternoon = await kept(office)
    for each in (morning, afternoon):  # it is still the same appointment, because person, place and time are unchanged
        await office.agendamentos.alterar(each["id"], {"observacoes": "ligar antes"}, by="alguém")
    assert [each["chave"] for each in await kept(office)] == [morning["chave"], afternoon["chave"]]
    third = await sent(office, *linhas)
    assert (third["imported"], third["duplicates"]) == (0, 2)


async def test_different_rows_of_one_day_without_an_hour_are_kept_with_a_warning(office: Office) -> None:
    linhas = [LABORATORY, visit("11/03/2026"), visit("11/03/2026", "jejum"), visit("11/03/2026", "jejum")]
    first, again = await sent(office, *linhas), await sent(office, *linhas)
    assert (first["imported"], first["duplicates"], again["imported"], again["duplicates"]) == (2, 1, 0, 3)
    warnings = [(each["linha"], each["problema"]) for each in first["warnings"] if each["problema"] != "hora_ilegivel"]
    assert warnings == [(3, "sem_hora"), (4, "repetido")]
    assert [each["exames"] for each in await kept(office)] == ["glicose", "jejum"]


@pytest.mark.parametrize("is_first_named", [True, False])
async def test_row_with_and_without_its_origin_id_is_one_appointment(office: Office, is_first_named: bool) -> None:
    named = [WITH_ID, [*patient(1), "P-1"], [*patient(2), "P-2"]]
    bare = [PLAIN, patient(1, Observações="de novo"), patient(2)]
    for linhas in (named, bare, named) if is_first_named else (bare, named, bare):
        done = await sent(office, *linhas)
    assert (done["imported"], done["duplicates"]) == (0, 2)
    one, other = await kept(office)
    assert (one["origem_id"], one["observacoes"], other["origem_id"]) == ("P-1", "de novo", "P-2")


async def test_origin_id_added_by_hand_creates_no_second_appointment(office: Office) -> None:
    await sent(office, PLAIN, patient(1))
    (only,) = await kept(office)
    await office.agendamentos.alterar(only["id"], {"origem_id": "P-1"}, by="alguém")
    for linhas in ([PLAIN, patient(1)], [WITH_ID, [*patient(1), "P-1"]]):
        done = await sent(office, *linhas)
        assert (done["imported"], done["duplicates"]) == (0, 1)
    assert [each["origem_id"] for each in await kept(office)] == ["P-1"]


async def test_two_origin_ids_are_two_appointments_despite_equal_data(office: Office) -> None:
    done = await sent(office, WITH_ID, [*patient(1), "P-1"], [*patient(1), "P-2"])
    assert (done["imported"], len(await kept(office))) == (2, 2)
    again = await sent(office, WITH_ID, [*patient(1, Data="12/03/2026"), "P-1"])  # the appointment was postponed
    assert (again["imported"], again["duplicates"]) == (0, 1)
