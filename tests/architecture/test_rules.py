"""Rules for the code. Each rule is enforced by a test in this file, an import contract in pyproject.toml or a linter. A
rule that nothing enforces is only advice.
"""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import batuta
from batuta.kernel import errors
from scripts.public_api import list_events

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "src" / "batuta"
OURS = [ENGINE, ROOT / "app", ROOT / "simulador"]

# Functions that may catch `Exception`, each with its reason.
BROAD_CATCHES = {
    "kernel/events.py": {"emit"},  # a failing subscriber must not fail the code that emits
    "supervise/supervisor.py": {"_tick"},  # a failing loop must not stop the others
    "kernel/calls/usercode.py": {"call", "_outcome_here"},  # an error of application code is a value for the caller
    "kernel/calls/resources.py": {
        "started",
        "_open",
    },  # one failing close must not keep the others open; a failing start names its resource
    "queue/running.py": {"guard", "handle"},  # every error of a handler or its effect is a failure of its item
    "queue/executor.py": {"_settle_outcome"},  # an outcome that cannot be settled is a failure of its item
    "queue/worker/settler.py": {
        "_try_turn",
        "_settle_apart",
        "_settle_refused",
    },  # one settlement must not block the others
    "stores/sql/queue/claim.py": {"settle_beside_claim"},  # a failed claim must not undo the settlement beside it
    "dispatch/dispatcher.py": {"_compute_safely"},  # a wrong schedule must not stop the others
    "web/middleware.py": {"__call__"},  # every error of a route becomes one answer and one log line
    "stores/sqlite/connection.py": {"attempt"},  # the writing thread must outlive any statement
}
# Functions whose `while` may wait: the supervisor's, threads that empty an inbox, loops of one run (keep its lease,
# write its result, repeat its delivery while nothing was sent), a bounded wait for updates, and clocks and steps of a
# simulation.
WHILES = {
    "kernel/waiting.py": {"insist"},
    "kernel/leases.py": {"renew_until_cancelled"},
    "cli/output.py": {"_write_lines"},
    "dispatch/runner.py": {"finish"},
    "targets/http.py": {"deliver"},
    "queue/worker/worker.py": {"_finish", "_finish_isolated", "_settle_all"},
    "queue/worker/runners.py": {"_run"},  # until no claimed item is left
    "stores/sql/queue/endings.py": {"_watch", "_watch_until_lost"},  # one listener serves all waiters of a process
    "stores/sql/encrypted.py": {"count", "rotate"},  # one page of a table after the other
    "stores/sql/queue/items.py": {"_find_alive"},
    "stores/sql/queue/tasks.py": {"_find_alive"},
    "supervise/retention.py": {"prune_all"},
    "supervise/supervisor.py": {"_keep"},
    "stores/sqlite/writer.py": {"perform", "_close", "_work", "_perform_waiting"},
    "stores/sqlite/readers.py": {"_work"},
    "web/api.py": {"main_loop"},  # updates the date header of the answers once a second
    "web/panel/stream.py": {"_follow"},  # serves one open stream of a browser
    "testing/clock.py": {"advance", "sleep"},
    "testing/kit.py": {"drain", "run_for", "_run_due"},
    "app/contexts/telegram/conexoes.py": {"_end_all"},  # until every connection is closed; the drain limits it
    "app/integrations/telethon/linha.py": {"receive"},
    "app/contexts/lgpd/pessoa.py": {"_find_by_document"},  # one page of a table after the other
    "testing/loops.py": {"wait_for"},
    "testing/simulation.py": {"run_until", "settle"},
}
# Means by which a test asserts: the statement, and functions of pytest, the browser driver and the standard library.
ASSERTIONS = frozenset({"assert", "raises", "warns", "fail", "expect", "AssertionError"})
CLOCK_READS = {"now", "utcnow", "today", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter"}


@cache
def modules() -> list[Path]:
    return [file for folder in OURS for file in sorted(folder.rglob("*.py"))]


@cache
def nodes(file: Path) -> list[ast.AST]:
    """Return all syntax nodes of a module. Walking the tree takes longer than checking a rule, so all rules share one
    walk.
    """
    return list(ast.walk(parse(file)))


@cache
def functions(file: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in nodes(file) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def places(found: type[ast.stmt | ast.expr | ast.ExceptHandler], accept: object = None) -> dict[str, set[str]]:
    """Return, by file, the innermost functions that contain a syntax node of type ``found`` for which ``accept``
    returns true.
    """
    result: dict[str, set[str]] = {}
    for file in modules():
        for node in nodes(file):
            if isinstance(node, found) and (accept is None or accept(node)):  # type: ignore[operator]
                inside = [each for each in functions(file) if each.lineno <= node.lineno <= (each.end_lineno or 0)]
                name = max(inside, key=lambda each: each.lineno).name if inside else "(module)"
                result.setdefault(short(file), set()).add(name)
    return result


def short(file: Path) -> str:
    return str(file.relative_to(ENGINE if file.is_relative_to(ENGINE) else ROOT))


def called(file: Path) -> Iterator[tuple[str, str, ast.Call]]:
    for node in nodes(file):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            yield node.func.value.id, node.func.attr, node


def test_one_module_reads_the_clock() -> None:
    readers = {
        short(file)
        for file in modules()
        for owner, method, _ in called(file)
        if owner in ("datetime", "date", "time") and method in CLOCK_READS
    }
    assert readers == {"kernel/clock.py"}


def test_only_the_clock_sleeps() -> None:
    sleepers = {
        short(file)
        for file in modules()
        for owner, method, node in called(file)
        if method == "sleep" and owner in ("asyncio", "time")
        if not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)  # `sleep(0)` yields to other tasks
    }
    assert sleepers == {"kernel/clock.py"}


def test_broad_catch_is_on_the_list() -> None:
    def is_broad(handler: ast.ExceptHandler) -> bool:
        return handler.type is None or (isinstance(handler.type, ast.Name) and handler.type.id == "Exception")

    assert places(ast.ExceptHandler, is_broad) == BROAD_CATCHES


def test_handler_of_base_exception_raises_it_again() -> None:
    for file in modules():
        for node in nodes(file):
            if (
                isinstance(node, ast.ExceptHandler)
                and isinstance(node.type, ast.Name)
                and node.type.id == "BaseException"
            ):
                assert isinstance(node.body[-1], ast.Raise), f"{short(file)}:{node.lineno}"


def test_no_exception_handler_is_silent() -> None:
    def is_silent(handler: ast.ExceptHandler) -> bool:
        return all(isinstance(statement, ast.Pass) for statement in handler.body)

    assert places(ast.ExceptHandler, is_silent) == {}


def test_while_that_waits_is_on_the_list() -> None:
    waiting = {"get", "get_nowait", "wait", "sleep", "join", "_serve", "_perform"}

    def waits(loop: ast.While) -> bool:
        inside = list(ast.walk(loop))
        calls = {node.attr for node in inside if isinstance(node, ast.Attribute)}
        return bool(calls & waiting) or any(isinstance(node, ast.Await) for node in inside)

    assert places(ast.While, waits) == WHILES


def test_one_module_reads_the_environment() -> None:
    def is_environment(node: ast.Attribute) -> bool:
        return node.attr in ("environ", "getenv") and isinstance(node.value, ast.Name) and node.value.id == "os"

    assert set(places(ast.Attribute, is_environment)) == {"environment.py"}


# Names of variables that contain a reason. A decision must compare the reason's code (``batuta.kernel.reasons``), never
# its sentence.
REASONS = {"reason", "error", "erro", "why", "motivo", "last_error", "ultimo_erro", "detail", "outcome_reason_code"}
_OF_TEXT = {"startswith", "endswith", "removeprefix", "removesuffix", "match", "fullmatch", "search"}


def test_no_decision_reads_the_sentence_of_a_reason() -> None:
    found = []
    for file in modules():
        if short(file) == "kernel/reasons.py":  # this module distinguishes a stored reason from plain text
            continue
        for node in nodes(file):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_TEXT:
                asked = [node.func.value, *node.args[:1]]
                if any(_last_name(each) in REASONS for each in asked):
                    found.append(f"{short(file)}:{node.lineno}")
    assert found == []


def _last_name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.BoolOp(values=[first, *_]):
            return _last_name(first)
        case _:
            return None


def test_no_pattern_has_a_possessive_group() -> None:
    """No regular expression has a possessive group, because Python 3.11.2, the version in Debian 12, matches such
    groups incorrectly. A possessive quantifier after a single character works.
    """
    possessive = re.compile(r"\)(?:\+\+|\*\+|\?\+)")
    assert [
        short(file)
        for file in modules()
        if "re.compile" in (text := file.read_text()) and possessive.search(text.replace("(…)++", ""))
    ] == []


def test_function_fits_on_the_screen() -> None:
    long = {
        f"{short(file)}:{each.name}": (each.end_lineno or 0) - each.lineno + 1
        for file in modules()
        for each in functions(file)
        if (each.end_lineno or 0) - each.lineno >= 60
    }
    assert long == {}


def test_module_has_at_most_600_lines() -> None:
    assert {short(file): lines for file in modules() if (lines := file.read_text().count("\n")) > 600} == {}


def test_package_reports_the_version_of_the_project() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == batuta.__version__


def test_every_error_is_raised_and_listed_in_the_drawn_tree() -> None:
    source = "\n".join(file.read_text() for file in modules() if file.name != "errors.py" or "kernel" not in file.parts)
    kinds = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.BatutaError)
    }
    bases = {"BatutaError", "ConfigError", "StoreError", "StartAgain", "EncryptionError"}
    assert kinds - bases - {*re.findall(r"\w+(?=\()", source)} == set()
    assert {name for name in kinds if name not in (errors.__doc__ or "")} == set()


