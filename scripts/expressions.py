"""Attack every regular expression of the program with generated texts: ``python -m scripts.expressions``.

The script checks the expressions that the modules of ``src``, ``app`` and ``simulador`` compile at import, and literal
expressions inside functions. A generated text repeats characters that a part of the expression accepts, and ends with a
character that it rejects. Such a text makes an expression try every division of the text. An expression is slow if a
text of double length takes much more than double the time.
"""

import argparse
import ast
import importlib
import pkgutil
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = ("batuta", "app", "simulador")
FOLDERS = (ROOT / "src", ROOT / "app", ROOT / "simulador")
SHORT = 500  # number of characters of the shorter text
ENDS = ("\x00", "a")
COMMON = (" ", "a", "1", "-", "\n", "a ", "1 ", "1.", "ab1 ")
SAMPLES = " a1A-./,:;_@%<>()[]{}\"'=\n\t#*+&!?$\\ãç–•\x1b\u200b"
# Time that is ignored: the part that does not depend on the length, and the inaccuracy of the clock.
SLOWEST_SECONDS = 0.0015
GROWTH = 3.0
FROM_THE_START = frozenset({"match", "fullmatch"})


@dataclass(frozen=True, slots=True)
class Expression:
    where: str  # file and line
    compiled: re.Pattern[Any]


@dataclass(frozen=True, slots=True)
class Finding:
    expression: Expression
    attack: str
    seconds: float
    growth: float


def collect() -> list[Expression]:
    """Import every module. Return the regular expressions that the program's files compiled."""
    found: dict[tuple[Any, int], Expression] = {}
    original = re._compile  # type: ignore[attr-defined]

    def recording(pattern: Any, flags: Any) -> Any:
        compiled, frame = original(pattern, flags), sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.endswith(("/re/__init__.py", "/functools.py")):
            frame = frame.f_back  # type: ignore[assignment]
        file = Path(frame.f_code.co_filename)
        if any(file.is_relative_to(each) for each in FOLDERS):
            where = f"{file.relative_to(ROOT)}:{frame.f_lineno}"
            found.setdefault((compiled.pattern, compiled.flags), Expression(where, compiled))
        return compiled

    re._compile = recording  # type: ignore[attr-defined]
    try:
        for name in modules():
            importlib.import_module(name)
    finally:
        re._compile = original  # type: ignore[attr-defined]
    for each in literals():
        found.setdefault((each.compiled.pattern, each.compiled.flags), each)
    return sorted(found.values(), key=lambda each: each.where)


def modules() -> Iterator[str]:
    for package in PACKAGES:
        opened = importlib.import_module(package)
        for each in pkgutil.walk_packages(opened.__path__, f"{package}."):
            if not each.name.endswith("__main__") and each.name != "batuta.django":  # Django needs settings first
                yield each.name


def literals() -> Iterator[Expression]:
    """Return expressions that are written inside calls such as ``re.sub(r"…", …)``."""
    for file in (file for folder in FOLDERS for file in sorted(folder.rglob("*.py"))):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and isinstance(node.args[0].value, str | bytes)
                and node.func.attr != "escape"
            ):
                yield Expression(f"{file.relative_to(ROOT)}:{node.lineno}", re.compile(node.args[0].value))


def sample(tree: Iterable[Any], wanted: str = "") -> str:
    """Return a short text that the parsed expression accepts. Where the expression permits several characters, the text
    contains ``wanted`` if possible.
    """
    return "".join(_sample(op, value, wanted) for op, value in tree)


def _sample(op: Any, value: Any, wanted: str) -> str:
    if op is sre.LITERAL:
        return chr(value)
    if op is sre.NOT_LITERAL:
        return next(each for each in (wanted or "a") + "ab" if ord(each) != value)
    if op is sre.ANY:
        return wanted or "a"
    if op is sre.IN:
        return next((each for each in f"{wanted}{SAMPLES}" if _is_in(each, value)), chr(_first(value)))
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, getattr(sre, "POSSESSIVE_REPEAT", None)):
        least, _, inside = value
        return sample(inside, wanted) * int(least)
    if op is sre.SUBPATTERN:
        return sample(value[3], wanted)
    if op is getattr(sre, "ATOMIC_GROUP", None):
        return sample(value, wanted)
    if op is sre.BRANCH:
        return sample(value[1][0], wanted)
    return ""  # positions, back-references and look-arounds match no text


def _first(items: Sequence[Any]) -> int:
    for op, value in items:
        if op is sre.LITERAL:
            return int(value)
        if op is sre.RANGE:
            return int(value[0])
    return ord("a")


