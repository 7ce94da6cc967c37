from batuta import Batuta, Failed, TaskContext

work = Batuta("sqlite:///shop.db")


@work.job("*/15 * * * *", category="reports")
async def report_sales() -> int:
    return 42  # the number of items that this run processed


@work.task(retry=[10, 60, 300])
async def send_receipt(context: TaskContext, order: int) -> str | Failed:
    return f"receipt of order {order} sent" if order > 0 else Failed("unknown order", permanent=True)


@work.loop(every=5, stuck_after=60)
async def poll_payments() -> None: ...
