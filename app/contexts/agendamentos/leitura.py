"""Has a stranger's file read by a child process, and waits no longer than it may."""

import asyncio
import sys
from datetime import timedelta
from typing import Any, Final

from app.contexts.agendamentos.leitor import OUT_OF_MEMORY
from app.contexts.agendamentos.linhas import Lida, Motivo, Problema, Recusa, Reparo
from batuta.guard.deadline import within
from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded
from batuta.kernel.json import loads

READ_WITHIN: Final = timedelta(seconds=20)
# Files that are read at once in one process: each may take the memory of one child.
AT_A_TIME: Final = 2


class Leitura:
    def __init__(self, clock: Clock, *, read_within: timedelta = READ_WITHIN, at_a_time: int = AT_A_TIME) -> None:
        self._clock = clock
        self._within = read_within
        self._places = asyncio.Semaphore(at_a_time)

    async def ler(self, content: bytes, name: str) -> Lida:
        """Raises ``Recusa``."""
        async with self._places:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "app.contexts.agendamentos.leitor",
                name[-200:],
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                said, _ = await within(self._within, child.communicate(content), self._clock, "reading a spreadsheet")
            except DeadlineExceeded:
                raise Recusa(Motivo.DEMORADA, segundos=int(self._within.total_seconds())) from None
            finally:
                if child.returncode is None:
                    child.kill()
                    await child.wait()
        if child.returncode:
            raise Recusa(Motivo.PESADA if child.returncode in _KILLED_BY_LIMITS else Motivo.ILEGIVEL)
        return _lida(loads(said))


# Out of memory where Python noticed it, where Rust did (abort), and out of time.
_KILLED_BY_LIMITS: Final = (OUT_OF_MEMORY, -6, -9, -11, -24)


def _lida(answer: Any) -> Lida:
    if "recusada" in answer:
        raise Recusa(Motivo(answer["recusada"]), **answer["facts"])
    return Lida(
        linhas=answer["linhas"],
        total=answer["total"],
        puladas=answer["puladas"],
        erros=[_reparo(each) for each in answer["erros"]],
        avisos=[_reparo(each) for each in answer["avisos"]],
    )


def _reparo(told: dict[str, Any]) -> Reparo:
    return Reparo(told["linha"], told["coluna"], Problema(told["problema"]))
