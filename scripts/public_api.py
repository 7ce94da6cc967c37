"""The Python API for docs/reference.md: every public name of every public module, described by its docstring."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, is_typeddict

from batuta.kernel import events

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
# Modules with their own sections in the document.
LISTED_BELOW = {"batuta.errors": "Errors", "batuta.events": "Events"}


def list_events() -> list[type[events.Event]]:
    """Return every event class, in the order of the source."""
    kinds = [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)]
    return [kind for kind in kinds if kind is not events.Event]


def sections() -> Iterator[str]:
    yield "\n## Python\n"
    yield "Import from these modules only; all others are internal and change without notice. `mypy --strict` checks the types,"
    yield "and a misspelt option is a `TypeError` that names the nearest one.\n"
    for name in PUBLIC:
        module = import_module(name)
        yield f"\n### {name}\n"
        yield f"{first_sentence(module)}\n"
        if name in LISTED_BELOW:
            yield f"Its classes are listed under [{LISTED_BELOW[name]}](#{LISTED_BELOW[name].lower()})."
            continue
        yield "| name | meaning |\n|---|---|"
        for each in sorted(module.__all__, key=str.lower):
            if not each.startswith("__"):
                yield f"| `{each}{_parameters(getattr(module, each))}` | {_what(getattr(module, each))} |"
        if name == "batuta":
            yield from _methods()


def _methods() -> Iterator[str]:
    from batuta import Batuta
    from batuta.engine.schedules import Schedules
    from batuta.tasks.service import TaskService

    yield "\nA `Batuta` (`work`) has, among others:\n"
    yield "| method | does |\n|---|---|"
    for owner, names in (
        (
            Batuta,
            ("job", "http_job", "add_job", "task", "loop", "add_loop", "circuit", "limit", "add_queue", "add_pipeline"),
        ),
        (Batuta, ("pipeline", "batch")),
        (TaskService, ("enqueue", "enqueue_many", "status", "handle")),
        (Batuta, ("running", "pause", "resume", "open", "close", "migrate", "work_once", "rescue")),
    ):
        for name in names:
            method = getattr(owner, name)
            yield f"| `{name}{_parameters(method)}` | {first_sentence(method)} |"
    for name in ("create", "edit", "pause", "resume", "delete", "backfill", "get", "all"):
        method = getattr(Schedules, name)
        yield f"| `schedules.{name}{_parameters(method)}` | {first_sentence(method)} |"


def _what(value: Any) -> str:
    if is_typeddict(value):
        return f"{first_sentence(value)} Options: {', '.join(f'`{key}`' for key in value.__annotations__)}"
    if inspect.isclass(value) or inspect.isroutine(value):
        return first_sentence(value)
    kind = type(value)
    if kind in (int, str):
        return f"`{value}`"
    return "a type" if kind.__module__ in ("typing", "types", "collections.abc") else f"a `{kind.__name__}`"


def _parameters(value: Any) -> str:
    """Return the names of a function's parameters. For a class the result is empty, because its fields are listed
    elsewhere.
    """
    if inspect.isclass(value) or not inspect.isroutine(value):
        return ""
    parts: list[str] = []
    is_marked = False
    for each in inspect.signature(value).parameters.values():
        if each.name == "self":
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not is_marked:
            parts, is_marked = [*parts, "*"], True
        star = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        is_marked = is_marked or star == "*"
        parts.append(f"{star}{each.name}")
    return f"({', '.join(parts)})"


def first_sentence(documented: Any) -> str:
    """Return the first sentence of an object's own docstring. The signature that a dataclass gets as default docstring
    is ignored.
    """
    text = inspect.cleandoc(documented.__doc__ or "").partition("\n\n")[0]
    if inspect.isclass(documented) and text.startswith(f"{documented.__name__}("):
        return ""
    sentence = re.split(r"(?<=\.) ", " ".join(text.split()), maxsplit=1)[0]
    return sentence.replace("``", "`").replace("|", "\\|")
