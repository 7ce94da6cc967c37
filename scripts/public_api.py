"""Write docs/python.md, the reference of the Python API: signature and docstring of every public name of every public
module.
"""

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import Enum
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from batuta import Batuta
from batuta.engine.declarations.schedules import Schedules
from batuta.kernel import events
from batuta.tasks.service import TaskService

FILE = Path(__file__).parents[1] / "docs" / "python.md"
PUBLIC = (
    "batuta",
    "batuta.jobs",
    "batuta.queues",
    "batuta.pipelines",
    "batuta.middleware",
    "batuta.guards",
    "batuta.loops",
    "batuta.sql",
    "batuta.reasons",
    "batuta.errors",
    "batuta.events",
    "batuta.kernel",
    "batuta.health",
    "batuta.extension",
    "batuta.config",
    "batuta.arq",
    "batuta.otel",
    "batuta.django",
    "batuta.web",
    "batuta.cli",
    "batuta.testing",
)
# Modules whose classes docs/reference.md lists.
LISTED_THERE = {"batuta.errors": "errors", "batuta.events": "events"}
# Members of the classes that have internal methods too. Of other classes, every documented member is public.
MEMBERS = {
    "Batuta": (
        *("job", "http_job", "task", "loop", "pipeline", "batch", "running", "provide", "around_enqueue"),
        *(
            "around_execution",
            "run_job",
            "pause",
            "resume",
            "find_tasks",
            "log_lines",
            "why_waiting",
            "circuit",
            "limit",
        ),
        *("add_job", "add_loop", "add_queue", "add_pipeline", "open", "close", "migrate", "work_once", "rescue"),
    ),
    "Task": ("enqueue", "enqueue_sync", "enqueue_many", "options", "handle", "failed"),
    "EngineSettings": (),
}
# Classes of which a program never creates an instance itself.
CREATED_BY_ENGINE = ("Task", "Handle", "Batch", "Kit", "KitFactory")
# Methods that a `Batuta` takes over from another class, with the prefix of their names.
DELEGATED = (
    (TaskService, "work.", ("enqueue", "enqueue_many", "status", "handle")),
    (Schedules, "work.schedules.", ("create", "edit", "pause", "resume", "delete", "backfill", "get", "all")),
)
# Longest line of a signature before it is divided, one parameter per line.
LINE = 110
HEAD = """# Python API

`python3 dev.py check --fix` writes this page from the code, and a test compares them. Do not edit it by hand.

Import from these modules only. All others are internal and change without notice. `mypy --strict` checks the types,
and a misspelt option is a `TypeError` that names the nearest one. In this page, `work` is a `Batuta`, and
`async` marks a function that is awaited. The
[tutorial](tutorial.md) and the [how-tos](README.md) show these names in use.
"""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def list_events() -> list[type[events.Event]]:
    """Return every event class, in the order of the source."""
    kinds = [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)]
    return [kind for kind in kinds if kind is not events.Event]


def document() -> str:
    links = " · ".join(f"[{name}](#{name.replace('.', '')})" for name in PUBLIC)
    return "\n".join([HEAD, textwrap.fill(links, 118, break_long_words=False, break_on_hyphens=False), *_modules()])


def _modules() -> Iterator[str]:
    for name in PUBLIC:
        module = import_module(name)
        yield f"\n## {name}\n\n{text_of(module)}\n"
        if name in LISTED_THERE:
            section = LISTED_THERE[name]
            yield f"The [reference](reference.md#{section}) lists its classes.\n"
            continue
        names = [each for each in module.__all__ if not each.startswith("__")]
        for each in sorted(names, key=lambda each: (each != "Batuta", each.lower())):
            yield from _entry(module, each)


