"""Measure how long the message reader blocks its worker's event loop when it reads texts of 64 KiB: ``python -m
bench.bloqueio``.

The reader runs in a thread, as in the worker, while a task on the event loop wakes up every millisecond. Between two
wake-ups the process may use at most 100 ms of processor time. Processor time is measured, because other programs use
the machine too.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from app.contexts.esteira.leituras import LONGEST_READ
from app.contexts.esteira.pseudonimos import cobrir
from app.contexts.leitura_conversas.api import ler as ler_conversa
from app.contexts.leitura_grupos.api import Vocabulario, heuristica, ler

NOW = datetime(2026, 8, 3, 12, tzinfo=UTC)
MOST_SECONDS = 0.1
OFFER = "📅 10/08 sáb das 07h às 19h - UPA Exemplo - clínica médica - R$ 1.500,00 PJ. Falar com Fulana 91 98100-0001"
PUMPS = {
    "offers": f"{OFFER}\n",
    "one line of offers": f"{OFFER} ",
    "spaces": " ",
    "line breaks": "\n",
    "digits": "1",
    "days": "1 ",
    "dates": "10/08 ",
    "prices": "R$ 1.500 ",
    "phones": "91 98100-0001 ",
    "dashes": "-",
    "letters": "a",
    "words": "plantao ",
    "streets": "rua ",
    "titles": "Dra. Ana ",
    "table": "| 10 | SD | R$ 1.500 |\n",
    "brackets": "((((",
    "accents": "\u0301",
    "emoji": "📅",
    "questions": "quando paga? ",
}


async def longest_block(read: Callable[[str], object], text: str) -> tuple[float, float]:
    """Return the longest processor time between two wake-ups of the event loop, and the total processor time."""
    began = last = time.process_time()
    longest, reading = 0.0, asyncio.create_task(asyncio.to_thread(read, text))
    while not reading.done():
        await asyncio.sleep(0.001)
        now = time.process_time()
        longest, last = max(longest, now - last), now
    await reading
    return longest, time.process_time() - began


def main(arguments: Sequence[str]) -> int:
    vocabulary = Vocabulario.padrao()
    readers: Mapping[str, Callable[[str], object]] = {
        "heuristic": lambda text: heuristica(text, vocabulario=vocabulary),
        "reader": lambda text: ler(text, enviado_em=NOW, regiao="Belém/PA", vocabulario=vocabulary),
        "before the model": lambda text: cobrir(text, NOW.date(), vocabulary),
        "conversation": ler_conversa,
    }
    for read in readers.values():
        read(OFFER)  # the first call loads the model and the word lists
    worst = 0.0
    for name, pump in PUMPS.items():
        text = (pump * (LONGEST_READ // len(pump) + 1))[:LONGEST_READ]
        for kind, read in readers.items():
            blocked, took = asyncio.run(longest_block(read, text))
            worst = max(worst, blocked)
            mark = "  TOO LONG" if blocked > MOST_SECONDS else ""
            print(f"{name:20} {kind:17} blocked {1000 * blocked:5.0f} ms, took {1000 * took:6.0f} ms{mark}", flush=True)
    print(f"longest block {1000 * worst:.0f} ms, at most {1000 * MOST_SECONDS:.0f} ms allowed")
    return int(worst > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
