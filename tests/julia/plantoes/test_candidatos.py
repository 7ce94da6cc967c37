"""The database scores every doctor who fits a vacancy. The tests run on both databases."""

from datetime import timedelta

import pytest

from app.contexts.leitura_grupos.api import Periodo
from app.contexts.plantoes.anuncios import Anuncio
from app.contexts.plantoes.candidatos import Impedimento
from app.contexts.plantoes.model import VagaDesconhecida
from tests.julia.envio.sending import Office
from tests.julia.plantoes.mesa import DAY, UNKNOWN_ID, add_doctors, add_vaga, shifts
from tests.julia.tables import write


async def scores(office: Office, id: str, limite: int = 100) -> dict[str, float]:
    return {each.cliente_id: each.pontos for each in await shifts(office).candidatos.candidatos(id, limite)}


async def worked(office: Office, doctor: str, **values: object) -> None:
    id = await add_vaga(office, **values)
    await write(
        office.work.database,
        "UPDATE vagas SET status = 'realizada', cliente_id = :doctor WHERE id = :id",
        doctor=doctor,
        id=id,
    )


async def wrote(office: Office, doctor: str, days: int) -> None:
    now = office.clock.now()
    await write(
        office.work.database,
        "INSERT INTO doctor_state (cliente_id, last_outbound_at, updated_at) VALUES (:doctor, :at, :now)",
        doctor=doctor,
        at=now - timedelta(days=days),
        now=now,
    )


async def test_the_score_counts_experience_qualification_contact_and_speciality(office: Office) -> None:
    names = ("novo", "daqui", "de_fora", "bom", "ontem", "ha_dez", "ha_cem")
    doctors = dict(zip(names, await add_doctors(office, len(names)), strict=True))
    id = await add_vaga(office)
    await worked(office, doctors["daqui"])
    await worked(office, doctors["de_fora"], hospital="Hospital Inventado")
    await write(office.work.database, "UPDATE clientes SET qualification_score = 0.8 WHERE id = :id", id=doctors["bom"])
    for name, days in (("ontem", 1), ("ha_dez", 10), ("ha_cem", 100)):
        await wrote(office, doctors[name], days)
    (partial,) = await add_doctors(office, 1, "Cardiologia Pediatria")
    found = await scores(office, id)
    assert found == {
        doctors["novo"]: 70,
        doctors["daqui"]: 220,
        doctors["de_fora"]: 170,
        doctors["bom"]: 110,
        doctors["ontem"]: -10,
        doctors["ha_dez"]: 60,
        doctors["ha_cem"]: 40,
        partial: 50,
    }
    assert list(found.values()) == sorted(found.values(), reverse=True)


async def test_the_best_of_all_is_found_however_many_come_before_it(office: Office) -> None:
    id, doctors = await add_vaga(office), await add_doctors(office, 60)
    await add_doctors(office, 40, "Ortopedia e Traumatologia")
    best = max(doctors)
    await write(office.work.database, "UPDATE clientes SET qualification_score = 1 WHERE id = :id", id=best)
    assert list(await scores(office, id, limite=1)) == [best]
    assert len(await scores(office, id, limite=500)) == 60


async def test_excluded_doctor_is_not_among_the_candidates(office: Office) -> None:
    database, now = office.work.database, office.clock.now()
    optout, cooling, asked, waits, gone, nothing, free = await add_doctors(office, 7)
    (other,) = await add_doctors(office, 1, "Ortopedia e Traumatologia")
    id = await add_vaga(office, data=DAY)
    await write(database, "UPDATE clientes SET opt_out = TRUE WHERE id = :id", id=optout)
    await write(database, "UPDATE clientes SET deleted_at = :now WHERE id = :id", id=gone, now=now)
    await write(database, "UPDATE clientes SET especialidade = NULL WHERE id = :id", id=nothing)
    await write(
        database,
        "INSERT INTO doctor_state (cliente_id, permission_state, updated_at) VALUES (:id, 'cooling_off', :now)",
        id=cooling,
        now=now,
    )
    await shifts(office).anuncios.anunciar(id, [asked], por="gestora")
    await office.put(waits)
    assert list(await scores(office, id)) == [free]
    assert other not in await scores(office, id)


async def test_a_doctor_has_the_speciality_by_any_of_its_names(office: Office) -> None:
    (doctor,) = await add_doctors(office, 1, "ortopedia")
    id = await add_vaga(office, especialidade="Ortopedia e Traumatologia")
    assert await scores(office, id) == {doctor: 70}


async def test_a_doctor_who_probably_opted_out_waits_for_the_decision_of_an_operator(office: Office) -> None:
    (doctor,), id = await add_doctors(office, 1), await add_vaga(office)
    await write(
        office.work.database,
        "INSERT INTO optouts_provaveis (id, telefone, telefone_chave, provider_message_id, regra, created_at)"
        " SELECT id, telefone, telefone_chave, 'm', 'r', :now FROM clientes",
        now=office.clock.now(),
    )
    assert await scores(office, id) == {}
    answer = await shifts(office).anuncios.anunciar(id, [doctor], por="gestora")
    assert isinstance(answer, Anuncio)
    assert answer.recusadas == {doctor: Impedimento.OPTOUT_PROVAVEL}


async def test_a_doctor_with_a_shift_at_that_time_is_not_offered_another(office: Office) -> None:
    busy, other_day, free = await add_doctors(office, 3)
    plantoes, id = shifts(office).plantoes, await add_vaga(office)
    await plantoes.reservar(await add_vaga(office, hospital="Hospital Inventado"), busy, por="gestora")
    await plantoes.reservar(await add_vaga(office, data=DAY + timedelta(days=1)), other_day, por="gestora")
    assert set(await scores(office, id)) == {other_day, free}
    answer = await shifts(office).anuncios.anunciar(id, [busy], por="gestora")
    assert isinstance(answer, Anuncio)
    assert answer.recusadas == {busy: Impedimento.JA_TEM_PLANTAO}


@pytest.mark.parametrize(
    ("reserved", "offered", "free"),
    [
        (Periodo.H24, Periodo.TARDE, False),
        (Periodo.MANHA, Periodo.DIURNO, False),
        (Periodo.NOTURNO, Periodo.CINDERELA, False),
        (Periodo.MANHA, Periodo.TARDE, True),
        (Periodo.DIURNO, Periodo.NOTURNO, True),
    ],
)
async def test_only_shifts_that_cover_the_same_part_of_the_day_exclude_each_other(
    office: Office, reserved: Periodo, offered: Periodo, free: bool
) -> None:
    (doctor,) = await add_doctors(office, 1)
    await shifts(office).plantoes.reservar(await add_vaga(office, periodo=reserved), doctor, por="gestora")
    offer = await add_vaga(office, hospital="Hospital Inventado", periodo=offered)
    assert set(await scores(office, offer)) == ({doctor} if free else set())


async def test_a_vacancy_that_does_not_exist_has_no_candidates(office: Office) -> None:
    with pytest.raises(VagaDesconhecida):
        await shifts(office).candidatos.candidatos(UNKNOWN_ID, 5)