def _entry(module: ModuleType, name: str) -> Iterator[str]:
    value = getattr(module, name)
    if inspect.isclass(value):
        yield f"### {name}\n\n{_code(_constructor(value))}{text_of(value)}\n"
        if value.__init__.__qualname__.startswith(f"{name}.") and (more := text_of(value.__init__)):
            yield f"{more}\n"
        for each in MEMBERS.get(name, _documented(value)):
            yield from _method(value, "work." if value is Batuta else f"{name}.", each)
        if value is Batuta:
            for owner, prefix, methods in DELEGATED:
                for each in methods:
                    yield from _method(owner, prefix, each)
    elif inspect.isroutine(value):
        signature = _signature(_parsed_function(value), name, inspect.unwrap(value).__globals__)
        yield f"### {name}\n\n{_code(signature)}{text_of(value)}\n"
    else:
        yield f"### {name}\n\n{_code(_assignment(module.__name__, name))}"


def _documented(kind: type) -> list[str]:
    """Return the public methods and properties of a class that have a docstring."""
    if issubclass(kind, Enum):
        return []
    own = {name: each for name, each in vars(kind).items() if not name.startswith("_")}
    return [
        name
        for name, each in own.items()
        if isinstance(each, property | cached_property | classmethod | staticmethod) or inspect.isfunction(each)
        if getattr(each, "__doc__", None)
    ]


def _method(owner: type, prefix: str, name: str) -> Iterator[str]:
    found = inspect.getattr_static(owner, name)
    if isinstance(found, property | cached_property):
        read = found.fget if isinstance(found, property) else found.func
        shown = f"{prefix}{name}: {_annotation(_parsed_function(read).returns)}"
    else:
        function = inspect.unwrap(getattr(owner, name))
        shown = _signature(_parsed_function(function), prefix + name, function.__globals__)
    yield f"#### {prefix}{name}\n\n{_code(shown)}{text_of(found)}\n"


