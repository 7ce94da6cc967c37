"""Format an SQL statement with line breaks and indents. Only white space changes."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

WIDTH = 110
INDENT = "    "
CLAUSES = {
    *("WITH", "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "FOR"),
    *("INSERT", "UPDATE", "DELETE", "SET", "ON", "RETURNING"),
}
JOINS = {"LEFT", "CROSS", "JOIN"}
# Maps each word that begins a clause to the words after which it does not begin one, as FROM after DELETE.
INSIDE = {
    "UPDATE": {"FOR", "KEY", "DO"},
    "JOIN": JOINS,
    "SET": {"UPDATE"},
    "FROM": {"DISTINCT", "DELETE"},
}
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|--[^\n]*|[:$]?\w+|::|->>|->|\|\||[<>!]=|<>|\S""")


@dataclass(frozen=True)
class Token:
    text: str
    is_spaced: bool  # white space precedes the token


@dataclass(frozen=True)
class Group:
    """A pair of brackets, or CASE … END, with its content."""

    opening: Token
    parts: "tuple[Part, ...]"
    closing: Token


Part = Token | Group


def layout(statement: str) -> str:
    return "\n".join(_lines(_parse(tokens(statement)), ""))


def tokens(statement: str) -> Iterator[Token]:
    end = 0
    for match in _TOKEN.finditer(statement):
        yield Token(match[0], match.start() > end)
        end = match.end()


def _parse(found: Iterator[Token], closing: str = "") -> tuple[Part, ...]:
    parts: list[Part] = []
    for token in found:
        if token.text == closing:
            return (*parts, token)
        if ends := {"(": ")", "CASE": "END"}.get(token.text):
            *inner, last = _parse(found, ends)
            assert isinstance(last, Token)
            parts.append(Group(token, tuple(inner), last))
        else:
            parts.append(token)
    return tuple(parts)


def _lines(parts: Sequence[Part], indent: str) -> Iterator[str]:
    if not parts:
        return
    if _fits(parts, indent):
        yield indent + _flat(parts)
        return
    clauses = _split(parts, _begins_clause)
    if len(clauses) > 1:
        for clause in clauses:
            yield from _lines(clause, indent)
        return
    yield from _long_clause(parts, indent)


def _long_clause(parts: Sequence[Part], indent: str) -> Iterator[str]:
    items = _split(parts, lambda before, part: before is not None and _text(before) == ",")
    if len(items) > 1:
        heads = sum(1 for part in items[0][:2] if _text(part) in CLAUSES | {"RECURSIVE", "DISTINCT"})
        if heads:
            yield indent + _flat(items[0][:heads])
            items[0], indent = items[0][heads:], indent + INDENT
        for item in items:
            yield from _lines(item, indent)
        return
    conditions = _split(parts, lambda before, part: before is not None and _text(part) in ("AND", "OR"))
    if len(conditions) > 1:
        yield from _lines(conditions[0], indent)
        for condition in conditions[1:]:
            yield from _expanded(condition, indent + "  ")
        return
    yield from _expanded(parts, indent)


def _expanded(parts: Sequence[Part], indent: str) -> Iterator[str]:
    """Yield the lines for a part of a statement. The content of each pair of brackets that is too long for one line is
    indented below the opening bracket.
    """
    line: list[Part] = []
    for place, part in enumerate(parts):
        if isinstance(part, Token) and part.text.startswith("--"):
            yield indent + _flat([*line, part])
            line = []
        elif isinstance(part, Group) and not _fits([*line, part, *parts[place + 1 : place + 2]], indent):
            yield indent + _flat([*line, part.opening])
            yield from _branches(part, indent + INDENT)
            line = [Token(part.closing.text, False)]
        else:
            line.append(part)
    if line:
        yield indent + _flat(line)


def _branches(group: Group, indent: str) -> Iterator[str]:
    if group.opening.text != "CASE":
        yield from _lines(group.parts, indent)
        return
    for branch in _split(group.parts, lambda before, part: _text(part) in ("WHEN", "ELSE")):
        yield from _expanded(branch, indent)


def _begins_clause(before: Part | None, part: Part) -> bool:
    word = _text(part)
    return word in CLAUSES | JOINS and (before is None or _text(before) not in INSIDE.get(word, ()))


def _split(parts: Sequence[Part], begins: Callable[[Part | None, Part], bool]) -> list[Sequence[Part]]:
    pieces: list[list[Part]] = [[]]
    before: Part | None = None
    for part in parts:
        if begins(before, part) and pieces[-1]:
            pieces.append([])
        pieces[-1].append(part)
        before = part
    return [*pieces]


def _fits(parts: Sequence[Part], indent: str) -> bool:
    text = _flat(parts)
    return len(indent) + len(text) <= WIDTH and "--" not in text


def _flat(parts: Sequence[Part]) -> str:
    return "".join(_spaced(part) for part in parts).lstrip()


def _spaced(part: Part) -> str:
    if isinstance(part, Token):
        return f"{' ' if part.is_spaced else ''}{part.text}"
    inner = _flat(part.parts) if part.opening.text == "(" else "".join(_spaced(each) for each in part.parts)
    end = part.closing.text if part.opening.text == "(" else _spaced(part.closing)
    return f"{_spaced(part.opening)}{inner}{end}"


def _text(part: Part) -> str:
    return part.text if isinstance(part, Token) else ""
