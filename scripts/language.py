"""List the phrases that the style rules for prose reject: `python3 scripts/language.py [PATH …]`.

`python3 scripts/language.py --draw SEED` prints a random sample instead, for a reader who does not know the project and
says which pieces are clear at first reading.

The script reads docstrings, comments, sentences in string literals, text files, templates, documents and names of
functions, classes, arguments and variables. It prints FILE:LINE, the phrase and a suggestion for each hit, then the
totals of each folder. Code in Markdown fences and between backticks is exempt.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src/batuta", "app", "simulador", "tests", "docs", "scripts", "bench", "examples", "deploy")
OTHER = "(root)"
# Paths whose string literals operators read. String literals of tests are data and not checked.
SPOKEN = ("src/batuta", "app", "simulador", "scripts", "dev.py")
HASH_COMMENTS = {".yaml", ".yml", ".sh", ".service", ".in"}
WORD_LISTS = (  # files whose strings are data, not prose
    "scripts/measure.py",
    "scripts/language.py",
    "app/contexts/leitura_grupos/dados/palavras.toml",
    "app/contexts/nomes/nomes.toml",
)
CONTEXT = 120  # number of characters of the line to print
MIGRATION = re.compile(r"\d{4}_\w+\.sql")
LINES = {".j2", ".html", ".js", ".css"}

Kind = Literal["docstring", "comment", "text", "document", "name"]


@dataclass(frozen=True)
class Prose:
    """A piece of text and the line of the file on which it begins. Newlines in ``text`` are lines of the file."""

    file: str
    line: int
    kind: Kind
    text: str


@dataclass(frozen=True)
class Rule:
    pattern: re.Pattern[str]
    suggestion: str
    kinds: tuple[Kind, ...] = ("docstring", "comment", "text", "document", "name")


@dataclass(frozen=True)
class Hit:
    file: str
    line: int
    kind: Kind
    phrase: str
    suggestion: str
    context: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: '{self.phrase}' ({self.suggestion}): {self.context}"


def rule(pattern: str, suggestion: str, *kinds: Kind) -> Rule:
    compiled = re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE)
    return Rule(compiled, suggestion, kinds) if kinds else Rule(compiled, suggestion)


SUBJECT = "begin with the component or with an imperative"
RULES = (
    rule(r"\bwhom?ever\b", "name the component: the worker, the caller, the process that claims it"),
    rule(r"\b(?:some|no)body(?:['’]s)?\b", "name the component: another process, no process, no worker"),
    rule(r"\b(?:un)?told\b", "use the verb of the component: reports, notifies, receives, logs"),
    rule(r"\banew\b", "again"),
    rule(r"\bbesides\b", "also; in addition to; apart from"),
    rule(
        r"(?<!\bthere\s)\b(?:is|are|was|were) no\b(?! longer\b| \w+ than\b)",
        "say what it is, or use 'is not a'; 'there is no' and 'no longer' are fine",
    ),
    rule(r"\b(?:he|him|his|himself|she|her|hers|herself)\b", "it, its; they, their for people; or repeat the noun"),
    rule(r"\bfor ever\b", "permanently; without a limit; never again", "docstring", "comment", "text", "document"),
    rule(r"\balso if\b", "even if"),
    rule(r"\breasons? against\b", "reason that prevents, excludes or forbids"),
    rule(r"\bgoes on\b", "continues"),
    rule(r"\ball the same\b", "still; anyway; or delete it"),
    rule(r"\bnext to nothing\b", "state the cost, or 'little'"),
    rule(r"\bnot without\b", "make it positive: 'with', 'only after', 'requires'"),
    rule(r"\bone['’]s\b", "its; or repeat the noun"),
    rule(r"\A\W*(?-i:What|Those|That which|Where nothing)\b(?![^.!]*\?)", SUBJECT, "docstring", "comment"),
    rule(r"(?<=[.!?]\s)(?-i:What)\b(?![^.!]*\?)", SUBJECT, "docstring", "comment", "document", "text"),
    rule(r"\A(?:\W*\n)*What (?:[^.!?\n]|\n(?!\n))*\b(?:is|are|was|were)\b[^.?]*\.", SUBJECT, "document", "text"),
    rule(r"\Atest (?:what|those)\b", "name the component that keeps the promise", "name"),
)

# A quick search before a file is parsed. A file without a match has no hit.
SUSPECT = re.compile(
    r"(?i:whom?ever|(?:some|no)body|told|anew|besides|\b(?:is|are|was|were)\W+no\b|\b(?:he|him|his|himself|she|hers?|herself)\b"
    r"|for\W+ever|also\W+if|reasons?\W+against|goes\W+on"
    r"|all\W+the\W+same|next\W+to\W+nothing|not\W+without|one['’]s|test\W+(?:what|those)\b)"
    r"|What|Those|That\W+which|Where\W+nothing"
)


IN_PORTUGUESE = ("pt_BR.toml", "docs/operacao.md", "docs/operar.md", "docs/glossario.md")
# The sample of --draw: a heading, the number of pieces, and the condition for a piece.
SAMPLE: tuple[tuple[str, int, Callable[[Prose], bool]], ...] = (
    ("docstrings", 60, lambda each: each.kind == "docstring"),
    ("texts", 30, lambda each: each.kind == "text" and each.file.endswith("texts/en.toml")),
    ("paragraphs", 20, lambda each: each.kind == "document" and not each.file.endswith(IN_PORTUGUESE)),
    ("Portuguese", 25, lambda each: each.kind in ("text", "document") and each.file.endswith(IN_PORTUGUESE)),
)
SHORT = 5  # a piece with fewer words is a label, whose meaning depends on its place


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--draw"]:
        print(draw(int(arguments[1])))
        return 0
    paths = [Path(each).resolve() for each in arguments] or [ROOT]
    found = [prose for file in files(paths) for prose in read(file)]
    hits = check(found)
    for hit in hits:
        print(hit)
    print(table(found, hits))
    return 1 if hits else 0


def draw(seed: int) -> str:
    chance = Random(seed)  # noqa: S311 - a sample, not a secret
    pieces = [prose for file in files() for prose in read(file) if len(prose.text.split()) >= SHORT]
    drawn = ((title, chance.sample([each for each in pieces if fits(each)], count)) for title, count, fits in SAMPLE)
    return "\n\n".join(
        f"# {title} {n}: {each.file}:{each.line}\n{each.text.strip()}"
        for title, chosen in drawn
        for n, each in enumerate(chosen, 1)
    )


def files(paths: Iterable[Path] = (ROOT,)) -> list[Path]:
    """Return the files of the repository at or below these paths. The result excludes hidden files, and migrations,
    whose checksums forbid edits.
    """
    known = chain(
        (file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.is_file()),
        (file for file in ROOT.iterdir() if file.is_file()),
    )
    asked = list(paths)
    return sorted(
        file
        for file in known
        if not any(part.startswith((".", "__pycache__")) for part in file.relative_to(ROOT).parts)
        if not MIGRATION.fullmatch(file.name)
        if any(file.is_relative_to(path) for path in asked)
    )


def is_suspect(text: str) -> bool:
    return SUSPECT.search(text.replace("_", " ")) is not None


def check(found: Iterable[Prose]) -> list[Hit]:
    return sorted({hit for prose in found for hit in _hits(prose)}, key=lambda hit: (hit.file, hit.line, hit.phrase))


def folder(file: str) -> str:
    return next((each for each in FOLDERS if file.startswith(f"{each}/")), OTHER)


def table(found: Iterable[Prose], hits: Iterable[Hit]) -> str:
    """Return a table of hits and sentences per folder. A name does not count as a sentence."""
    sentences: Counter[str] = Counter()
    for prose in found:
        if prose.kind != "name":
            sentences[folder(prose.file)] += _sentences(prose.text)
    in_prose = Counter(folder(hit.file) for hit in hits if hit.kind != "name")
    in_names = Counter(folder(hit.file) for hit in hits if hit.kind == "name")
    rows = [(each, in_prose[each], sentences[each], in_names[each]) for each in (*FOLDERS, OTHER)]
    rows.append(("total", in_prose.total(), sentences.total(), in_names.total()))
    return "\n".join(
        [
            f"{'folder':12} {'hits':>6} {'sentences':>10} {'share':>7} {'names':>6}",
            *(
                f"{name:12} {count:6} {total:10} {count / total:7.2%} {names:6}"
                for name, count, total, names in rows
                if total
            ),
        ]
    )


def read(file: Path) -> Iterator[Prose]:
    """Yield the prose of one file according to its type. Files of unknown types have no prose."""
    name = file.relative_to(ROOT).as_posix()
    if file.suffix == ".py":
        return _python(name, file.read_text(encoding="utf-8"))
    if file.suffix == ".md":
        return _markdown(name, file.read_text(encoding="utf-8"))
    if file.suffix == ".toml":
        return _toml(name, file.read_text(encoding="utf-8"))
    if file.suffix == ".sql":
        return _line_comments(name, file.read_text(encoding="utf-8"), "--")
    if file.suffix in HASH_COMMENTS or file.name in ("Dockerfile", "Makefile", "Procfile"):
        return _line_comments(name, file.read_text(encoding="utf-8"), "#")
    if file.suffix in LINES:
        return _lines(name, file.read_text(encoding="utf-8"))
    return iter(())


def _hits(prose: Prose) -> Iterator[Hit]:
    text = prose.text if prose.kind == "name" else _without_code(prose.text)
    for each in RULES:
        if prose.kind in each.kinds:
            for match in each.pattern.finditer(text):
                start = match.start() + len(match[0]) - len(match[0].lstrip())
                row = text.count("\n", 0, start)
                phrase = " ".join(match[0].split()[:4])
                context = prose.text.splitlines()[row].strip()[:CONTEXT]
                yield Hit(prose.file, prose.line + row, prose.kind, phrase, each.suggestion, context)


def _without_code(text: str) -> str:
    """Replace code between backticks with underscores. Line numbers do not change."""
    return re.sub(r"(`+)(?!`)(.+?)\1", lambda match: re.sub(r"\S", "_", match[0]), text, flags=re.DOTALL)


def _sentences(text: str) -> int:
    return max(1, len(re.findall(r"\w[.!?](?=\s|$)", text)))


def _python(name: str, text: str) -> Iterator[Prose]:
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = set()
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(first.value)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings:
                yield Prose(name, node.lineno, "docstring", node.value)
            elif name.startswith(SPOKEN) and name not in WORD_LISTS and len(node.value.split()) > 2:
                yield Prose(name, node.lineno, "text", node.value)
        elif defined := _defined(node):
            yield Prose(name, getattr(node, "lineno", 1), "name", _words(defined))
    yield from _python_comments(name, text)


def _defined(node: ast.AST) -> str | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return None


def _words(identifier: str) -> str:
    """Split an identifier into words: `_is_open` becomes 'is open', `LeaseLost` becomes 'lease lost'."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", identifier).replace("_", " ").strip().lower()


