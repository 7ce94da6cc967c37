"""Patterns are translated on first use, so a test translates all of them."""

import tomllib
from pathlib import Path

from app.contexts.leitura_conversas import padroes
from app.contexts.leitura_conversas.padroes import pattern

GRAMMAR = tomllib.loads((Path(padroes.__file__).parent / "gramatica.toml").read_text(encoding="utf-8"))


class Nothing:
    escrita = ""
    chaves: frozenset[str] = frozenset()


def test_every_pattern_of_the_grammar_can_be_translated() -> None:
    written = [
        each
        for part in GRAMMAR.values()
        for named in part.values()
        for each in ([named] if isinstance(named, str) else named)
    ]
    assert len(written) > 20
    for each in written:
        assert pattern(each)._compiled.pattern
        pattern(each).search(Nothing())  # reads the words that it needs
