import asyncio

from batuta import Batuta, Failed

work = Batuta("sqlite:///shop.db")


@work.job("*/15 * * * *", category="reports")
async def report_sales() -> int:
    return 42  # the number of items that this run processed


@work.task(retry=[10, 60, 300])
async def send_receipt(order: int) -> str | Failed:
    return f"receipt of order {order} sent" if order > 0 else Failed("unknown order", permanent=True)


async def main() -> None:
    async with work:
        handle = await send_receipt.options(key="receipt-7").enqueue(7)
        print("accepted", handle.id)


if __name__ == "__main__":
    asyncio.run(main())
