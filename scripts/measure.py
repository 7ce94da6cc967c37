"""Measure the source with `ast` and print one table: sizes, nesting, broad catches, waiting loops, names.

``python3 -m scripts.measure [--at REVISION ...]``

Each `--at` adds the columns of another revision, read with `git archive`, so the same code measures all revisions.
"""

import argparse
import ast
import io
import math
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
TREES = {"engine": "src/batuta", "app": "app", "tests": "tests"}
BLOCKS = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.TryStar,
    ast.Match,
)
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
# A `while` loop counts as waiting if it awaits or calls one of these.
WAITS = {"get", "get_nowait", "wait", "sleep", "join"}
# Verbs whose base form ends like a past participle.
BASE_FORMS = {"bed", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed", "weed"}
IRREGULAR = """
been begun born bound bought broken brought built caught chosen dealt done drawn driven eaten fallen fed felt forgotten
found frozen given gone grown heard held hidden kept known laid led left lent lost made meant met paid said seen sent
shaken shown slept sold spent spoken stolen stood struck stuck swept taken taught thought thrown told torn understood
withdrawn woken won worn written
"""
PARTICIPLES = frozenset(IRREGULAR.split())

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    path: str
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.text)))

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in self.nodes if isinstance(node, Function)]

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.text).readline))

    @property
    def comments(self) -> list[str]:
        return [token.string for token in self.tokens if token.type == tokenize.COMMENT]

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def code_lines(self) -> int:
        """The number of lines with a token other than a comment. Docstrings are counted as code."""
        held: set[int] = set()
        for token in self.tokens:
            if token.type not in LAYOUT:
                held.update(range(token.start[0], token.end[0] + 1))
        return len(held)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m scripts.measure", description="Measure the source with ast.")
    parser.add_argument("--at", action="append", default=[], metavar="REVISION", help="measure this revision too")
    revisions: list[str] = parser.parse_args(arguments).at
    columns = [measure_revision(revision) for revision in revisions] + [measure(ROOT)]
    print(table([*revisions, "now"], columns))
    return 0


def measure_revision(revision: str, repository: Path = ROOT) -> dict[str, dict[str, str]]:
    archive = ["git", "archive", "--format=tar", revision, "--", *TREES.values()]
    found = subprocess.run(archive, cwd=repository, capture_output=True, check=False)
    if found.returncode != 0:
        raise SystemExit(
            f"git cannot read {revision}: {found.stderr.decode().strip()}. Name a commit of this repository."
        )
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(found.stdout)) as tar:
        tar.extractall(folder, filter="data")
        return measure(Path(folder))


def measure(root: Path) -> dict[str, dict[str, str]]:
    """Return the metrics as nested mappings: source tree, then metric name, then value."""
    return {tree: dict(metrics(read_modules(root / folder))) for tree, folder in TREES.items()}


