#!/usr/bin/env python3
"""Entry point for a fresh clone: `python3 dev.py WORD`.

Needs only Python 3.11 and pip: no venv package, no uv, no make, no root. If the environment in `.venv` is missing, each
command first creates it from a lock file with hashes.
"""

import difflib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
RUN_LOCK = ROOT / "requirements.lock"
DEV_LOCK = ROOT / "requirements-dev.lock"
# Lock files of other task queues. Only the benchmark uses them, each in its own environment.
PEER_LOCKS = ROOT / "bench" / "queue" / "locks"
PEERS = ROOT / ".venv-peers"

# The parts of `test`: a name, the options of pytest, and the number of concurrent tests per core. A test mostly waits
# for a database, a browser or a process, so more tests than cores run at the same time. Tests marked `calm` have a
# tight limit in real time and mostly wait, so they run last, without other tests. `check` runs at the same
# time as the first part.
TEST_PHASES = (
    ("tests", ["-m", "not calm"], 2.5),
    ("calm faults", ["tests/faults", "-m", "calm"], 3),
)
# Largest number of failed tests of a phase that are repeated alone. If more tests fail, the cause is not a busy
# machine.
MOST_REPEATED = 24

WORDS = {
    "run": "start the whole system on loopback and print its address",
    "test": "check and every test; with a path or -k, only those tests",
    "check": "format, lint, types, import contracts, documents; --fix corrects what it can",
    "bench": "measure store, scheduler and queue beside other queues, or kill workers (crashes); --quick is shorter",
    "faults": "the long fault runs, about an hour, or some of their files; --write updates the figures in docs/faults.md",
    "matrix": "every page and action in a real browser: both languages and themes, two widths, with and without JavaScript",
    "leitura": "score the readers of messages and spreadsheets on labelled data, each author left out in turn",
    "demo": "a working day of Julia in about a minute, with a kill and a verdict; two numbers play only these hours",
    "audit": "check the locked packages against --advisories FILE, list their licences, write an SBOM",
    "site": "build the documentation site into site/, and check its links",
    "wheel": "build the wheel of the library into dist/",
    "build": "build wheel and sdist, and try both in a clean environment with each Python from 3.11 to 3.14 on this machine",
    "setup": "create the environment and stop",
    "lock": "resolve the dependencies again and rewrite both lock files",
}


def main(arguments: list[str]) -> int:
    word, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if word in ("", "-h", "--help", "help"):
        print(usage())
        return 0
    if word not in WORDS:
        near = difflib.get_close_matches(word, WORDS, n=1)
        return refuse(f"dev.py has no command '{word}'{f': did you mean {near[0]}?' if near else '.'}\n\n{usage()}")
    if sys.version_info < (3, 11):
        return refuse(
            f"Python 3.11 or newer is required, this is {sys.version.split()[0]}: run `python3.11 dev.py {word}`."
        )
    os.chdir(ROOT)
    words = {"run": run, "test": test, "check": check, "bench": bench, "faults": faults, "demo": demo}
    words |= {"matrix": matrix, "leitura": leitura, "audit": audit, "site": site}
    return (words | {"wheel": wheel, "build": build, "setup": setup, "lock": lock})[word](rest)


def usage() -> str:
    lines = (f"  {word:7} {what}" for word, what in WORDS.items())
    return "usage: python3 dev.py WORD\n" + "\n".join(lines)


def run(rest: list[str]) -> int:
    ensure(RUN_LOCK)
    os.environ.setdefault("APP_ENV", "development")
    os.environ.setdefault("DEMO", "1")  # a demonstration in an empty database
    keep_compiled()
    become("-m", "batuta", "up", *rest)
    return 1


