"""The full check `.ci/run` on a machine that has none of the required programs. A stub script replaces each program
that the check calls.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REAL = ("bash", "dirname", "mktemp", "cat", "rm", "chmod")
# Installs a package by creating a program with the same name.
APT = """
echo "$@" >> "$CALLS"
[ "$4" = install ] || exit 0
[ -z "$REFUSE" ] || { echo "E: Unable to locate package"; exit 100; }
for package in "${@: 7}"; do
  echo '#!/bin/bash' > "$BIN/$package"
  chmod +x "$BIN/$package"
done
"""


class Machine:
    """A simulated machine with its own PATH, a checkout that contains only `.ci/run`, and a record of the apt-get
    calls.
    """

    def __init__(self, folder: Path) -> None:
        self.bin, self.calls = folder / "bin", folder / "calls"
        self.bin.mkdir()
        (folder / "checkout" / ".ci").mkdir(parents=True)
        self.script = folder / "checkout" / ".ci" / "run"
        shutil.copy(ROOT / ".ci" / "run", self.script)
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name) or name)
        self.put(
            "make", 'echo "make $* REQUIRE=$BATUTA_REQUIRE_SERVERS"; echo "1 passed in 0.01s"; exit ${MAKE_CODE:-0}'
        )
        self.put("git", ":")
        self.put("pgbouncer", ":")
        self.put("python3", ":")
        self.put("uname", "echo ${MACHINE:-x86_64}")
        self.be_user(0)

    def be_user(self, number: int) -> None:
        self.put("id", f"echo {number}")

    def put(self, name: str, what: str) -> None:
        program = self.bin / name
        program.write_text(f"#!/bin/bash\n{what}\n")
        program.chmod(0o755)

    def put_apt(self) -> None:
        self.put("apt-get", APT)

    def run(self, **env: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "BIN": str(self.bin), "CALLS": str(self.calls), **env}
        return subprocess.run([self.script], env=environment, capture_output=True, text=True, check=False, timeout=60)

    def installed(self) -> list[str]:
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [call.partition("--no-install-recommends ")[2] for call in calls if "install" in call.split()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_bare_machine_gets_missing_programs_and_then_the_tests_run(machine: Machine) -> None:
    machine.put_apt()
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["make test REQUIRE=1", "1 passed in 0.01s"]
    assert machine.installed()[0] == "chromium"
    assert done.stderr == ".ci/run: installing chromium\n"


def test_second_run_installs_nothing(machine: Machine) -> None:
    machine.put_apt()
    machine.run()
    machine.calls.unlink()
    again = machine.run()
    assert (again.returncode, again.stderr, machine.calls.exists()) == (0, "", False)


def test_browser_of_another_name_is_accepted(machine: Machine) -> None:
    machine.put("google-chrome", ":")
    assert machine.run().returncode == 0
    (machine.bin / "google-chrome").unlink()
    assert machine.run(BATUTA_CHROMIUM="/opt/chromium").returncode == 0


def test_machine_without_wheels_gets_the_servers_too(machine: Machine) -> None:
    machine.put_apt()
    machine.put("initdb", ":")
    assert machine.run(MACHINE="riscv64").returncode == 0
    assert machine.installed()[0] == "chromium redis-server"


@pytest.mark.parametrize("why", ["no root", "no apt-get", "the package cannot be installed"])
def test_script_lists_packages_that_it_cannot_install_and_runs_no_test(machine: Machine, why: str) -> None:
    env = {"REFUSE": "1"} if why == "the package cannot be installed" else {}
    if why != "no apt-get":
        machine.put_apt()
    if why == "no root":
        machine.be_user(1000)
    done = machine.run(**env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(
        ".ci/run: the full check needs chromium: install them (Debian, as root: apt-get install chromium) and run it again.\n"
    )


def test_exit_code_of_the_tests_is_the_exit_code_of_the_script(machine: Machine) -> None:
    machine.put("chromium", ":")
    assert machine.run(MAKE_CODE="2").returncode == 2
