"""Example of durable tasks: `python -m examples.addresses` enqueues three, `batuta --app examples.addresses:work
worker` runs them.
"""

import asyncio

from batuta import Batuta, Failed, TaskContext

work = Batuta("sqlite:///addresses.db", timezone="America/Sao_Paulo")


@work.task(retry=[60, 120], timeout=300, keep_result=3600)
async def normalise(context: TaskContext, text: str) -> str | Failed:
    if not text.strip():
        return Failed("nothing to normalise", permanent=True)
    return " ".join(text.split()).title()


async def main() -> None:
    async with work:
        # `enqueue` returns when the task is synced to disk. While a task with this key is unfinished, a second call
        # returns its id.
        first = await work.enqueue(normalise, "  rua   das flores ", key="address-1")
        again = await work.enqueue(normalise, "  rua   das flores ", key="address-1")
        others = await work.enqueue_many(normalise, [["av. brasil"], [""]])
        print("accepted", len({first, again, *others}))
        for id in (first, *others):
            status = await work.status(id)
            print(status.status if status else "unknown")


if __name__ == "__main__":
    asyncio.run(main())
