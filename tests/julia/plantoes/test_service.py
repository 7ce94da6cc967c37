"""Create, list, reserve, release and end vacancies, on both databases."""

import asyncio
from datetime import date, timedelta

import pytest

from app.contexts.leitura_grupos.api import Periodo
from app.contexts.nomes.correcoes import EspecialidadeDesconhecida
from app.contexts.plantoes.model import (
    CampoDaVagaRecusado,
    Feita,
    HospitalDesconhecido,
    HospitalDeVarios,
    HospitalSemOfertas,
    Impedida,
    MedicoDesconhecido,
    MotivoDaCancelada,
    NovaVaga,
    Ocupada,
    Repetida,
    VagaDesconhecida,
    VagaRepetida,
)
from app.contexts.plantoes.relato import vista_em_palavras
from app.contexts.plantoes.service import Filtro
from app.contexts.vagas.api import StatusDaVaga
from tests.julia.envio.sending import Office
from tests.julia.plantoes.mesa import (
    AREA,
    DAY,
    HOSPITAL,
    UNKNOWN_ID,
    add_doctors,
    add_vaga,
    events,
    history,
    load_hospital,
    shifts,
    vaga,
)
from tests.julia.tables import one, rows, write

NEW = NovaVaga(hospital=HOSPITAL, especialidade=AREA, data=DAY, periodo=Periodo.NOTURNO, valor=1500)


async def test_a_person_creates_a_vacancy_by_names_and_its_history_begins(office: Office) -> None:
    await load_hospital(office, cidade="Santos", uf="SP")
    nova = NovaVaga(
        hospital="hfic", especialidade="pediatra", data=DAY, hora_inicio="19:00", hora_fim="07:00", valor=1500
    )
    id = await shifts(office).plantoes.criar(nova, por="gestora")
    shown = vista_em_palavras(await shifts(office).plantoes.ver(id), office.work.zone)
    assert {name: shown[name] for name in ("hospital", "cidade", "especialidade", "periodo", "data", "valor", "status")} == {
        "hospital": HOSPITAL, "cidade": "Santos", "especialidade": AREA, "periodo": "Noturno", "data": "2026-03-20",
        "valor": 1500, "status": "aberta",
    }  # fmt: skip
    assert (shown["origem"], shown["criada_por"], shown["medico"]) == ("manual", "gestora", None)
    assert await history(office, id) == [(None, "aberta", "gestora", "criada")]
    assert await events(office, id) == ["vaga_criada"]


async def test_a_period_without_hours_has_its_usual_hours(office: Office) -> None:
    row = await vaga(office, await add_vaga(office, periodo=Periodo.CINDERELA, valor=None))
    assert (row["hora_inicio"], row["hora_fim"], row["valor"], row["valor_tipo"]) == (
        "19:00",
        "01:00",
        None,
        "a_combinar",
    )


async def test_a_name_that_is_not_known_creates_nothing_and_names_the_nearest(office: Office) -> None:
    await load_hospital(office, "Hospital Inventado", cidade="Santos", uf="SP")
    await load_hospital(office, "Hospital Repetido", cidade="Santos", uf="SP")
    await load_hospital(office, "Hospital Repetido", cidade="Campinas", uf="SP")
    plantoes = shifts(office).plantoes
    before = await one(office.work.database, "SELECT count(*) AS n FROM hospitais")
    with pytest.raises(HospitalDesconhecido, match="Hospital Inventado"):
        await plantoes.criar(
            NovaVaga(hospital="Hospital Inventadinho", especialidade=AREA, data=DAY, periodo=Periodo.TARDE), por="g"
        )
    with pytest.raises(HospitalDeVarios, match="Campinas/SP, Santos/SP"):
        await plantoes.criar(
            NovaVaga(hospital="Hospital Repetido", especialidade=AREA, data=DAY, periodo=Periodo.TARDE), por="g"
        )
    with pytest.raises(EspecialidadeDesconhecida):
        await plantoes.criar(
            NovaVaga(hospital="Hospital Inventado", especialidade="Adivinhação", data=DAY, periodo=Periodo.TARDE),
            por="g",
        )
    with pytest.raises(CampoDaVagaRecusado):
        await plantoes.criar(
            NovaVaga(hospital="Hospital Inventado", especialidade=AREA, data=date(2020, 1, 1)), por="g"
        )
    assert await one(office.work.database, "SELECT count(*) AS n FROM hospitais") == before
    assert await rows(office.work.database, "SELECT id FROM vagas") == []
    chosen = NovaVaga(
        hospital="Hospital Repetido", cidade="Campinas", uf="SP", especialidade=AREA, data=DAY, periodo=Periodo.TARDE
    )
    assert await plantoes.criar(chosen, por="g")


