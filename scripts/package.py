"""Build wheel and sdist, and try them in clean environments: ``python -m scripts.package``.

For each Python from 3.11 to 3.14 on this machine, a new environment gets the wheel, and the packages of its extras from
the package index. A program then enqueues a task, a worker in the same process runs it, and the time of ``import
batuta`` is measured. The last environment gets the sdist instead. The script needs the package index.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = "web,http,postgres,redis,otel"
# Longest time of ``import batuta`` in milliseconds. Programs on a slow machine must still start quickly.
LONGEST_IMPORT = 150
PROGRAM = """
import asyncio, sys, warnings
warnings.simplefilter("error")
from batuta import Batuta
import batuta.arq, batuta.otel, batuta.testing, batuta.web

work = Batuta("sqlite:///try.db", timezone="UTC")

@work.task()
async def double(n: int) -> int:
    return 2 * n

async def main() -> None:
    async with work.running("worker"):
        assert await (await double.enqueue(21)).result(timeout=60) == 42

asyncio.run(main())
"""
TIMED = "import time; start = time.perf_counter(); import batuta; print((time.perf_counter() - start) * 1000)"


def main(arguments: Sequence[str]) -> int:
    uv = [sys.executable, "-m", "uv"]
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([*uv, "build", "-q", "-o", str(DIST), str(ROOT)], check=True)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    print(f"built {wheel.name} and {sdist.name}", flush=True)
    found = {version: interpreter(version) for version in VERSIONS}
    trials = [(version, python, wheel) for version, python in found.items() if python is not None]
    trials += [(version, python, sdist) for version, python, _ in trials[-1:]]
    failed = 0
    for version, python, package in trials:
        problem, imported = try_package(uv, python, package)
        failed += problem is not None
        print(
            f"{version} {package.suffix[1:]}: {problem or f'works, import batuta takes {imported:.0f} ms'}", flush=True
        )
    for version in (version for version, python in found.items() if python is None):
        print(f"{version}: not tried, because this machine does not have it")
    return 1 if failed or not trials else 0


def interpreter(version: str) -> Path | None:
    """Return the interpreter for a Python version, from pyenv or from the PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [*sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True)]
    places += [Path(found) for found in (shutil.which(f"python{version}"), sys.executable) if found]
    return next((place for place in places if _version(place) == version), None)


def _version(python: Path) -> str:
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()


def try_package(uv: Sequence[str], python: Path, package: Path) -> tuple[str | None, float]:
    """Try the package in a new environment. Return the problem or None, and the shortest of fifteen durations of ``import
    batuta`` in milliseconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder) / "env" / "bin" / "python"
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BATUTA", "DATABASE"))
        }
        steps = (
            [*uv, "venv", "-q", "--python", str(python), f"{folder}/env"],
            [*uv, "pip", "install", "-q", "--python", str(inside), f"batuta[{EXTRAS}] @ {package.as_uri()}"],
            [str(inside), "-c", PROGRAM],
            [str(inside.with_name("batuta")), "--version"],
        )
        for step in steps:
            done = subprocess.run(step, cwd=folder, env=clean, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return f"{' '.join(step[:6])} failed:\n{done.stdout}{done.stderr}", 0
        times = [
            float(subprocess.run([inside, "-c", TIMED], cwd=folder, env=clean, capture_output=True, check=True).stdout)
            for _ in range(15)
        ]
    problem = (
        f"import batuta takes {min(times):.0f} ms, more than {LONGEST_IMPORT}" if min(times) > LONGEST_IMPORT else None
    )
    return problem, min(times)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
