"""An operator records an opt-out, on both databases."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.composition.julia import julia_of
from app.contexts.conversas.optout import OptoutManual, Parado, TelefoneRecusado
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.queue.item import NewItem
from batuta.testing import FakeClock
from tests.command import Command
from tests.julia.tables import add_doctor, one, rows

PHONE = "5511900000001"
JULIA = ("--app", "app.main:work")


@pytest.fixture
async def work(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with build(Settings(database_url=database_url), clock=clock).work as work:
        yield work


@pytest.fixture
def by_hand(work: Batuta) -> OptoutManual:
    return julia_of(work).messages.optout


async def test_opt_out_cancels_waiting_messages_and_records_its_author(work: Batuta, by_hand: OptoutManual) -> None:
    doctor = await add_doctor(work.database, PHONE, now=work.clock.now())
    await work.queues["fila_mensagens"].put(
        [
            NewItem(
                values={"cliente_id": doctor, "telefone_destino": PHONE, "conteudo": "x", "tipo": "campanha",
                        "devida_em": work.clock.now()},
            )
        ]
    )  # fmt: skip
    assert await by_hand.parar("+55 (11) 90000-0001", by="ana", reason="ligou") == Parado(
        final="0001", medico=True, canceladas=1
    )
    (message,) = await rows(work.database, "SELECT status, outcome FROM fila_mensagens")
    assert (message["status"], message["outcome"]) == ("cancelada", "BLOCKED_OPTED_OUT")
    kept = await one(work.database, "SELECT opt_out, opted_out FROM clientes")
    assert (bool(kept["opt_out"]), bool(kept["opted_out"])) == (True, True)
    noted = await one(work.database, "SELECT actor, action, subject FROM audit_log")
    assert (noted["actor"], noted["action"], noted["subject"]) == ("ana", "optout", f"medico:{doctor}")


async def test_opt_out_of_a_number_without_a_doctor_is_kept(work: Batuta, by_hand: OptoutManual) -> None:
    assert await by_hand.parar(PHONE, by="ana", reason="-") == Parado(final="0001", medico=False, canceladas=0)
    assert await by_hand.parar(PHONE, by="ana", reason="-") == Parado(final="0001", medico=False, canceladas=0)
    (external,) = await rows(work.database, "SELECT permission_state FROM external_contacts")
    assert external["permission_state"] == "opted_out"
    assert [row["subject"] for row in await rows(work.database, "SELECT subject FROM audit_log")] == [
        "externo:…0001"
    ] * 2


@pytest.mark.parametrize("written", ["", "nada", "11 90000-0001", "1" * 16])
async def test_incomplete_number_is_refused_and_not_repeated_in_the_error(by_hand: OptoutManual, written: str) -> None:
    with pytest.raises(TelefoneRecusado) as refused:
        await by_hand.parar(written, by="ana", reason="-")
    assert not written or written not in str(refused.value)


def test_command_reports_its_effect_without_the_whole_number(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    code, out, err = batuta(*JULIA, "optout", PHONE)
    assert (code, "terminado em 0001" in out, PHONE in out + err) == (0, True, False)
    code, _, err = batuta(*JULIA, "optout", "123")
    assert (code, "código do país" in err) == (1, True)