async def test_the_same_vacancy_twice_is_refused_unless_it_is_another_one(office: Office) -> None:
    await load_hospital(office)
    plantoes = shifts(office).plantoes
    answers = await asyncio.gather(
        *(plantoes.criar(NEW, por="gestora") for _ in range(2)), return_exceptions=True
    )  # fmt: skip
    (first,) = [each for each in answers if isinstance(each, str)]
    (refused,) = [each for each in answers if isinstance(each, VagaRepetida)]
    assert refused.facts["id"] == first
    second = await plantoes.criar(
        NovaVaga(hospital=HOSPITAL, especialidade=AREA, data=DAY, periodo=Periodo.NOTURNO, outra=True), por="gestora"
    )
    assert second != first


async def test_a_blocked_hospital_gets_no_vacancy(office: Office) -> None:
    await load_hospital(office)
    await write(
        office.work.database,
        "INSERT INTO hospitais_bloqueados (hospital_id, motivo, bloqueado_por, bloqueado_em)"
        " SELECT id, 'teste', 'gestora', :now FROM hospitais",
        now=office.clock.now(),
    )
    with pytest.raises(HospitalSemOfertas):
        await shifts(office).plantoes.criar(NEW, por="gestora")


async def test_vacancies_are_listed_by_state_day_origin_and_doctor(office: Office) -> None:
    (doctor,) = await add_doctors(office, 1)
    plantoes = shifts(office).plantoes
    first = await add_vaga(office)
    second = await add_vaga(office, data=DAY + timedelta(days=1))
    await plantoes.reservar(second, doctor, por="gestora")

    async def listed(**asked: object) -> list[str]:
        return [str(row["id"]) for row in await plantoes.listar(Filtro(**asked), limite=10)]  # type: ignore[arg-type]

    assert await listed() == [first, second]
    assert await listed(status=StatusDaVaga.RESERVADA) == [second]
    assert await listed(cliente_id=doctor) == [second]
    assert await listed(de=DAY + timedelta(days=1)) == [second]
    assert await listed(ate=DAY) == [first]
    assert await listed(origem="grupo_whatsapp") == []
    other = await add_vaga(office, hospital="Hospital São Fictício", data=DAY + timedelta(days=2))
    assert await listed(hospital="sao fict") == [other]
    assert await listed(hospital="São") == [other]
    assert await listed(hospital="100%") == []
    assert await plantoes.contagem() == {StatusDaVaga.ABERTA: 2, StatusDaVaga.RESERVADA: 1}


async def test_of_many_concurrent_doctors_one_gets_the_vacancy_and_the_others_learn_that_it_is_taken(
    office: Office,
) -> None:
    id, doctors = await add_vaga(office), await add_doctors(office, 12)
    plantoes = shifts(office).plantoes
    answers = await asyncio.gather(*(plantoes.reservar(id, each, por="julia") for each in doctors))
    won = [doctor for doctor, answer in zip(doctors, answers, strict=True) if isinstance(answer, Feita)]
    assert len(won) == 1
    assert {type(answer) for answer in answers} == {Feita, Ocupada}
    row = await vaga(office, id)
    assert (row["status"], row["cliente_id"], row["fechada_em"]) == ("reservada", won[0], office.clock.now())
    assert [line[:2] for line in await history(office, id)] == [(None, "aberta"), ("aberta", "reservada")]
    assert await plantoes.reservar(id, won[0], por="julia") == Repetida(id, StatusDaVaga.RESERVADA)
    assert len(await history(office, id)) == 2