def _constructor(kind: type) -> str:
    """Return the call that creates an instance of a class, or the fields and values that the class declares, as source
    text.
    """
    declared = _parsed_class(kind)
    if issubclass(kind, Enum):
        return "\n".join(_values(kind))
    if kind.__name__ in CREATED_BY_ENGINE:
        return f"class {kind.__name__}"
    init = [each for each in declared.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    if init and not issubclass(kind, Exception):
        return _signature(init[0], kind.__name__, _globals_of(kind), returns=False)
    lines = [line for each in reversed(_own_bases(kind)) for line in _fields(each)]
    return "\n".join([f"class {kind.__name__}:", *lines]) if lines else f"class {kind.__name__}"


def _own_bases(kind: type) -> list[type]:
    """Return a class and those of its base classes that the engine defines. The bases are read from the source, because
    a TypedDict does not keep them.
    """
    written = (_globals_of(kind).get(ast.unparse(each)) for each in _parsed_class(kind).bases)
    bases = [each for each in written if inspect.isclass(each) and each.__module__.startswith("batuta")]
    return [kind, *(base for each in bases for base in _own_bases(each))]


def _fields(kind: type) -> Iterator[str]:
    """Return the public fields of a class, with their comments."""
    source = textwrap.dedent(inspect.getsource(kind)).splitlines()
    for each in _parsed_class(kind).body:
        if not isinstance(each, ast.AnnAssign) or not _is_public(each):
            continue
        above = itertools.takewhile(lambda line: line.lstrip().startswith("#"), reversed(source[: each.lineno - 1]))
        yield from (f"    {line.strip()}" for line in reversed(list(above)))
        assert each.end_lineno is not None
        beside = re.search(r"\s+# .*$", source[each.end_lineno - 1])
        written = f"    {ast.unparse(each.target)}: {_annotation(each.annotation)}"
        yield f"{written}{_default(each.value, _globals_of(kind))}{f'  {beside[0].strip()}' if beside else ''}"


def _values(kind: type[Enum]) -> Iterator[str]:
    """Return the values of an enumeration, with the comments beside them."""
    source = inspect.getsource(kind)
    for each in kind:
        beside = re.search(rf"^    {each.name} = [^#\n]*(  # .*)$", source, re.MULTILINE)
        yield f"{kind.__name__}.{each.name} = {each.value!r}{beside[1] if beside else ''}"


def _is_public(field: ast.AnnAssign) -> bool:
    """Return whether callers can set a field: it is neither private nor excluded from the constructor."""
    name = ast.unparse(field.target)
    return not name.startswith("_") and "init=False" not in _default(field.value, {})


def _default(value: ast.expr | None, names: Mapping[str, Any]) -> str:
    """Return a default value as written. A constant's name is replaced by its value."""
    if value is None:
        return ""
    known = names.get(value.id) if isinstance(value, ast.Name) else None
    return f" = {known!r}" if isinstance(known, str | int | float | timedelta) else f" = {ast.unparse(value)}"


def _globals_of(kind: type) -> Mapping[str, Any]:
    return vars(import_module(kind.__module__))


def _signature(function: Function, name: str, names: Mapping[str, Any], *, returns: bool = True) -> str:
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    parts = [_parameter(each, default, names) for each, default in zip(plain, defaults, strict=True)]
    if plain and plain[0].arg in ("self", "cls"):
        parts = parts[1:]
    if given.vararg is not None:
        # A parameter of type Never exists only to explain a mistake of the caller.
        is_refusal = given.vararg.annotation is not None and ast.unparse(given.vararg.annotation) == "Never"
        parts.append("*" if is_refusal else f"*{_parameter(given.vararg, None, names)}")
    elif given.kwonlyargs:
        parts.append("*")
    parts += [_parameter(each, value, names) for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg is not None:
        parts.append(f"**{_parameter(given.kwarg, None, names)}")
    start = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    for decorator in (ast.unparse(each) for each in function.decorator_list):
        start = {"contextmanager": "with ", "asynccontextmanager": "async with "}.get(decorator, start)
    has_result = returns and function.returns is not None and "with" not in start
    result = f" -> {_annotation(function.returns)}" if has_result else ""
    line = f"{start}{name}({', '.join(parts)}){result}"
    if len(line) <= LINE:
        return line
    return f"{start}{name}(\n" + "".join(f"    {each},\n" for each in parts) + f"){result}"


def _parameter(parameter: ast.arg, default: ast.expr | None, names: Mapping[str, Any]) -> str:
    shown = parameter.arg if parameter.annotation is None else f"{parameter.arg}: {_annotation(parameter.annotation)}"
    return shown + _default(default, names)


class _Unquoted(ast.NodeTransformer):
    """Removes the quotes from forward references, but keeps those of the values in a `Literal`."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return node if ast.unparse(node.value) == "Literal" else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node


def _annotation(written: ast.expr | None) -> str:
    return "" if written is None else ast.unparse(_Unquoted().visit(written))


def _assignment(module: str, name: str) -> str:
    """Return the assignment that defines a constant or the alias of a type."""
    for each in ast.walk(_parsed(module)):
        if isinstance(each, ast.ImportFrom) and each.module is not None:
            for imported in each.names:
                if (imported.asname or imported.name) == name:
                    return _assignment(each.module, imported.name)
        if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == name:
            return f"{name}{_default(each.value, {})}"
        if isinstance(each, ast.Assign) and [ast.unparse(target) for target in each.targets] == [name]:
            return f"{name}{_default(each.value, {})}"
    return f"{name} = {getattr(import_module(module), name)!r}"


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(import_module(module)))


def _parsed_class(kind: type) -> ast.ClassDef:
    (declared,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(declared, ast.ClassDef)
    return declared


def _parsed_function(function: Any) -> Function:
    (declared,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body
    assert isinstance(declared, ast.FunctionDef | ast.AsyncFunctionDef)
    return declared


def _code(text: str) -> str:
    return f"```text\n{text}\n```\n\n"


def text_of(documented: Any) -> str:
    """Return an object's own docstring. The signature that a dataclass gets as default docstring is ignored."""
    text = inspect.cleandoc(documented.__doc__ or "")
    if inspect.isclass(documented) and text.startswith(f"{documented.__name__}("):
        return ""
    return text.replace("``", "`")