def test(rest: list[str]) -> int:
    if rest:
        ensure(DEV_LOCK)
        keep_compiled()
        return call("-m", "pytest", *rest)
    ensure(DEV_LOCK)
    times = Times()
    with ThreadPoolExecutor(1) as beside:
        checked = beside.submit(times.run, "check", sys.executable, str(ROOT / "dev.py"), "check")
        keep_compiled()
        # One process compiles all tests, so that the workers need not. An error in a test file appears in this phase.
        times.run("collect", str(PYTHON), "-m", "pytest", "--collect-only", quiet=True)
        codes = [run_phase(times, *phase) for phase in TEST_PHASES]
    print(times.table(), flush=True)
    return max(checked.result(), *codes)


def run_phase(times: "Times", name: str, selection: list[str], per_core: float) -> int:
    workers = min(8, max(1, int(per_core * (os.cpu_count() or 1))))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TEST_TIMES"] = f"{folder}/times"
        # Workers take single tests from each other, so that no file runs alone at the end.
        code = times.run(name, str(PYTHON), "-m", "pytest", *selection, "-n", str(workers), "--dist", "worksteal")
        times.read(Path(folder) / "times")
        failed = Path(folder) / "times.failed"
        again = failed.read_text().splitlines() if failed.exists() else []
        return repeat(times, name, again) if code == 1 and 0 < len(again) <= MOST_REPEATED else code


def repeat(times: "Times", phase: str, failed: list[str]) -> int:
    """Run a phase's failed tests once more, without the other tests, and return the exit code of that run.

    A test that passes this time is flaky. It does not stop the release, but its name is printed and it must be fixed.
    """
    code = times.run(f"{phase}, repeated", str(PYTHON), "-m", "pytest", *failed)
    times.unsteady += [] if code else failed
    return code


class Times:
    """Measures the duration of each phase and of each test."""

    def __init__(self) -> None:
        self.phases: dict[str, tuple[float, float]] = {}  # seconds, and processor seconds
        self.tests: dict[str, float] = {}
        self.unsteady: list[str] = []  # tests that failed together with other tests and passed alone
        self._began = time.monotonic()

    def run(self, phase: str, *command: str, quiet: bool = False) -> int:
        """Run a command as a phase and return its exit code. The phase's processor time does not include servers,
        because they detach themselves.
        """
        began = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL if quiet else None) as process:
            _, status, spent = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.phases[phase] = (time.monotonic() - began, spent.ru_utime + spent.ru_stime)
        return abs(process.returncode)

    def read(self, file: Path) -> None:
        """Read the duration of each test. Each line has the seconds, a space and the name of the test. Read nothing if
        there is no file, because pytest ended before its summary.
        """
        lines = file.read_text().splitlines() if file.exists() else []
        self.tests |= {name: float(seconds) for seconds, _, name in (line.partition(" ") for line in lines)}

    def table(self) -> str:
        files: dict[str, float] = {}
        for name, seconds in self.tests.items():
            file = name.partition("::")[0]
            files[file] = files.get(file, 0.0) + seconds
        total = (time.monotonic() - self._began, sum(busy for _, busy in self.phases.values()))
        phases = [*self.phases.items(), ("total", total)]  # phases overlap, so the total is less than their sum
        return "\n".join(
            [
                "seconds  of a processor  phase",
                *(f"{took:7.1f}  {busy:14.1f}  {name}" for name, (took, busy) in phases),
                "seconds  slowest files",
                *(f"{took:7.1f}  {name}" for name, took in _slowest(files)),
                "seconds  slowest tests",
                *(f"{took:7.1f}  {name}" for name, took in _slowest(self.tests)),
                *(
                    f"UNSTEADY: {name} failed once and passed alone; correct it before new work"
                    for name in self.unsteady
                ),
            ]
        )


