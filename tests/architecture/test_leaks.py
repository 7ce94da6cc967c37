"""If a failed test leaks a connection, no other test fails because of it. If a passing test leaks one, the run
fails.
"""

import subprocess
import sys
from pathlib import Path

from tests import ROOT

LEAKS = """
import gc, socket

def test_fails_and_leaks():
    leaked = [socket.socket()]
    leaked.append(leaked)
    assert not leaked

def test_after_the_failure():
    gc.collect()

def test_leaks_alone():
    leaked = [socket.socket()]
    leaked.append(leaked)
    del leaked
    gc.collect()
"""


def test_leak_of_a_failed_test_fails_no_other_test(tmp_path: Path) -> None:
    (tmp_path / "test_leak.py").write_text(LEAKS)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nfilterwarnings = error\naddopts = -rA -p tests.leaks -p no:schemathesis\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    summary = {line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("PASSED", "FAILED"))}
    assert {line.replace(" ", "::").split("::")[-1] for line in summary if line.startswith("PASSED")} == {
        "test_after_the_failure"
    }, done.stdout
