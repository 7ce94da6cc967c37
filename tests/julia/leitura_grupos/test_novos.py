"""Authors whose messages and rows train no model. Some of their errors have become rules since the authors were new
(``docs/leitura.md``). Their scores do not fall below those that were measured before.
"""

import re
from pathlib import Path

import pytest

from tests.julia.leitura_grupos import novo_autor

NOVOS = Path(__file__).parent / "novos"
# Lowest F1 of vacancies, precision and coverage of imported vacancies, and share of correct addresses.
PISOS = {"dezenove": (0.883, 0.925, 0.672, 0.977), "vinte": (0.924, 0.977, 0.661, 0.898)}


def test_every_new_author_has_a_floor() -> None:
    assert {each.name for each in NOVOS.iterdir()} == {*PISOS}


@pytest.mark.parametrize("autor", PISOS)
def test_scores_of_a_new_author_reach_their_floor(autor: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert novo_autor.main([str(NOVOS / autor)]) == 0
    printed = capsys.readouterr().out
    shares = re.search(r"precision ([\d.]+), coverage ([\d.]+)", printed)
    scores = [line.split("|") for line in printed.splitlines() if re.match(r"\| \d", line)]
    assert shares is not None
    found = (float(scores[0][3]), float(shares[1]), float(shares[2]), float(scores[-1][2]))
    assert all(score >= floor for score, floor in zip(found, PISOS[autor], strict=True)), found
