"""Example of durable tasks: `python -m examples.addresses` enqueues three tasks, `batuta --app examples.addresses:work
worker` runs them.
"""

import asyncio

from batuta import Batuta, Failed

work = Batuta("sqlite:///addresses.db", timezone="America/Sao_Paulo")


@work.task(retry=[60, 120], timeout=300, keep_result=3600)
async def normalise(text: str) -> str | Failed:
    if not text.strip():
        return Failed("nothing to normalise", permanent=True)
    return " ".join(text.split()).title()


async def main() -> None:
    async with work:
        # `enqueue` returns when the task is committed. While a task with this key is unfinished, a second call returns
        # a handle of the first task.
        address = normalise.options(key="address-1")
        first = await address.enqueue("  rua   das flores ")
        again = await address.enqueue("  rua   das flores ")
        others = await normalise.enqueue_many([["av. brasil"], [""]])
        print("accepted", len({first, again, *others}))
        for handle in (first, *others):
            status = await handle.status()
            print(status.status if status else "unknown")


if __name__ == "__main__":
    asyncio.run(main())
