"""The demonstration ends by itself, in time, and finds nothing wrong."""

import subprocess
import sys

from tests.faults.processes import ROOT


def test_demonstration_ends_by_itself_and_sends_no_message_twice() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.demo"], cwd=ROOT, capture_output=True, text=True, timeout=75, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nenhuma pessoa recebeu mensagem repetida" in done.stdout