async def test_a_released_vacancy_goes_to_another_doctor_and_the_history_says_why(office: Office) -> None:
    (ana, bia), id = await add_doctors(office, 2), await add_vaga(office)
    plantoes = shifts(office).plantoes
    await plantoes.reservar(id, ana, por="gestora")
    assert await plantoes.liberar(id, por="gestora", motivo="trocou de escala") == Feita(id, StatusDaVaga.ABERTA)
    assert await plantoes.liberar(id, por="gestora", motivo="trocou de escala") == Repetida(id, StatusDaVaga.ABERTA)
    row = await vaga(office, id)
    assert (row["status"], row["cliente_id"], row["fechada_em"]) == ("aberta", None, None)
    assert await plantoes.reservar(id, bia, por="gestora") == Feita(id, StatusDaVaga.RESERVADA)
    assert await history(office, id) == [
        (None, "aberta", "gestora", "criada"),
        ("aberta", "reservada", "gestora", "reserva"),
        ("reservada", "aberta", "gestora", "trocou de escala"),
        ("aberta", "reservada", "gestora", "reserva"),
    ]
    lines = await rows(
        office.work.database, "SELECT cliente_id FROM vagas_historico WHERE vaga_id = :id ORDER BY ordem", id=id
    )
    assert [line["cliente_id"] for line in lines] == [None, ana, ana, bia]
    assert await events(office, id) == ["vaga_criada", "vaga_reservada", "vaga_aberta", "vaga_reservada"]


async def test_interest_is_recorded_once_and_may_come_while_another_doctor_has_it(office: Office) -> None:
    (ana, bia), id = await add_doctors(office, 2), await add_vaga(office)
    plantoes = shifts(office).plantoes
    assert await plantoes.registrar_interesse(id, ana, por="julia") == Feita(id, StatusDaVaga.ABERTA)
    assert await plantoes.registrar_interesse(id, ana, por="julia") == Repetida(id, StatusDaVaga.ABERTA)
    await plantoes.reservar(id, ana, por="julia")
    assert await plantoes.registrar_interesse(id, bia, por="julia") == Feita(id, StatusDaVaga.RESERVADA)
    seen = await plantoes.ver(id)
    assert {row["cliente_id"] for row in seen.interesses} == {ana, bia}
    assert len(await history(office, id)) == 2


async def test_a_vacancy_or_a_doctor_that_does_not_exist_is_named(office: Office) -> None:
    id, plantoes = await add_vaga(office), shifts(office).plantoes
    with pytest.raises(VagaDesconhecida, match=UNKNOWN_ID):
        await plantoes.reservar(UNKNOWN_ID, UNKNOWN_ID, por="x")
    with pytest.raises(VagaDesconhecida):
        await plantoes.ver(UNKNOWN_ID)
    for act in (plantoes.reservar, plantoes.registrar_interesse):
        with pytest.raises(MedicoDesconhecido, match=UNKNOWN_ID):
            await act(id, UNKNOWN_ID, por="x")
    assert (await vaga(office, id))["status"] == "aberta"


async def test_a_withdrawn_vacancy_says_why_and_cannot_be_reserved(office: Office) -> None:
    (doctor,), id = await add_doctors(office, 1), await add_vaga(office)
    plantoes, motivo = shifts(office).plantoes, MotivoDaCancelada.CANCELADA_PELO_HOSPITAL
    assert await plantoes.cancelar(id, motivo, por="gestora") == Feita(id, StatusDaVaga.CANCELADA)
    assert await plantoes.cancelar(id, motivo, por="gestora") == Repetida(id, StatusDaVaga.CANCELADA)
    row = await vaga(office, id)
    assert (row["cancelada_motivo"], row["cancelada_por"], row["cancelada_em"]) == (
        "cancelada_pelo_hospital", "gestora", office.clock.now(),
    )  # fmt: skip
    answer = await plantoes.reservar(id, doctor, por="julia")
    assert isinstance(answer, Impedida)
    assert answer.status is StatusDaVaga.CANCELADA