def _python_comments(name: str, text: str) -> Iterator[Prose]:
    alone: list[tuple[int, str]] = []
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, content = token.start[0], token.string.lstrip("#").strip()
            if lines[row - 1].lstrip().startswith("#"):
                alone.append((row, content))
            else:
                yield Prose(name, row, "comment", content)
    yield from _blocks(name, alone, "comment")


def _blocks(name: str, lines: Iterable[tuple[int, str]], kind: Kind) -> Iterator[Prose]:
    """Join consecutive lines into one piece of prose, because a phrase may continue on the next line."""
    block: list[str] = []
    start = 0
    for row, content in lines:
        if block and row == start + len(block):
            block.append(content)
            continue
        if block:
            yield Prose(name, start, kind, "\n".join(block))
        block, start = [content], row
    if block:
        yield Prose(name, start, kind, "\n".join(block))


def _line_comments(name: str, text: str, sign: str) -> Iterator[Prose]:
    found = (
        (row, line.partition(sign)[2].strip())
        for row, line in enumerate(text.splitlines(), 1)
        if line.lstrip().startswith(sign) or f" {sign} " in line
    )
    return _blocks(name, found, "comment")


def _lines(name: str, text: str) -> Iterator[Prose]:
    for row, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield Prose(name, row, "text", re.sub(r"<[^>]*>|\{\{.*?\}\}|\{%.*?%\}", " ", line).strip())