def _is_in(character: str, items: Sequence[Any]) -> bool:
    code, negated, hit = ord(character), False, False
    for op, value in items:
        if op is sre.NEGATE:
            negated = True
        elif op is sre.LITERAL:
            hit |= code == value
        elif op is sre.RANGE:
            hit |= value[0] <= code <= value[1]
        elif op is sre.CATEGORY:
            hit |= _has_category(character, str(value))
    return hit != negated


def _has_category(character: str, name: str) -> bool:
    kinds = {
        "DIGIT": character.isdigit(),
        "SPACE": character.isspace(),
        "WORD": character.isalnum() or character == "_",
    }
    kind = next((found for word, found in kinds.items() if word in name), False)
    return kind != ("NOT" in name)


def repeats(tree: Iterable[Any], before: str = "") -> Iterator[tuple[str, str]]:
    """For each part of the expression that may repeat, yield two texts: one that the expression accepts before the
    part, and one that a single repetition of the part accepts.
    """
    for op, value in tree:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            _, most, inside = value
            if most > 8:
                yield from {(before, sample(inside, wanted)) for wanted in SAMPLES[:4]}
            yield from repeats(inside, before)
        elif op is sre.SUBPATTERN:
            yield from repeats(value[3], before)
        elif op is sre.BRANCH:
            for branch in value[1]:
                yield from repeats(branch, before)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            yield from repeats(value[1], before)
        before += _sample(op, value, "")


def attacks(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(text, pattern.flags & ~re.UNICODE & ~re.DEBUG)
    whole = sample(tree)
    bodies = {(before, pump) for before, pump in repeats(tree) if pump} | {("", pump) for pump in COMMON}
    bodies |= {("", before + pump) for before, pump in bodies} | {("", whole or "a")}
    for before, pump in sorted(bodies):
        repeated = (pump * (length // len(pump) + 1))[:length]
        for end in ENDS:
            yield before + repeated + end


def seconds_of(pattern: re.Pattern[Any], text: str, uses: Iterable[str]) -> float:
    given: Any = text if isinstance(pattern.pattern, str) else text.encode("utf-8", "replace")
    began = time.process_time()
    for use in uses:
        if use in FROM_THE_START:
            getattr(pattern, use)(given)
        else:
            for _ in pattern.finditer(given):
                pass
    return time.process_time() - began


def uses_of(expression: Expression) -> frozenset[str]:
    """Return how the program uses the expression: ``match``, ``fullmatch``, or ``search`` for every other use."""
    file, _, line = expression.where.partition(":")
    source = (ROOT / file).read_text(encoding="utf-8")
    written = source.splitlines()[int(line) - 1]
    if (called := re.search(r"\bre\.(match|fullmatch)\(", written)) is not None:
        return frozenset({called[1]})
    named = re.match(r"\s*(\w+)\b[^=\n]*=", written)
    uses = set() if named is None else set(re.findall(rf"\b{named[1]}\.(\w+)\b", source))
    return frozenset(uses) if uses and uses <= FROM_THE_START else frozenset({"search"})


def examine(expression: Expression, length: int = SHORT) -> Finding | None:
    """Return a finding if there is a text on which the expression's running time grows faster than the text's length.
    Return None if no such text was found.
    """
    uses, pattern = uses_of(expression), expression.compiled
    for short, long in zip(attacks(pattern, length), attacks(pattern, 2 * length), strict=True):
        took = seconds_of(pattern, long, uses)
        if took < SLOWEST_SECONDS:
            continue
        took = min(took, seconds_of(pattern, long, uses), seconds_of(pattern, long, uses))
        growth = took / max(min(seconds_of(pattern, short, uses) for _ in range(3)), 1e-6)
        if took >= SLOWEST_SECONDS and growth >= GROWTH:
            return Finding(expression, f"{long[:40]!r}…{long[-3:]!r}", took, growth)
    return None


def main(arguments: Sequence[str]) -> int:
    asked = argparse.ArgumentParser(prog="python -m scripts.expressions", description=__doc__)
    asked.add_argument("--length", type=int, default=SHORT)
    length = asked.parse_args(arguments).length
    expressions = collect()
    found = [each for each in (examine(expression, length) for expression in expressions) if each is not None]
    for each in sorted(found, key=lambda each: -each.seconds):
        print(f"{each.expression.where}: {1000 * each.seconds:.0f} ms for {2 * length} characters, x{each.growth:.1f}")
        print(f"    {each.expression.compiled.pattern!r:.150}\n    {each.attack}")
    print(f"{len(expressions)} expressions, {len(found)} slow")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
