"""An erased person stays erased when an older backup is restored."""

from app.composition.julia import julia_of
from tests.julia.envio.sending import Office
from tests.julia.envio.test_restauracao import LOST, Copy, copy
from tests.julia.lgpd.pessoas import add_everywhere, dump, lgpd_of
from tests.julia.tables import rows

__all__ = ["copy"]


@LOST
async def test_erased_person_of_an_older_backup_is_erased_again(
    office: Office, chip: str, copy: Copy, lost: bool
) -> None:
    ana = await add_everywhere(office.work, 3)
    await copy.take()
    assert (await lgpd_of(office.work).apagar(ana.telefone, por="x", motivo="x")).completo
    report = await copy.put_back(lost=lost)
    assert report.counts["erasures"] == 1
    await office.works()
    assert office.line.receipts == []
    await lgpd_of(office.work).retomar(10)
    found = await dump(office.work)
    assert [row for table in found.values() for row in table if any(sign in row for sign in ana.sinais)] == []
    requests = await rows(office.work.database, "SELECT concluido_em FROM lgpd_pedidos")
    assert (len(requests), all(row["concluido_em"] for row in requests)) == (1 if lost else 2, True)


async def test_restore_without_an_erasure_opens_no_request(office: Office, copy: Copy) -> None:
    await add_everywhere(office.work, 3)
    await copy.take()
    report = await copy.put_back()
    assert (report.counts["erasures"], await rows(office.work.database, "SELECT 1 FROM lgpd_pedidos")) == (0, [])
    assert julia_of(office.work).messages.diario is not None
