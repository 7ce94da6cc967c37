"""Every regular expression runs in time proportional to the length of the text.

The tests check only a selection. ``python -m scripts.expressions`` checks every expression, which takes a minute.
"""

import importlib
import re
import time

import pytest

from scripts.expressions import Expression, examine

LENGTH = 500
# Expressions that were once slow, with the text that made them slow.
ATTACKS = {
    "app.contexts.agendamentos.documento.documento._TOKEN": ("SSPDS", " "),
    "app.contexts.agendamentos.planilha.arquivo._UNCOUNTED": ('<c r="A1"><f/>', " "),
    "app.contexts.agendamentos.planilha.arquivo._ATTRIBUTE": ("", "a"),
    "app.contexts.agendamentos.planilha.celulas._AREA_APART": ("11/n", "."),
    "app.contexts.diretrizes.leitura._HEADING": ("# a", " "),
    "app.contexts.diretrizes.leitura._VACANCY": ("a - 1/1 - até", " "),
    "app.contexts.esteira.pseudonimos._STREET": ("rua", " "),
    "app.contexts.gatilhos.avaliacao.MARK": ("nota", " "),
    "app.contexts.grupos.service._APART": ("", "\n"),
    "app.contexts.leitura_grupos.blocos.celula._TURNO_NO_FIM": ("aa", "("),
    "app.contexts.leitura_grupos.blocos.mes._COM_PRECO": ("", "1 "),
    "app.contexts.leitura_grupos.blocos.tabela._RULE": ("", "-"),
    "app.contexts.leitura_grupos.juizo.intencao._FILE": ("a.pdf", " "),
    "app.contexts.nomes.nomes._SUFFIX": ("", "\n"),
    "app.contexts.plantoes.candidatos._SEPARATES": ("", "\n"),
    "app.contexts.respostas.decisao._BEYOND": ("", "quando "),
    "app.contexts.vagas.reajustes._BY_SO_MUCH": ("", "subi "),
    "app.integrations.documents.google._ANCHOR": ("", " "),
    "batuta.stores.postgres.copying._CREATE": ("", "\n"),
    "batuta.web.live._LIVE": ("", "<a "),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_expression_that_was_slow_stays_fast(name: str) -> None:
    """Check that a regular expression that was once quadratic takes linear time. The test measures the time for a text
    and for one four times as long; a quadratic expression would need sixteen times as long.
    """
    module, _, attribute = name.rpartition(".")
    pattern: re.Pattern[str] = getattr(importlib.import_module(module), attribute)
    start, pump = ATTACKS[name]

    def seconds(length: int) -> float:
        text = start + pump * (length // len(pump)) + "\x00"
        given = text if isinstance(pattern.pattern, str) else text.encode()
        best = 1.0
        for _ in range(3):
            began = time.process_time()
            for _ in pattern.finditer(given):
                pass
            pattern.fullmatch(given)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(4 * LENGTH) < 10 * max(seconds(LENGTH), 0.001)


@pytest.mark.parametrize(
    ("pattern", "is_slow"),
    [
        (r"\d+-", True),
        (r"(?<!\d)\d++-", False),
        (r"[a-z]{1,20}:", False),
        (r"<[^<>]*>", False),
    ],
)
def test_generated_texts_show_which_expressions_are_slow(pattern: str, is_slow: bool) -> None:
    found = examine(Expression("scripts/expressions.py:1", re.compile(pattern)))
    assert (found is not None) == is_slow
