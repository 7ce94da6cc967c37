"""The demonstration plays part of its day, during which its process is killed and restarted. The demonstration's judge
finds that no rule was broken.
"""

import subprocess
import sys

import pytest

from tests.faults.processes import ROOT


@pytest.mark.timeout(600)
def test_demonstration_keeps_its_promises_although_the_process_is_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert "kill -9" in done.stdout
    assert "Todas as garantias foram cumpridas" in done.stdout