def test_every_event_is_emitted() -> None:
    source = "\n".join(file.read_text() for file in modules() if file != ENGINE / "kernel" / "events.py")
    never = {kind.__name__ for kind in list_events() if f"{kind.__name__}(" not in source}
    assert never <= {"SubscriberFailed"}  # the event bus itself emits it


def test_lock_names_no_address_and_pins_every_dependency_with_a_hash() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = [each for listed in project["project"]["optional-dependencies"].values() for each in listed]
    groups = project["dependency-groups"]
    wanted = {
        "requirements.lock": project["project"]["dependencies"] + extras + groups["app"],
        "requirements-dev.lock": project["project"]["dependencies"] + extras + groups["app"] + groups["dev"],
    }
    for name, dependencies in wanted.items():
        text = (ROOT / name).read_text()
        assert "://" not in text
        pinned = {match[1] for match in re.finditer(r"^([a-z0-9-]+)==\S+.*\\\n +--hash=sha256:", text, re.MULTILINE)}
        assert {re.split(r"[<>=;\[ ]", each)[0].lower() for each in dependencies} <= pinned


def test_run_lock_is_part_of_the_development_lock() -> None:
    run, dev = (
        {line for line in (ROOT / name).read_text().splitlines() if "==" in line and "hash" not in line}
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert {line.split("==")[0] for line in run} <= {line.split("==")[0] for line in dev}
    assert {line.split(" ")[0] for line in run} <= {line.split(" ")[0] for line in dev}


def test_makefile_and_dev_have_the_same_commands() -> None:
    import dev

    targets = re.search(r"^([a-z ]+):$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets is not None
    assert set(targets[1].split()) == set(dev.WORDS) - {"lock"}


def test_tests_sleep_only_in_the_fault_tests() -> None:
    sleepers = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        if "faults" in file.parts or "sleep(" not in file.read_text():
            continue
        for owner, method, node in called(file):
            is_turn = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
            if owner in ("asyncio", "time") and method == "sleep" and not is_turn:
                sleepers.append(f"{file.name}:{node.lineno}")
    assert sleepers == []


def test_every_test_has_an_assertion_that_can_fail() -> None:
    assert [test for file in sorted((ROOT / "tests").rglob("test_*.py")) for test in lacking_assertion(file)] == []


def test_test_without_an_assertion_is_found(tmp_path: Path) -> None:
    file = tmp_path / "test_example.py"
    file.write_text(
        "def check(): assert look()\n"
        "def look(): return 1\n"
        "def test_direct(): assert look()\n"
        "def test_delegates(): check()\n"
        "def test_expects(page): expect(page).to_have_title('x')\n"
        "def test_raises():\n    with raises(ValueError): look()\n"
        "def test_only_runs(): look()\n"
        "class TestShared:\n    def test_runs(self): self.nothing()\n"
    )
    assert lacking_assertion(file) == ["test_example.py::test_only_runs", "test_example.py::test_runs"]


def lacking_assertion(file: Path) -> list[str]:
    """Return the tests that neither contain an assertion nor call an asserting function from their module or from
    ``tests``.
    """
    known = asserting(file)
    return [
        f"{file.name}::{name}" for name, _ in calls_by_function(file) if name.startswith("test_") and name not in known
    ]


@cache
def asserting(file: Path) -> frozenset[str]:
    """Return the names of the functions available in this module that assert something: they contain an ``assert``
    statement, call a function listed in ``ASSERTIONS``, or call another asserting function.
    """
    known = ASSERTIONS | {
        alias.asname or alias.name
        for node in parse(file).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.")
        for alias in node.names
        if alias.name in asserting(ROOT / f"{str(node.module).replace('.', '/')}.py")
    }
    calls = calls_by_function(file)
    while new := {name for name, called in calls if called & known} - known:
        known |= new
    return frozenset(known)


@cache
def calls_by_function(file: Path) -> list[tuple[str, set[str]]]:
    """Return the name of each function, together with the names of the functions that it calls. An ``assert`` statement
    counts as a call to ``assert``.
    """
    found = []
    for function in functions(file):
        called = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                called.add("assert")
            elif isinstance(node, ast.Call):
                called.add(node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""))
        found.append((function.name, called))
    return found


@cache
def parse(file: Path) -> ast.Module:
    """Parse a module. If the file does not exist because the path names a package, return an empty module."""
    return ast.parse(file.read_text() if file.exists() else "")


def test_no_test_expects_a_short_hex_text_to_be_absent() -> None:
    """Ids consist of random hex digits, so any three digits may appear by chance. A test that expects them to be absent
    would fail about once in a hundred runs.
    """
    found = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        said = (node for node in nodes(file) if isinstance(node, ast.Assert))
        for node in (part for each in said for part in ast.walk(each) if isinstance(part, ast.Compare)):
            letters = node.left.value if isinstance(node.left, ast.Constant) else None
            is_absent = isinstance(node.ops[0], ast.NotIn) and isinstance(letters, str)
            if is_absent and re.fullmatch("[0-9a-f]{1,4}", str(letters)):
                found.append(f"{file.name}:{node.lineno}")
    assert found == []


def test_no_tracked_file_is_large_or_binary() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    large = {
        name: size for name in tracked if (ROOT / name).is_file() and (size := (ROOT / name).stat().st_size) > 400_000
    }
    assert large == {}
