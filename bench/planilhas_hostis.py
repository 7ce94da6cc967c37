"""Measure what it costs to read hostile files, each in a fresh process: ``python -m bench.planilhas_hostis``.

Memory is the growth of this process since it was idle, plus all memory of the child process that opens the file.
"""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from app.contexts.agendamentos.planilha.arquivo import MOST_ROWS
from app.contexts.agendamentos.planilha.linhas import Recusa
from app.contexts.agendamentos.planilha.processo import LeitorDeArquivos
from batuta.kernel.clock import SystemClock
from tests.julia.agendamentos.sheets import HEADER, patient, xlsx
from tests.julia.agendamentos.test_planilhas_hostis import hostile, with_sheet

MOST_MIB, MOST_SECONDS = 150, 5.0
# A harmless file with the largest number of rows, for comparison.
LARGEST = "(the largest number of rows)"
HERE = Path(__file__).parents[1]


def main(arguments: Sequence[str]) -> int:
    if arguments:
        print(json.dumps(asyncio.run(_read(Path(arguments[0])))))
        return 0
    worst_memory, worst_time, missed = 0.0, 0.0, 0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for name, content in _files():
            path = Path(folder) / "agenda.xlsx"
            path.write_bytes(content)
            command = [sys.executable, "-m", "bench.planilhas_hostis", str(path)]
            measured = json.loads(subprocess.run(command, cwd=HERE, check=True, capture_output=True).stdout)
            if name != LARGEST:
                missed += measured["mib"] > MOST_MIB or measured["seconds"] > MOST_SECONDS
                worst_memory, worst_time = max(worst_memory, measured["mib"]), max(worst_time, measured["seconds"])
            print(
                f"{name:45} {measured['seconds']:6.2f} s {measured['mib']:7.1f} MiB above idle  {measured['said']}",
                flush=True,
            )
    print(
        f"at most {worst_time:.2f} s (bar {MOST_SECONDS:g} s) and {worst_memory:.1f} MiB above idle (bar {MOST_MIB} MiB):"
        f" {'met' if not missed else f'missed by {missed}'}"
    )
    return 0


def _files() -> Iterator[tuple[str, bytes]]:
    chance = random.Random(20260311)
    for name, content, _ in hostile():
        yield name, content()
    yield "a million empty rows", with_sheet("".join(f'<row r="{n}"/>' for n in range(3, 1_000_003)))
    cells = '<row r="{0}"><c r="A{0}" s="1"/><c r="J{0}" s="1"/></row>'
    yield "formatted empty cells", with_sheet("".join(cells.format(n) for n in range(60_000, 160_000)))
    texts = (chance.randbytes(10_000).hex() for _ in range(200))
    yield "texts of 20,000 characters", xlsx([HEADER, *(patient(n, Observações=text) for n, text in enumerate(texts))])
    yield "a header that occurs twice", xlsx([[*HEADER, "Nome do Paciente"], [*patient(), "Outra"]])
    yield "days from 1904", xlsx([HEADER, patient(Data=46092)], workbook='<workbookPr date1904="1"/>')
    noted = (patient(n, Observações=chance.randbytes(8).hex()) for n in range(MOST_ROWS - 1))
    yield LARGEST, xlsx([HEADER, *noted])


async def _read(path: Path) -> dict[str, object]:
    content, leitura = path.read_bytes(), LeitorDeArquivos(SystemClock())
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak, so that it counts from this point
    idle, began, watch = _memory("VmRSS"), time.perf_counter(), Watch()
    watch.start()
    try:
        rows = 0
        async with leitura.aberta(content, path.name) as folha:
            async for pedaco in folha.pedacos():
                rows += len(pedaco.linhas)
        said = f"{rows:,d} rows, {len(pedaco.avisos):,d} warnings"
    except Recusa as refused:
        said = f"refused: {refused.motivo.value}"
    took = time.perf_counter() - began
    watch.over.set()
    watch.join()
    return {"seconds": took, "mib": _memory("VmHWM") - idle + watch.peak, "said": said}


class Watch(threading.Thread):
    """Thread that samples the child processes' peak memory every few milliseconds. The operating system's figure for a
    finished child would include memory inherited from its parent.
    """

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()
        self.peak = 0.0
        self._own = Path("/proc/self/cmdline").read_bytes()

    def run(self) -> None:
        while not self.over.wait(0.003):
            for listed in Path("/proc/self/task").glob("*/children"):
                for child in listed.read_text().split():
                    with suppress(OSError, StopIteration):  # the child has just ended
                        if (
                            Path(f"/proc/{child}/cmdline").read_bytes() != self._own
                        ):  # before its exec, the child is a copy of this process
                            self.peak = max(self.peak, _memory("VmHWM", child))


def _memory(what: str, process: str = "self") -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
