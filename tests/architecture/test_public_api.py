"""The public API: each public name belongs to one module, and applications import only from these modules."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import batuta
import batuta.cli
import batuta.kernel
from scripts.public_api import LISTED_THERE, PUBLIC, text_of

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "src" / "batuta"


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each import from the engine. If a whole module is imported, the name is
    empty.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "batuta":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "batuta")


def is_public(module: str, name: str) -> bool:
    if module not in PUBLIC:
        return False
    return name in ("", *import_module(module).__all__) or f"{module}.{name}" in PUBLIC


def programs() -> Iterator[tuple[str, ast.Module]]:
    """Yield each module of the applications in this repository, and each import of ``batuta`` in the documents, as a
    syntax tree.
    """
    for folder in ("app", "simulador", "examples", "tests/typing"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if file.name != "rejected.py":
                yield str(file.relative_to(ROOT)), ast.parse(file.read_text(encoding="utf-8"))
    for file in [ROOT / "README.md", ROOT / "app" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for line in re.findall(r"^(?:from|import) batuta.*$", file.read_text(encoding="utf-8"), re.MULTILINE):
            yield str(file.relative_to(ROOT)), ast.parse(line)


def test_applications_and_documents_import_only_public_names() -> None:
    deep = {
        f"{where}: {module} {name}"
        for where, tree in programs()
        for module, name in imports(tree)
        if not is_public(module, name)
    }
    assert deep == set()


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_exists_and_has_a_docstring(module: str) -> None:
    found = import_module(module)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []
    assert found.__doc__
    documented = {
        name: value for name, value in vars(found).items() if inspect.isclass(value) or inspect.isroutine(value)
    }
    silent = {name for name in found.__all__ if name in documented and not text_of(documented[name])}
    assert module in LISTED_THERE or silent == set()


def test_every_public_name_has_one_module() -> None:
    names = Counter(name for module in PUBLIC if module != "batuta.testing" for name in import_module(module).__all__)
    assert {name for name, count in names.items() if count > 1} == set()


def test_names_of_a_first_program_are_listed() -> None:
    assert set(batuta.__all__) == {
        "Again",
        "Batch",
        "BatchProgress",
        "Batuta",
        "BatutaError",
        "Cancelled",
        "Done",
        "Failed",
        "Handle",
        "Idle",
        "Limits",
        "NoRetry",
        "Outcome",
        "Partial",
        "Resource",
        "Run",
        "Skipped",
        "Snooze",
        "Task",
        "TaskContext",
        "TaskStatus",
        "TimedOut",
        "__version__",
        "enqueue_in",
        "enqueue_in_sync",
        "never",
        "note_progress",
    }


@pytest.mark.parametrize("package", [batuta, batuta.kernel, batuta.cli], ids=lambda package: package.__name__)
def test_interpreter_loads_what_the_type_checker_sees(package: Any) -> None:
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    checked = {name: module for module, name in imports(tree) if name != "load_on_first_use"}
    loaded = {name: module for module, names in package._HOMES.items() for name in names}
    assert checked == loaded
    assert set(loaded) == set(package.__all__) - {"__version__"}


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Batut'"):
        batuta.Batut  # type: ignore[attr-defined]  # noqa: B018


def test_import_batuta_loads_nothing() -> None:
    """``import batuta`` loads no other module. A public name loads its module on first use, so a command or a worker
    loads only the modules that it needs.
    """
    code = "import sys; before = set(sys.modules); import batuta; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name for name in done.stdout.split() if name.split(".")[0] in ("asyncio", "pydantic", "structlog")} == set()
    assert {name for name in done.stdout.split() if name.startswith("batuta")} == {"batuta"}


def test_application_without_web_and_log_loads_only_pydantic_from_elsewhere() -> None:
    """Every process of an application imports ``Batuta`` when it starts, so each additional third-party package that
    this import loads slows every start.
    """
    code = "import sys; from batuta import Batuta; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not name.startswith("_")} - sys.stdlib_module_names
    of_pydantic = {"annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection"}
    assert loaded <= {"batuta", *of_pydantic}


def test_every_top_module_is_public_or_internal_by_contract() -> None:
    """Each top-level package of the engine is listed either in PUBLIC or in the import contract that forbids
    applications to import it.
    """
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    contract = next(each for each in contracts if each["name"].startswith("An application imports"))
    forbidden = {each.removeprefix("batuta.") for each in contract["forbidden_modules"] if not each.endswith(".*")}
    top = {path.stem for path in ENGINE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    public = {module.removeprefix("batuta.") for module in PUBLIC}
    assert top - public - {"__init__", "__main__"} == forbidden
