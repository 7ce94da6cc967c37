"""Whoever is left when a parent is killed: its children and theirs.

The kernel ends a child with its parent (``die_with_parent``), but not what the child had started. So a small process of its own
waits for the parent's end, which nothing can hide: the other end of a pipe closes. Then it ends every group it was told of.
"""

import os
import subprocess
from collections.abc import Iterable

SCRIPT = """trap '' HUP INT TERM
while read -r told; do groups=$told; done
for group in ${groups:-}; do kill -s KILL -- "$group"; done"""
PATIENCE = 2.0


class Undertaker:
    """``told`` always says all of them; the last word counts."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def told(self, groups: Iterable[int]) -> None:
        if self._process is None or self._process.poll() is not None:
            self._close()
            self._process = self._start()
        self._say(" ".join(f"-{group}" for group in groups))

    def dismiss(self) -> None:
        """Everybody ended in an orderly way: nobody is to be looked for."""
        if self._process is None:
            return
        self._say("")
        self._close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> "subprocess.Popen[bytes] | None":
        try:
            started = subprocess.Popen(
                ["/bin/sh", "-c", SCRIPT, "batuta-undertaker"],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # what ends the parent's group must not end it
            )
        except OSError:
            return None  # no shell, or no room for another process: the children themselves end with their parent
        assert started.stdin is not None
        os.set_blocking(started.stdin.fileno(), False)
        return started

    def _say(self, groups: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(f"{groups}\n".encode())
        except OSError:
            return  # it has just ended: the next word starts another

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