def _toml(name: str, text: str) -> Iterator[Prose]:
    for row, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            yield Prose(name, row, "comment", line.strip("# "))
        elif name in WORD_LISTS:
            continue
        elif key := re.match(r'\s*(?:"[^"]*"|([\w.-]+))\s*=\s*', line):
            if key[1]:
                yield Prose(name, row, "name", _words(key[1].replace("-", "_").replace(".", "_")))
            yield Prose(name, row, "text", line[key.end() :].strip('"'))
        elif line.strip() and not line.startswith("["):
            yield Prose(name, row, "text", line)


def _markdown(name: str, text: str) -> Iterator[Prose]:
    """Yield paragraphs, list items, cells and headings separately, without fenced code."""
    paragraph: list[tuple[int, str]] = []
    fenced = False
    for row, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        fenced = fenced != fence
        if fence or fenced:
            continue
        if line.startswith(("|", "#")) or not line.strip():
            yield from _blocks(name, paragraph, "document")
            paragraph = []
            for cell in line.strip("|# ").split("|"):
                if cell.strip():
                    yield Prose(name, row, "document", cell.strip())
            continue
        if re.match(r"\s*(?:[-*]|\d+\.) ", line):
            yield from _blocks(name, paragraph, "document")
            paragraph = []
        paragraph.append((row, line))
    yield from _blocks(name, paragraph, "document")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
