"""Functions that are accepted now and run for sure: `batuta --app examples.tarefas:work worker`.

python -m examples.tarefas          enqueues three of them and shows what became of them so far
"""

import asyncio

from batuta import Batuta, Failed, TaskContext

work = Batuta("sqlite:///tarefas.db", timezone="America/Sao_Paulo")


@work.task(retry=[60, 120], timeout=300, keep_result=3600)
async def normalizar(context: TaskContext, texto: str) -> str | Failed:
    if not texto.strip():
        return Failed("nothing to normalise", permanent=True)
    return " ".join(texto.split()).title()


async def main() -> None:
    async with work:
        # Returned means synced to disk. While one with the same key is alive, a second one is not made.
        first = await work.enqueue(normalizar, "  rua   das flores ", key="endereco-1")
        again = await work.enqueue(normalizar, "  rua   das flores ", key="endereco-1")
        others = await work.enqueue_many(normalizar, [["av. brasil"], [""]])
        print("accepted", len({first, again, *others}))
        for id in (first, *others):
            status = await work.status(id)
            print(status.status if status else "unknown")


if __name__ == "__main__":
    asyncio.run(main())
