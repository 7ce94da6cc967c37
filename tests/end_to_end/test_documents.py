"""Every command and every program in the documents works exactly as written.

``python -m tests.end_to_end.test_documents docs/tutorial.md`` updates the output that a document shows.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests import ROOT
from tests.conftest import lack
from tests.documents import POSTGRES, REDIS, RUN, Block, Session, alike, blocks, commands, renew
from tests.servers import free_port, postgres_server, redis_server

# Documents, or sections of documents, whose blocks this test does not run, each with the reason.
NOT_RUN = {
    "CONTRIBUTING.md#Contributing": "rewrites files, and runs this very test",
    "README.md#Install": "installs from a package index; test_wheel_and_sdist_contain_only_the_library builds the wheel",
    "docs/conversas.md": "tests/end_to_end/test_operators_manual.py runs its commands",
    "docs/deploy.md#Backups": "needs root, or containers of yours",
    "docs/deploy.md#systemd": "needs root and systemd",
    "docs/grupos.md": "tests/end_to_end/test_operators_manual.py runs its commands, tests/julia/webhooks/test_api.py its call",
    "docs/lgpd.md": "tests/end_to_end/test_operators_manual.py runs its commands",
    "docs/operacao.md": "tests/end_to_end/test_operators_manual.py runs its commands",
    "docs/operations.md": "tests/end_to_end/test_operators_manual.py runs its commands",
    "docs/queue-sql.md": "scripts/queue_sql.py writes the statements from the code, and a test compares them",
    "docs/tutorial.md#1. Install": "installs from a package index",
}
# Languages of code blocks with drawings and listings. A test checks that they contain no command.
DRAWINGS = ("mermaid", "text")
COMMAND = re.compile(r"^\s*(?:\$ |batuta |make |pip |python3? |await |import |from \S+ import )", re.MULTILINE)
# Documents about this repository. Their commands run in the repository, on a separate database.
IN_THE_REPOSITORY = ("app/README.md",)
IN_PORTUGUESE = ("docs/operar.md",)
DOCUMENTS = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "app/README.md")),
        *(ROOT / name for name in ("bench/RESULTS.md", "tests/README.md")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def to_run(document: Path) -> list[Block]:
    name = name_of(document)
    return [each for each in blocks(document) if not {name, f"{name}#{each.heading}"} & NOT_RUN.keys()]


@contextmanager
def open_session(folder: Path, document: str = "", servers: Mapping[str, str] | None = None) -> Iterator[Session]:
    """Open a session that runs a document in the document's language and in UTC, with the ``batuta`` command on the
    PATH. The working directory is empty or, for some documents, the repository.
    """
    session = Session(folder, servers=servers or {})
    here = document in IN_THE_REPOSITORY
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT if here else folder)
        patch.syspath_prepend(folder)
        for name, value in {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "PORT": str(session.port),
            "LANG": "en_US.UTF-8",
            "BATUTA_LANG": "pt-BR" if document in IN_PORTUGUESE else "en",
            "TZ": "UTC",
            "APP_ENV": "development",
            "COLUMNS": "120",
            "LOGNAME": "ana",
            # The pytest plugins of this repository's environment take seconds to load.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "anyio.pytest_plugin,batuta.testing.plugin",
            "SIMULADOR_PORT": str(free_port()),
            "TELEGRAM_SIMULADOR_PORT": str(free_port()),
        }.items():
            patch.setenv(name, value)
        for name in ("DATABASE_URL", "API_TOKEN"):
            patch.delenv(name, raising=False)
        if here:
            patch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
        time.tzset()
        sys.modules.pop("app.main", None)  # the module reads its settings when it is imported
        try:
            yield session
        finally:
            session.end()
            for name, module in [*sys.modules.items()]:
                if name == "app.main" or (getattr(module, "__file__", None) or "").startswith(str(folder)):
                    del sys.modules[name]
    time.tzset()


def servers_of(document: Path, request: pytest.FixtureRequest, stack: ExitStack) -> dict[str, str]:
    """Start the servers that a document mentions, and return their addresses."""
    text, servers = document.read_text(encoding="utf-8"), dict[str, str]()
    if REDIS in text:
        servers[REDIS] = request.getfixturevalue("redis_url").removeprefix("redis://")
    if POSTGRES in text:
        servers[POSTGRES] = stack.enter_context(request.getfixturevalue("postgres").database())
    return servers


@pytest.mark.parametrize(
    "document", [each for each in DOCUMENTS if any(block.language in RUN for block in to_run(each))], ids=name_of
)
def test_code_of_a_document_runs_as_shown(document: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    name = name_of(document)
    with ExitStack() as stack:
        session = stack.enter_context(open_session(tmp_path, name, servers_of(document, request, stack)))
        for block in to_run(document):
            if block.file is not None:
                session.write(block)
            elif block.language in ("sh", "console"):
                for command, shown in commands(block):
                    printed = session.run(command, shown)
                    said = "\n".join(
                        [f"$ {command}", *printed, f"Renew it: python -m tests.end_to_end.test_documents {name}"]
                    )
                    assert shown is None or alike(shown, printed), said
            else:
                assert block.language not in RUN, f"{block.heading}: name the file of this program in the line above it"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_block_that_does_not_run_is_a_drawing_or_a_listed_exception(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert sum(line.lstrip().startswith("```") for line in text.splitlines()) == 2 * len(blocks(document)), "indented"
    for block in to_run(document):
        runs = block.language in RUN or block.file is not None
        assert runs or (block.language in DRAWINGS and not COMMAND.search(block.text)), f"{block.heading}: {block.text}"


def test_listed_exceptions_exist() -> None:
    found = [(name_of(document), block) for document in DOCUMENTS for block in blocks(document)]
    existing = {each for name, block in found for each in (name, f"{name}#{block.heading}")}
    assert NOT_RUN.keys() - existing == set()


def test_wheel_and_sdist_contain_only_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for name in ("app", "dev.py", "pyproject.toml", "CHANGELOG.md", "README.md", "LICENSE", "src"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path)
    done = subprocess.run(
        [sys.executable, "dev.py", "wheel"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 and "hatchling" in done.stdout + done.stderr:
        lack("hatchling", "the package index must be reachable to build a wheel")
    assert (done.returncode, done.stdout.split()) == (0, ["dist/batuta-0.1.0-py3-none-any.whl"]), done.stderr
    names = zipfile.ZipFile(tmp_path / "dist/batuta-0.1.0-py3-none-any.whl").namelist()
    assert {"batuta/__init__.py", "batuta/py.typed", "batuta/texts/pt_BR.toml", "batuta/web/static/panel.css"} <= {
        *names
    }
    assert {name.split("/")[0] for name in names} == {"batuta", "batuta-0.1.0.dist-info"}
    subprocess.run([sys.executable, "-m", "uv", "build", "-q", "--sdist", "-o", "dist", "."], cwd=tmp_path, check=True)
    with tarfile.open(tmp_path / "dist/batuta-0.1.0.tar.gz") as sdist:
        parts = {name.removeprefix("batuta-0.1.0/").split("/")[0] for name in sdist.getnames()}
    assert parts == {"src", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:]):
        document = file.resolve()
        with (
            tempfile.TemporaryDirectory() as folder,
            redis_server() as redis,
            postgres_server() as postgres,
            open_session(
                Path(folder),
                name_of(document),
                {
                    REDIS: (redis or REDIS).removeprefix("redis://"),
                    POSTGRES: POSTGRES if postgres is None else postgres.url(),
                },
            ) as session,
        ):
            text = renew(document.read_text(encoding="utf-8"), to_run(document), session)
        document.write_text(text, encoding="utf-8")