def _slowest(spent: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(spent.items(), key=lambda each: -each[1])[:10]


def check(rest: list[str]) -> int:
    ensure(DEV_LOCK)
    fix = "--fix" in rest
    steps = {
        "format": ["-m", "ruff", "format", *([] if fix else ["--check"]), "."],
        "lint": ["-m", "ruff", "check", *(["--fix"] if fix else []), "."],
        "types": ["-m", "mypy"],
        "documents": ["-m", "scripts.reference", *([] if fix else ["--check"])],
        "imports": ["-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
    }
    # with --fix use one thread, because two checks that change files must not overlap
    with ThreadPoolExecutor(1 if fix else len(steps)) as at_once:
        codes = at_once.map(lambda step: call(*step, quiet=True), steps.values())
        failed = [name for name, code in zip(steps, codes, strict=True) if code != 0]
    print(
        f"check: {len(steps) - len(failed)} of {len(steps)} passed"
        + (f"; failed: {', '.join(failed)}" if failed else ""),
        flush=True,
    )
    return 1 if failed else 0


def bench(rest: list[str]) -> int:
    ensure(DEV_LOCK)
    if {"queue", "crashes"} & {*rest} or not {"store", "scheduler", "start", "-h", "--help"} & {*rest}:
        ensure_peers()
    return call("-m", "bench", *rest)


def faults(rest: list[str]) -> int:
    ensure(DEV_LOCK)
    keep_compiled()
    return call("-m", "tests.faults", *rest)


def matrix(rest: list[str]) -> int:
    ensure(DEV_LOCK)
    keep_compiled()
    os.environ["MATRIX"] = "full"
    pages = ["tests/engine/web/browser/test_matrix.py", "tests/julia/web/browser/test_matrix.py"]
    return call("-m", "pytest", *pages, "tests/julia/web/test_addresses.py", *rest)


def leitura(rest: list[str]) -> int:
    ensure(DEV_LOCK)
    return max(call("-m", "tests.julia.leitura_grupos.medir", *rest), call("-m", "tests.julia.agendamentos.medir"))


def demo(rest: list[str]) -> int:
    ensure(RUN_LOCK)
    keep_compiled()
    return call("-m", "scripts.demo", *rest)


def audit(rest: list[str]) -> int:
    ensure(DEV_LOCK)
    return call("-m", "scripts.audit", *rest)


def site(rest: list[str]) -> int:
    ensure(DEV_LOCK)
    return call("-m", "scripts.site", *rest)


def wheel(rest: list[str]) -> int:
    """Build the library's wheel, without the application, tests and examples. The build downloads hatchling from the
    package index.
    """
    uv = shutil.which("uv")
    pip = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-deps", "-q", "-w", "dist", "."]
    done = subprocess.run([uv, "build", "-q", "--wheel", "-o", "dist", "."] if uv else pip, check=False)
    for built in sorted((ROOT / "dist").glob("*.whl")) if done.returncode == 0 else ():
        print(built.relative_to(ROOT))
    return done.returncode


def build(rest: list[str]) -> int:
    ensure(DEV_LOCK)
    return call("-m", "scripts.package", *rest)


def setup(rest: list[str]) -> int:
    ensure(DEV_LOCK if "--dev" in rest else RUN_LOCK)
    print(f"{VENV} is ready")
    return 0


def lock(rest: list[str]) -> int:
    """Rewrite the lock files. They contain only names, versions and hashes, never the address from which a package
    came.
    """
    ensure(DEV_LOCK)
    compile_ = ["-m", "uv", "pip", "compile", "-q", "--universal", "--python-version", "3.11", "--generate-hashes"]
    nameless = ["--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate"]
    wanted = ["pyproject.toml", "--all-extras", "--group", "app"]
    ours = [(RUN_LOCK, wanted), (DEV_LOCK, [*wanted, "--group", "dev"])]
    peers = [(path.with_suffix(".lock"), [str(path)]) for path in sorted(PEER_LOCKS.glob("*.in"))]
    for path, sources in [*ours, *peers]:
        if call(*compile_, *nameless, *sources, *rest, "-o", str(path)) != 0:
            return 1
    return 0


def ensure(lock_file: Path) -> None:
    """Install the packages that `lock_file` pins into `.venv`, unless they are already there. The development lock file
    includes the packages of the run-time lock file.
    """
    stamps = {lock: VENV / f".{lock.stem}.sha256" for lock in (lock_file, DEV_LOCK)}
    enough = any(stamp.exists() and stamp.read_text() == fingerprint(lock) for lock, stamp in stamps.items())
    if enough and PYTHON.exists():
        return
    print(f"dev.py: preparing {VENV} from {lock_file.name} (once) ...", file=sys.stderr, flush=True)
    try:
        make_environment(lock_file)
    except OSError as error:
        sys.exit(f"dev.py: the environment could not be created: {error}. {pip_hint()}")
    stamps[lock_file].write_text(fingerprint(lock_file))


def ensure_peers() -> None:
    """Install each task queue with which the benchmark compares Batuta, in its own environment. Skip a task queue that
    cannot be installed; the benchmark then reports that it was not measured.
    """
    for lock_file in sorted(PEER_LOCKS.glob("*.lock")):
        folder = PEERS / lock_file.stem
        stamp = folder / ".sha256"
        if stamp.exists() and stamp.read_text() == fingerprint(lock_file):
            continue
        print(f"dev.py: preparing {folder} for the benchmark (once) ...", file=sys.stderr, flush=True)
        try:
            venv.EnvBuilder(with_pip=False, clear=True).create(folder)
            install(lock_file, folder / "bin" / "python")
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            print(f"dev.py: {lock_file.stem} will not be measured: {error}.", file=sys.stderr, flush=True)
        else:
            stamp.write_text(fingerprint(lock_file))


def fingerprint(lock_file: Path) -> str:
    return hashlib.sha256(lock_file.read_bytes() + sys.version.encode() + str(ROOT).encode()).hexdigest()


def make_environment(lock_file: Path) -> None:
    if not PYTHON.exists() or not works(PYTHON):
        # The environment has no pip, because it needs none, and on Debian ensurepip is a separate package.
        venv.EnvBuilder(with_pip=False, clear=True).create(VENV)
    install(lock_file, PYTHON)
    site_packages = next((VENV / "lib").glob("python3*/site-packages"))
    (site_packages / "batuta-checkout.pth").write_text(f"{ROOT / 'src'}\n{ROOT}\n")
    script = VENV / "bin" / "batuta"
    # Child processes of tasks import this file as a module, so it must not start the command again.
    start = "if __name__ == '__main__':\n    sys.exit(main())\n"
    script.write_text(f"#!{PYTHON}\nimport sys\n\nfrom batuta.__main__ import main\n\n{start}")
    script.chmod(0o755)


def install(lock_file: Path, python: Path) -> None:
    outside_pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "-q",
    ]
    uv = shutil.which("uv")
    installer = [uv, "pip", "install", "-q", "--python", str(python)] if uv else outside_pip
    done = subprocess.run([*installer, "--require-hashes", "-r", str(lock_file)], check=False, capture_output=True)
    if done.returncode != 0:
        sys.stderr.write((done.stdout + done.stderr).decode(errors="replace"))
        raise OSError(f"the installer ended with {done.returncode}")


def works(python: Path) -> bool:
    return (
        subprocess.run([str(python), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False).returncode
        == 0
    )


def pip_hint() -> str:
    has_pip = (
        subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    )
    if not has_pip:
        return f"{sys.executable} has no pip: install it (Debian: apt install python3-pip) and run this again."
    return (
        "The lines above show why; most often the package index is unreachable or the folder is read-only. "
        "Run this again after that is fixed."
    )


def call(*arguments: str, quiet: bool = False) -> int:
    """Run the Python interpreter of `.venv` with these arguments, and return its exit code. With `quiet`, show the
    output only if the command fails.
    """
    done = subprocess.run(
        [str(PYTHON), *arguments],
        check=False,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
    )
    if quiet and done.returncode != 0:
        sys.stdout.write(done.stdout.decode(errors="replace"))
    return done.returncode


def keep_compiled() -> None:
    """Store compiled bytecode. `test`, `run` and `demo` start many processes, and each would otherwise compile
    everything again.

    If PYTHONDONTWRITEBYTECODE is set, the bytecode is stored in the environment instead of next to the sources.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = str(VENV / "compiled")


def become(*arguments: str) -> None:
    sys.stdout.flush()
    os.execv(PYTHON, [str(PYTHON), *arguments])


def refuse(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
