"""The layout of ``app/``: which modules may import each other, and conventions for names."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.test_rules import functions, nodes, parse

ROOT = Path(__file__).parents[2]
APP = ROOT / "app"
# Modules of a context that other contexts may import. All modules of ``comum`` may be imported.
INTERFACES = ("service", "api")
SHARED = "comum"
# Imports inside a function. Each saves other roles the memory of a library; none of them breaks an import cycle.
LOADED_LATE = {
    ("app/main.py", "app.web"),  # so that `batuta --help` and `batuta jobs` do not load all services
    ("app/main.py", "app.web.application"),  # the same, for `create_api`
    ("app/main.py", "app.composition.envio"),  # only types
    ("app/main.py", "app.contexts.telegram.porta"),  # only types
    ("app/main.py", "app.composition.catalogue"),  # so that `batuta --help` does not load the engine
    ("app/main.py", "app.composition.julia"),  # only types, which `batuta --help` does not load
    ("app/main.py", "app.settings"),  # so that `batuta --help` does not load pydantic
    ("app/web/application.py", "app.web.api"),  # FastAPI
    ("app/composition/catalogue.py", "app.composition.arq"),  # ARQ and Redis
    ("app/composition/catalogue.py", "app.composition.julia"),  # only types, which `batuta up` does not load
    ("app/composition/julia.py", "app.integrations.redis.arq"),  # ARQ and Redis
    ("app/composition/development/simulator.py", "app.composition.development.demonstration"),  # only in development
    (
        "app/composition/development/simulator.py",
        "app.integrations.evolution.client",
    ),  # so that `batuta up` does not load the HTTP client
    ("app/composition/telegram/port.py", "app.integrations.telegram.simulado"),  # only in development
    ("app/composition/telegram/port.py", "app.integrations.telethon.linha"),  # Telethon
    ("app/composition/telegram/port.py", "app.integrations.telethon.cliente"),  # Telethon
    ("app/composition/telegram/port.py", "app.integrations.telethon.login"),  # Telethon
    ("app/composition/telegram/port.py", "app.integrations.telegram.login"),  # only in development
    ("app/contexts/esteira/leituras.py", "app.contexts.leitura_grupos.api"),  # the reader of messages
    ("app/contexts/leitura_grupos/api.py", "app.contexts.leitura_grupos.juizo.heuristica"),  # the reader of messages
    ("app/contexts/leitura_grupos/api.py", "app.contexts.leitura_grupos.leitor"),  # the reader of messages
}
# A class whose constructor takes one of these is a service.
PARTS = {"parts", "database", "dialect", "dicionario", "queue", "fila", "clock"}
# Classes that one call creates for itself, although their constructor takes the clock.
PER_CALL = {"ArquivoAberto"}


def imports(file: Path) -> Iterator[ast.ImportFrom]:
    for node in nodes(file):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node


def context_of(file: Path) -> str:
    return file.relative_to(APP / "contexts").parts[0]


def test_contexts_import_each_other_only_through_their_interface() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno} imports {node.module}"
        for file in sorted((APP / "contexts").glob("*/**/*.py"))
        for node in imports(file)
        if (parts := str(node.module).split("."))[:2] == ["app", "contexts"]
        and (len(parts) < 3 or parts[2] not in (context_of(file), SHARED))
        and (len(parts) != 4 or parts[3] not in INTERFACES)
    ]
    assert found == []


def test_interface_declares_every_name_it_exports() -> None:
    for file in sorted((APP / "contexts").glob("*/api.py")):
        tree = parse(file)
        defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        if defined:
            continue  # this context defines its interface in the file itself, instead of exporting imported names
        imported = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
        exported = next(
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        )
        assert sorted(exported) == sorted(imported), file


def test_no_import_is_inside_a_function_to_avoid_a_cycle() -> None:
    found = {
        (str(file.relative_to(ROOT)), str(node.module))
        for file in sorted(APP.rglob("*.py"))
        for node in imports(file)
        if node.col_offset and str(node.module).split(".")[0] == "app"
    }
    assert found == LOADED_LATE


def test_services_are_built_only_by_the_composition() -> None:
    services = {name for file in context_files() for name in services_in(parse(file))}
    found = [
        f"{file.relative_to(ROOT)}:{call.lineno} builds {name}"
        for file in sorted(APP.rglob("*.py"))
        if not file.is_relative_to(APP / "composition")
        for call in calls_outside_constructors(file)
        if isinstance(call.func, ast.Name) and (name := call.func.id) in services
    ]
    assert found == []


def test_statements_semaphores_and_locks_are_created_once() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{call.lineno} {name}"
        for file in sorted(APP.rglob("*.py"))
        for call in calls_outside_constructors(file)
        if (name := ast.unparse(call.func)) in ("load", "asyncio.Semaphore", "asyncio.Lock")
        and not ast.unparse(call).startswith("load(Settings")
    ]
    assert found == []


def test_roles_without_a_web_server_load_no_web_framework_and_no_redis_client(tmp_path: Path) -> None:
    heavy = ("fastapi", "uvicorn", "jinja2", "prometheus_client", "arq", "redis", "telethon", "cryptography")
    program = f"import sys, batuta.cli, app.main; app.main.work; print([m for m in {heavy} if m in sys.modules])"
    env = {"PATH": os.environ["PATH"], "DATABASE_URL": f"sqlite:///{tmp_path}/julia.db"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_language_model_is_called_llm() -> None:
    """In identifiers and file names, a language model is called ``llm`` and not ``modelo``. Columns, settings and
    stored values may still be named ``modelo``.
    """
    files = sorted(APP.rglob("*.py"))
    names = [f"{file.relative_to(ROOT)}: {name}" for file in files for name in identifiers(file)]
    assert [each for each in (*map(str, files), *names) if "modelo" in each.lower()] == []


def context_files() -> list[Path]:
    return sorted((APP / "contexts").rglob("*.py"))


def services_in(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        made_of = {
            argument.arg
            for each in (node.body if isinstance(node, ast.ClassDef) else ())
            if isinstance(each, ast.FunctionDef) and each.name == "__init__"
            for argument in (*each.args.args, *each.args.kwonlyargs)
        }
        if isinstance(node, ast.ClassDef) and node.name not in PER_CALL and PARTS & made_of:
            yield node.name


def calls_outside_constructors(file: Path) -> Iterator[ast.Call]:
    """Yield the calls inside functions. Skip constructors, which run once per service, and functions that load SQL
    statements.
    """
    inside = [
        function
        for function in functions(file)
        if function.name != "__init__" and not function.name.endswith("_queries")
    ]
    return (node for function in inside for node in ast.walk(function) if isinstance(node, ast.Call))


def identifiers(file: Path) -> Iterator[str]:
    for node in nodes(file):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name
