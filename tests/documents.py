"""Run the code blocks of a document as a program: write its files, run its commands in order, and compare their output
with the output shown.

- A block of Python, TOML or SQL is a file if the paragraph above it names the file and ends with a colon: "Save this as
  `shop.py`:". "Add this to `shop.py`:" appends the block to the file.
- A `console` block shows commands after `$ ` and their output. Times, durations, ids and widths of columns may differ; `…`
  stands for any text, and a line that is only `…` for any number of lines.
- A `sh` block shows commands without output. Each must succeed. With an `export` the block is one script.
- A command that serves (`batuta up`, `make run`) keeps running until the document ends.
- `localhost:6379` and `postgresql://localhost:5432/shop` are replaced by servers of the test.
"""

import contextlib
import io
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from batuta.cli import main
from tests import ROOT
from tests.servers import free_port

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDED = re.compile(r"\b[Aa]dd this to `[^`]+`:\s*\Z")
FILE_NAME = re.compile(r"`([\w./-]+\.(?:py|toml|sql|j2))`[^`]*:\s*\Z")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
RUN = ("sh", "console", "python")
SERVES = ("batuta up", "APP_ENV=development batuta up", "make run")
ADDRESS = "127.0.0.1:8000"
REDIS = "localhost:6379"
POSTGRES = "postgresql://localhost:5432/shop"
SHELL_SIGNS = frozenset("|&;<>$`*~\\\n")
# Parts of an output that differ between runs.
VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?([+-]\d\d:\d\d|Z)?"), "TIME"),
    (re.compile(r"\b(\d\d-\d\d )?\d\d:\d\d(:\d\d)?\b"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|min|h)\b"), "DURATION"),
    (re.compile(r"[─-]{3,}"), "---"),
)


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    heading: str
    file: str | None  # the file that contains the block
    is_added: bool = False  # the file exists, and the block is appended to it


def blocks(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    found, heading, end = [], "", 0
    for fence in FENCE.finditer(text):
        *_, heading = [heading, *HEADING.findall(text[end : fence.start()])]
        end = fence.end()
        paragraph = text[: fence.start()].rstrip().rpartition("\n\n")[2]
        named, is_added = FILE_NAME.search(paragraph), ADDED.search(paragraph) is not None
        found.append(Block(fence[1], fence[2], heading, named[1] if named else None, is_added))
    return found


def commands(block: Block) -> Iterator[tuple[str, list[str] | None]]:
    """Yield each command with the output that the document shows for it, or None if the document shows none."""
    if block.language == "sh":
        lines = [line for line in block.text.splitlines() if line.strip() and not line.startswith("#")]
        if any(line.startswith("export ") for line in lines):
            yield "\n".join(["set -e", *lines]), None
        else:
            yield from ((line, None) for line in lines)
        return
    command, output = "", list[str]()
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], []
        else:
            output.append(line)
    yield command, output


def alike(shown: Sequence[str], printed: Sequence[str]) -> bool:
    pattern = "".join(
        r"(?:.*\n)*"
        if line.strip() == "…"
        else ".*".join(re.escape(_steady(part)) for part in line.split("…")) + r"\s*\n"
        for line in _filled(shown)
    )
    return re.fullmatch(pattern, "".join(f"{_steady(line)}\n" for line in _filled(printed))) is not None


def renew(text: str, document: Sequence[Block], session: "Session") -> str:
    """Return the document's text with outdated command output replaced by the current output."""
    for block in document:
        if block.file is not None:
            session.write(block)
        elif block.language in ("sh", "console"):
            lines = list[str]()
            for command, shown in commands(block):
                printed = session.run(command, shown)
                lines += [
                    f"$ {command}",
                    *(printed if shown is not None and not alike(shown, printed) else shown or []),
                ]
            if block.language == "console":
                text = text.replace(f"```console\n{block.text}```", "\n".join(["```console", *lines, "```"]))
    return text


def _filled(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def _steady(line: str) -> str:
    for pattern, name in VARYING:
        line = pattern.sub(name, line)
    return re.sub(r"\s+", " ", line).strip()


@dataclass
class Session:
    """Runs one document in its own folder. The caller sets the environment and the working directory."""

    folder: Path
    port: int = field(default_factory=free_port)
    servers: Mapping[str, str] = field(default_factory=dict)  # maps addresses in the document to those in the test
    _serving: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def write(self, block: Block) -> None:
        assert block.file is not None
        path = Path.cwd() / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        before = f"{path.read_text(encoding='utf-8')}\n\n" if block.is_added else ""
        path.write_text(before + self._replace(block.text), encoding="utf-8")
        sys.modules.pop(path.stem, None)

    def run(self, command: str, shown: list[str] | None) -> list[str]:
        """Run a command and return the lines that it prints. If the document has started a server, repeat the command
        until it prints the expected lines.
        """
        command = self._replace(command.replace(ADDRESS, f"127.0.0.1:{self.port}"))
        if command.startswith(SERVES):
            self._serve(command)
            return shown or []
        if command.startswith("cd "):
            os.chdir(command.removeprefix("cd "))
            return []
        code, printed = self._call(command)
        assert code == 0 or shown is not None, f"$ {command}\nended with {code}:\n{printed}"
        for process in self._serving * 50:  # the server may need a moment for its work
            if shown is None or alike(shown, printed.splitlines()):
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
            _, printed = self._call(command)
        return [line.rstrip() for line in printed.replace(f":{self.port}", ":8000").splitlines() if line.strip()]

    def _replace(self, text: str) -> str:
        for written, actual in self.servers.items():
            text = text.replace(written, actual)
        return text

    def _call(self, command: str) -> tuple[int, str]:
        plain = command.partition("  #")[0]
        words = [] if SHELL_SIGNS & {*plain} else shlex.split(plain)
        if words and words[0] in ("batuta", ".venv/bin/batuta"):
            return _captured(lambda: main(words[1:]))
        if words[:1] == ["python"] and words[1].endswith(".py"):
            return _captured(lambda: _run_file(words[1]))
        done = subprocess.run(
            ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return done.returncode, done.stdout

    def _serve(self, command: str) -> None:
        where = ROOT if command.startswith("make") else Path.cwd()
        with (self.folder / "serving.log").open("ab") as log:
            process = subprocess.Popen(
                ["env", *shlex.split(command)], cwd=where, stdout=log, stderr=log, start_new_session=True
            )
        self._serving.append(process)
        ready = f"http://127.0.0.1:{self.port}/health/ready?strict=1"
        waiting = ["curl", "-sf", "--retry", "120", "--retry-all-errors", "--retry-delay", "1", ready]
        answered = subprocess.run(waiting, capture_output=True, check=False)
        assert answered.returncode == 0, (self.folder / "serving.log").read_text()

    def end(self) -> None:
        for process in self._serving:
            os.killpg(process.pid, signal.SIGINT)  # like Ctrl-C
        for process in self._serving:
            process.wait(60)


def _captured(call: Callable[[], int]) -> tuple[int, str]:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            return call(), output.getvalue()
        except SystemExit as end:
            return int(end.code or 0), output.getvalue()


def _run_file(name: str) -> int:
    # The path is absolute, as with `python`, because a child process resolves a relative path in the first working
    # folder.
    runpy.run_path(str(Path(name).resolve()), run_name="__main__")
    return 0
