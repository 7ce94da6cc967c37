"""Read an untrusted file in a child process, batch by batch, with time limits.

The child waits while the pipe and one buffer are full, so neither process ever holds all rows in memory.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, Final

from app.contexts.agendamentos.planilha.aba import NENHUMA
from app.contexts.agendamentos.planilha.leitor import LENGTH, OUT_OF_MEMORY
from app.contexts.agendamentos.planilha.linhas import MotivoDaLinha, Pedaco, PlanilhaLida, Problema, Recusa, Reparo
from batuta.config import environment
from batuta.errors import DeadlineExceeded
from batuta.kernel import Clock, dumps, loads, with_timeout

READ_WITHIN: Final = timedelta(seconds=20)  # time limit for opening a file, and for the wait between two batches
# Maximum number of files that one process reads concurrently; each may need the memory limit of one child.
AT_A_TIME: Final = 2
AHEAD: Final = 512 * 1024  # half of the bytes that the child may send before the parent reads them
LONGEST_FRAME: Final = 16 * 1024 * 1024


# Environment variables that Python needs to start. The child gets no others, because secrets must not reach a process
# that opens untrusted files.
NEEDED: Final = frozenset(
    {"PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "LD_LIBRARY_PATH", "LANG", "TZ"}
)


def child_environment(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name in NEEDED}


def name_first(name: str, escolhidas: Mapping[str, str]) -> bytes:
    """Return the first frames of the child's input: the file's name and the chosen columns. They are not passed as
    command-line arguments, because those are visible in the process list.
    """
    frames = (name[-200:].encode("utf-8", "replace"), dumps(dict(escolhidas)).encode())
    return b"".join(len(said).to_bytes(LENGTH, "big") + said for said in frames)


class Interrompida(Exception):
    """Raised when the child process that reads a spreadsheet dies or stalls after the file passed the checks. The
    caller may open the file again.
    """


class ArquivoAberto:
    """A file that can be imported. ``altura`` is its number of rows, including empty rows and those above
    the header.
    """

    def __init__(
        self, child: asyncio.subprocess.Process, opened: Mapping[str, Any], clock: Clock, read_within: timedelta
    ) -> None:
        self.altura = int(opened["altura"])
        self.colunas: dict[str, str] = opened["colunas"]  # the field of each title whose column is read
        self.forma: str = opened["forma"]
        self._child = child
        self._clock = clock
        self._within = read_within

    async def pedacos(self) -> AsyncIterator[Pedaco]:
        """Yield all batches of rows. Raises ``Interrompida`` if the child dies or stalls."""
        for _ in range(self.altura + 1):
            try:
                said = await with_timeout(self._within, _frame(self._child), self._clock, "reading a spreadsheet")
            except (asyncio.IncompleteReadError, DeadlineExceeded):
                raise Interrompida from None
            pedaco = _pedaco(said)
            yield pedaco
            if pedaco.is_last:
                return


class LeitorDeArquivos:
    def __init__(self, clock: Clock, *, read_within: timedelta = READ_WITHIN, at_a_time: int = AT_A_TIME) -> None:
        self._clock = clock
        self._within = read_within
        self._places = asyncio.Semaphore(at_a_time)

    @asynccontextmanager
    async def aberta(
        self, content: bytes, name: str, apos: int = 0, escolhidas: Mapping[str, str] = NENHUMA
    ) -> AsyncIterator[ArquivoAberto]:
        """Open a file in a child process. Rows up to line ``apos`` are skipped. ``escolhidas`` has the fields that a
        person chose for column titles. ``Recusa`` is raised only while the file is opened, never while its rows are
        read.
        """
        async with self._places:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "app.contexts.agendamentos.planilha.leitor",
                str(apos),
                env=child_environment(environment()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=AHEAD,
            )
            try:
                opened = await self._open(child, name_first(name, escolhidas) + content)
                yield ArquivoAberto(child, opened, self._clock, self._within)
            finally:
                if child.returncode is None:
                    child.kill()
                await child.communicate()  # drain the pipe: a child with unread output never exits

    async def ler(self, content: bytes, name: str, escolhidas: Mapping[str, str] = NENHUMA) -> PlanilhaLida:
        """Read a whole file into memory. Raises ``Recusa`` if the file is refused."""
        linhas: list[Any] = []
        try:
            async with self.aberta(content, name, escolhidas=escolhidas) as folha:
                async for pedaco in folha.pedacos():
                    linhas += pedaco.linhas
        except Interrompida:
            raise Recusa(MotivoDaLinha.ILEGIVEL) from None
        return PlanilhaLida(
            linhas=linhas, total=pedaco.total, puladas=pedaco.puladas, erros=pedaco.erros, avisos=pedaco.avisos
        )

    async def _open(self, child: asyncio.subprocess.Process, content: bytes) -> dict[str, Any]:
        try:
            said = await with_timeout(self._within, _send_content(child, content), self._clock, "opening a spreadsheet")
        except DeadlineExceeded:
            raise Recusa(MotivoDaLinha.DEMORADA, segundos=int(self._within.total_seconds())) from None
        except asyncio.IncompleteReadError:
            code = await child.wait()
            raise Recusa(MotivoDaLinha.PESADA if code in _KILLED_BY_LIMITS else MotivoDaLinha.ILEGIVEL) from None
        if "recusada" in said:
            raise Recusa(MotivoDaLinha(said["recusada"]), **said["facts"])
        return dict(said)


# Exit codes: out of memory in Python, out of memory in Rust (abort), and out of time.
_KILLED_BY_LIMITS: Final = (OUT_OF_MEMORY, -6, -9, -11, -24)


async def _send_content(child: asyncio.subprocess.Process, content: bytes) -> Any:
    assert child.stdin is not None
    child.stdin.write(content)
    with suppress(BrokenPipeError, ConnectionResetError):  # the child stopped reading its input; its answer follows
        await child.stdin.drain()
        child.stdin.close()
    return await _frame(child)


async def _frame(child: asyncio.subprocess.Process) -> Any:
    assert child.stdout is not None
    length = int.from_bytes(await child.stdout.readexactly(LENGTH), "big")
    if length > LONGEST_FRAME:
        raise asyncio.IncompleteReadError(b"", length)
    return loads(await child.stdout.readexactly(length))


def _pedaco(said: Any) -> Pedaco:
    reparos = {name: [_reparo(each) for each in said[name]] for name in ("erros", "avisos")}
    return Pedaco(**(said | reparos))


def _reparo(document: dict[str, Any]) -> Reparo:
    return Reparo(**(document | {"problema": Problema(document["problema"])}))
