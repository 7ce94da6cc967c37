"""The state of a vacancy changes only as the table of transitions allows, and each change adds one line to its history.
The tests run on both databases.
"""

import pytest

from app.contexts.vagas.transicoes import LONGEST_REASON, PERMITIDAS, PROCURA, StatusDaVaga, Transicoes
from tests.julia.envio.sending import Office
from tests.julia.plantoes.mesa import UNKNOWN_ID, add_vaga, events, history, vaga


def test_an_ended_vacancy_never_changes_again_and_an_open_one_can_always_end() -> None:
    ended = {status for status, after in PERMITIDAS.items() if not after}
    assert ended == {StatusDaVaga.CONFIRMADA, StatusDaVaga.REALIZADA, StatusDaVaga.CANCELADA, StatusDaVaga.FECHADA}
    assert all({StatusDaVaga.FECHADA, StatusDaVaga.CANCELADA} <= PERMITIDAS[status] for status in PROCURA)
    assert all(status not in after for status, after in PERMITIDAS.items())


@pytest.fixture
def transicoes(office: Office) -> Transicoes:
    return Transicoes(office.work.database.dialect, office.work.ids)


async def test_a_change_that_the_table_forbids_writes_nothing(office: Office, transicoes: Transicoes) -> None:
    id = await add_vaga(office)
    async with office.work.database.transaction() as transaction:
        row = await transicoes.travar(transaction, id)
        assert row is not None
        for para in set(StatusDaVaga) - PERMITIDAS[StatusDaVaga.ABERTA]:
            assert not await transicoes.mudar(transaction, row, para, por="x", motivo="x", now=office.clock.now())
        assert await transicoes.travar(transaction, UNKNOWN_ID) is None
    assert (await vaga(office, id))["status"] == "aberta"
    assert (len(await history(office, id)), await events(office, id)) == (1, ["vaga_criada"])


async def test_a_row_that_changed_since_it_was_read_is_left_as_it_is(office: Office, transicoes: Transicoes) -> None:
    id, now = await add_vaga(office), office.clock.now()
    async with office.work.database.transaction() as transaction:
        row = await transicoes.travar(transaction, id)
        assert row is not None
        closed = StatusDaVaga.FECHADA
        assert await transicoes.mudar(transaction, row, closed, por="grupos", motivo="x" * 900, now=now)
        assert not await transicoes.mudar(transaction, row, StatusDaVaga.CANCELADA, por="x", motivo="x", now=now)
    assert (await history(office, id))[1:] == [("aberta", "fechada", "grupos", "x" * LONGEST_REASON)]