def read_modules(folder: Path) -> list[Module]:
    return [Module(str(file), file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.py"))]


def table(names: Sequence[str], columns: Sequence[dict[str, dict[str, str]]]) -> str:
    head = ["", *(f"{tree} {name}" for tree in TREES for name in names)]
    rows = [[metric, *(each[tree][metric] for tree in TREES for each in columns)] for metric in columns[0]["engine"]]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def metrics(modules: Sequence[Module]) -> Iterator[tuple[str, str]]:
    yield from sizes(modules)
    yield from shapes(modules)
    yield from handlers_and_loops(modules)
    yield from names(modules)
    yield from exemptions(modules)


def sizes(modules: Sequence[Module]) -> Iterator[tuple[str, str]]:
    lengths = [length(each) for module in modules for each in module.functions]
    lines = [module.lines for module in modules]
    yield "files", f"{len(modules):,}"
    yield "lines", f"{sum(lines):,}"
    yield "code lines", f"{sum(module.code_lines for module in modules):,}"
    yield "functions", f"{len(lengths):,}"
    yield "function lines: median / p90 / max", spread(lengths)
    yield "functions over 60 / over 40 lines", f"{over(lengths, 60)} / {over(lengths, 40)}"
    yield "module lines: median / p90 / max", spread(lines)
    yield "modules under 60 lines", f"{sum(1 for each in lines if each < 60)}"


def shapes(modules: Sequence[Module]) -> Iterator[tuple[str, str]]:
    functions = [each for module in modules for each in module.functions]
    depths = Counter(depth(each) for each in functions)
    deepest = max(depths, default=0)
    annotated = sum(1 for each in functions if is_annotated(each))
    parameters = [len(list(parameters_of(each))) for each in functions]
    yield "deepest nesting (functions that deep)", f"{deepest} ({depths[deepest]})"
    yield "annotated functions", f"{100 * annotated / max(len(functions), 1):.1f} %"
    yield "functions with ≥ 6 / ≥ 8 parameters", f"{over(parameters, 5)} / {over(parameters, 7)}"


def handlers_and_loops(modules: Sequence[Module]) -> Iterator[tuple[str, str]]:
    nodes = [node for module in modules for node in module.nodes]
    broad = [node for node in nodes if isinstance(node, ast.ExceptHandler) and is_broad(node)]
    raising = sum(1 for each in broad if raises_again(each))
    loops = [node for node in nodes if isinstance(node, ast.While)]
    silent = sum(1 for node in nodes if isinstance(node, ast.ExceptHandler) and isinstance(node.body[0], ast.Pass))
    yield "broad excepts: swallowing / re-raising", f"{len(broad) - raising} / {raising}"
    yield "handlers that only pass", f"{silent}"
    yield "while loops / that wait", f"{len(loops)} / {sum(1 for each in loops if waits(each))}"


def names(modules: Sequence[Module]) -> Iterator[tuple[str, str]]:
    kinds = [node for module in modules for node in module.nodes if isinstance(node, ast.ClassDef)]
    protocols = [length(each) for each in kinds if any(getattr(base, "id", "") == "Protocol" for base in each.bases)]
    classes = Counter(each.name for each in kinds)
    functions = [each.name for module in modules for each in module.functions]
    yield "classes / Protocols (lines)", f"{len(kinds):,} / {len(protocols)} ({sum(protocols)})"
    yield "class names used more than once", f"{sum(1 for count in classes.values() if count > 1)}"
    yield "functions named by a past participle", f"{sum(1 for name in functions if is_participle(name))}"


def exemptions(modules: Sequence[Module]) -> Iterator[tuple[str, str]]:
    comments = [comment for module in modules for comment in module.comments]
    casts = [node for module in modules for node in module.nodes if isinstance(node, ast.Call) and calls_cast(node)]
    ignored = sum(1 for each in comments if "type: ignore" in each)
    yield "type: ignore / cast / noqa", f"{ignored} / {len(casts)} / {sum(1 for each in comments if 'noqa' in each)}"


def length(function: Function | ast.ClassDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def depth(node: ast.AST, level: int = 0) -> int:
    """Return the depth of nested blocks in the syntax tree. Each `elif` counts one level deeper than its `if`."""
    below = (depth(child, level + isinstance(child, BLOCKS)) for child in ast.iter_child_nodes(node))
    return max(below, default=level)


def parameters_of(function: Function) -> Iterator[ast.arg]:
    named = function.args
    yield from (each for each in (*named.posonlyargs, *named.args) if each.arg not in ("self", "cls"))
    yield from named.kwonlyargs


def is_annotated(function: Function) -> bool:
    return function.returns is not None and all(each.annotation is not None for each in parameters_of(function))


def is_broad(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(each is None or getattr(each, "id", "") in ("Exception", "BaseException") for each in caught)


def raises_again(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise)


def waits(loop: ast.While) -> bool:
    inside = list(ast.walk(loop))
    return any(
        isinstance(node, ast.Await) or (isinstance(node, ast.Attribute) and node.attr in WAITS) for node in inside
    )


def is_participle(name: str) -> bool:
    """Return whether a name begins or ends with a past participle. `_told` and `loop_ended` do; `is_written` and `feed`
    do not.
    """
    words = name.strip("_").split("_")
    if words[0] in ("is", "has", "are", "was", "test"):
        return False
    return any(
        word in PARTICIPLES or (word.endswith("ed") and len(word) > 3 and word not in BASE_FORMS)
        for word in (words[0], words[-1])
    )


def calls_cast(call: ast.Call) -> bool:
    return getattr(call.func, "id", getattr(call.func, "attr", "")) == "cast"


def spread(values: Sequence[int]) -> str:
    ordered = sorted(values) or [0]
    tenth = ordered[max(0, math.ceil(0.9 * len(ordered)) - 1)]
    return f"{median(ordered):.0f} / {tenth} / {ordered[-1]}"


def over(values: Sequence[int], limit: int) -> int:
    return sum(1 for each in values if each > limit)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
