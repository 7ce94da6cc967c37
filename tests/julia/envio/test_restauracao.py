"""After a backup is restored, Julia sends no message twice, and opt-outs recorded since the backup still apply."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from app.composition.julia import julia_of
from app.contexts.conversas.diario import digest
from batuta.engine import backup
from tests.julia.envio.sending import MINUTE, PHONE, Office
from tests.julia.tables import add_doctor, one, rows, write

OTHER = "5511900000002"
STRANGER = "5521987654321"


def _ignore(what: str, count: int) -> None: ...


class Copy:
    def __init__(self, office: Office, file: Path, url: str) -> None:
        self.office = office
        self.file = file
        self.url = url

    async def take(self) -> None:
        await backup.take(self.office.work, self.file, _ignore, by="ana")
        await self.office.later(MINUTE)

    async def put_back(self, *, lost: bool = False) -> backup.RestoreReport:
        """Restore the backup. With ``lost``, the current database no longer exists, but its journal still does."""
        work = self.office.work
        await work.close()
        if lost and self.url.startswith("sqlite"):
            Path(self.url.removeprefix("sqlite:///")).unlink()
        elif lost:
            await work.database.open()
            await work.database.script("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
            await work.database.close()
        report = await backup.restore(work, self.file, by="test", force=False, progress=_ignore)
        await work.open()
        await self.office.later(MINUTE)
        return report

    async def stop(self, telefone: str) -> None:
        work = self.office.work
        by_hand = julia_of(work).messages.optout
        await by_hand.parar(telefone, by="ana", reason="-")


@pytest.fixture
def copy(office: Office, tmp_path: Path, database_url: str) -> Copy:
    return Copy(office, tmp_path / "backup", database_url)


LOST = pytest.mark.parametrize("lost", [False, True], ids=["old database there", "old database lost"])


@LOST
async def test_message_sent_after_the_backup_is_not_sent_again(
    office: Office, doctor: str, chip: str, copy: Copy, lost: bool
) -> None:
    id = await office.put(doctor)
    await copy.take()
    await office.works()
    await copy.put_back(lost=lost)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    assert (await office.message(id))["provider_message_id"] == office.line.receipts[0].id
    assert len(office.line.receipts) == 1


@LOST
async def test_unsent_message_is_sent_once_after_the_restore(
    office: Office, doctor: str, chip: str, copy: Copy, lost: bool
) -> None:
    id = await office.put(doctor)
    await copy.take()
    await copy.put_back(lost=lost)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    assert len(office.line.receipts) == 1


@LOST
async def test_text_sent_after_the_backup_is_not_sent_again(
    office: Office, doctor: str, chip: str, copy: Copy, lost: bool
) -> None:
    await copy.take()
    await office.put(doctor, "a oferta de março")  # as a campaign would
    await office.works()
    await copy.put_back(lost=lost)
    await office.put(doctor, "a oferta de março")  # as the repeated campaign would
    await office.works()
    await office.later(MINUTE)
    await office.works()
    assert len(office.line.receipts) == 1


async def test_message_in_doubt_when_its_database_is_replaced_stays_in_doubt(
    office: Office, doctor: str, chip: str, copy: Copy
) -> None:
    id = await office.put(doctor)
    await copy.take()
    await write(
        office.work.database,
        "UPDATE fila_mensagens SET envio_estado = 'unknown', envio_desde = :now, envio_hash = 'x', chip_id = :chip,"
        " updated_at = :now",
        now=office.clock.now(),
        chip=chip,
    )
    await copy.put_back()
    await office.works()
    assert (await office.message(id))["envio_estado"] == "unknown"
    assert office.line.receipts == []


async def test_person_decides_once_when_the_gateways_history_proves_nothing(
    office: Office, doctor: str, chip: str, copy: Copy
) -> None:
    witness = await office.put(doctor, "antes da cópia")
    await office.works()
    await office.later(MINUTE)
    id = await office.put(doctor, "depois da cópia")
    await copy.take()
    await copy.put_back(lost=True)
    (left,) = office.line.receipts
    office.line.receipts[0] = replace(
        left, telefone=OTHER
    )  # the gateway has lost the message that was sent before the backup
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["envio_estado"]) == ("pendente", "parked")
    assert len(office.line.receipts) == 1
    await office.reconciler.decide(id, sent=False, by="ana")
    await office.later(MINUTE)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    assert len(office.line.receipts) == 2
    assert (await office.message(witness))["status"] == "enviada"


async def test_nothing_is_sent_while_the_gateway_does_not_answer(
    office: Office, doctor: str, chip: str, copy: Copy
) -> None:
    id = await office.put(doctor)
    await copy.take()
    await copy.put_back(lost=True)
    office.line.remembers = False
    await office.works()
    assert (await office.message(id))["status"] == "pendente"
    assert office.line.receipts == []


@LOST
async def test_opt_out_after_the_backup_is_respected(
    office: Office, doctor: str, chip: str, copy: Copy, lost: bool
) -> None:
    id = await office.put(doctor)
    await copy.take()
    await copy.stop(PHONE)
    report = await copy.put_back(lost=lost)
    assert report.counts["optouts"] == 1
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["outcome"]) == ("cancelada", "BLOCKED_OPTED_OUT")
    kept = await one(office.work.database, "SELECT opt_out, opted_out FROM clientes")
    assert (bool(kept["opt_out"]), bool(kept["opted_out"])) == (True, True)
    assert office.line.receipts == []


@LOST
async def test_opt_out_of_a_number_that_becomes_a_doctor_later_is_respected(
    office: Office, doctor: str, chip: str, copy: Copy, lost: bool
) -> None:
    await copy.take()
    await copy.stop(STRANGER)
    await copy.put_back(lost=lost)
    newer = await add_doctor(office.work.database, STRANGER, now=office.clock.now())
    id = await office.put(newer, telefone_destino=STRANGER)
    await office.works()
    assert (await office.message(id))["status"] in ("bloqueada", "cancelada")
    assert office.line.receipts == []


@LOST
async def test_doctor_removed_after_the_backup_stays_removed(
    office: Office, doctor: str, chip: str, copy: Copy, lost: bool
) -> None:
    await write(office.work.database, "UPDATE clientes SET primeiro_nome = 'Ana', cpf = '123'")
    id = await office.put(doctor)
    await copy.take()
    work = office.work
    by_hand = julia_of(work).messages.optout
    await by_hand.remover(PHONE, by="ana", reason="pediu")
    report = await copy.put_back(lost=lost)
    assert report.counts["removals"] == 1
    kept = await one(office.work.database, "SELECT primeiro_nome, cpf, deleted_at FROM clientes")
    assert (kept["primeiro_nome"], kept["cpf"]) == (None, None)
    assert kept["deleted_at"] is not None
    await office.works()
    assert (await office.message(id))["status"] == "cancelada"
    assert office.line.receipts == []


async def test_journal_holds_no_number_and_only_its_owner_reads_it(office: Office, doctor: str) -> None:
    work = office.work
    by_hand = julia_of(work).messages.optout
    await by_hand.parar(PHONE, by="ana", reason="-")
    journal = julia_of(work).messages.diario
    assert journal is not None
    assert stat.S_IMODE(journal.file.stat().st_mode) == 0o600
    assert [entry.kind for entry in journal.entries()] == ["optout"]
    assert PHONE[4:] not in journal.file.read_text()


async def test_truncated_line_affects_no_other_line(office: Office) -> None:
    journal, work = julia_of(office.work).messages.diario, office.work
    assert journal is not None
    async with work.database.transaction() as transaction:
        await journal.note(transaction, "optout", PHONE, now=work.clock.now())
        with journal.file.open("a") as file:
            file.write('{"at": "2026-')  # a power failure
        await journal.note(transaction, "removal", OTHER, now=work.clock.now())
    noted = [(entry.kind, entry.digest) for entry in journal.entries()]
    expected = [("optout", PHONE), ("removal", OTHER)]
    assert noted == [
        (kind, await julia_of(office.work).messages.resumos.read(work.database, phone)) for kind, phone in expected
    ]


def test_number_with_and_without_the_ninth_digit_is_one_person() -> None:
    assert digest("key", "5511987654321") == digest("key", "551187654321")


async def test_journal_that_cannot_be_written_stops_no_opt_out(office: Office, doctor: str) -> None:
    work = office.work
    journal = julia_of(work).messages.diario
    assert journal is not None
    journal.file.mkdir()  # nothing can be appended to a folder
    by_hand = julia_of(work).messages.optout
    await by_hand.parar(PHONE, by="ana", reason="-")
    assert bool((await one(work.database, "SELECT opt_out FROM clientes"))["opt_out"])
    events = {row["event_type"] for row in await rows(work.database, "SELECT event_type FROM business_events")}
    assert "optout_fora_do_diario" in events
