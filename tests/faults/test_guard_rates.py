"""Several processes share limits and try to send far more than the limits allow, while some of the processes are
killed. The endpoint's record of calls shows whether the limits held.
"""

import asyncio
import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.guard_harness import Receipt, over, senders
from tests.faults.guard_plant import ACCOUNTS

PROCESSES = 8


async def test_no_window_exceeds_the_limit_and_little_of_it_stays_unused(places: Mapping[str, Path]) -> None:
    """Sixteen senders per account send without pauses. Without the limit they would send more than ten times as
    much.
    """
    await together(*(_rush(url, folder) for url, folder in places.items()))


async def _rush(url: str, folder: Path) -> None:
    most, per, windows, pause = (100, 10.0, 6, 2.0) if LONG else (20, 2.0, 5, 1.5)
    figures = Figures(
        "T36",
        kind(url),
        f"{PROCESSES} processes send without a pause from three accounts and are killed;"
        f" the limit of an account is {most} in {per:g} s",
    )
    async with senders(folder, url, way="rate", most=most, per=per) as running:
        running.begin(PROCESSES)
        await running.until("they send", lambda: bool(running.endpoint.receipts))
        began = running.endpoint.receipts[0].at
        await running.storm(windows * per - 0.5, pause, random.Random(20260105))
        await asyncio.sleep(0.7)
        receipts = [
            receipt for receipt in running.endpoint.receipts if receipt.at < began + windows * timedelta(seconds=per)
        ]
        violations = {account: over(of(receipts, account), most, per) for account in ACCOUNTS}
        violations["all"] = over([receipt.at for receipt in receipts], most * len(ACCOUNTS), per)
        assert set(violations.values()) == {0}, violations
        allowed = windows * most * len(ACCOUNTS)
        use = len(receipts) / allowed
        asked = sum(receipt.asked for receipt in receipts) / len(receipts)
        figures.record_bare(
            len(receipts),
            f"periods above the limit: 0; used share of the limit of {allowed}: {use:.1%}; "
            f"requests for each permission: {asked:.1f}; kills: {running.killed}",
            wrong=sum(violations.values()),
        )
        assert use >= (0.95 if LONG else 0.2)  # the short form shares two cores with other tests


def of(receipts: list[Receipt], account: str) -> list[datetime]:
    return [receipt.at for receipt in receipts if receipt.account == account]
