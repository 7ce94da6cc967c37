"""Score the reader of inbound texts on the labelled sentences of each author: ``python -m
tests.julia.leitura_conversas.score``.

A development author's sentences are read by a model that was not trained on them (``validacao.json``). The command
prints scores but no sentence, so that the people who change the reader do not see the sentences of the unseen authors.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from app.contexts.leitura_conversas.api import OptOut, ler
from tests.julia.leitura_conversas.frases import SIM, UNSEEN, authors, sentences

VALIDATION = Path(__file__).parent / "validacao.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How many of one author's sentences were read correctly, and how many wrongly."""

    wishes: int  # number of sentences labelled certo or provavel
    heard: int  # number of sentences labelled certo or provavel, and read as one of the two
    others: int  # number of sentences labelled nao
    false_alarms: int  # number of sentences labelled nao but read as certo or provavel
    certo: int  # number of sentences read as certo
    certo_right: int  # number of sentences read as certo and labelled certo or sim
    certo_wrong: int  # number of sentences read as certo but labelled nao
    # number of sentences labelled and read as nao whose class was read correctly; 0 if the author labelled no classes
    same_class: int

    @property
    def recall(self) -> float:
        return self.heard / self.wishes

    @property
    def false_alarm_share(self) -> float:
        return self.false_alarms / self.others


def score_unseen(autor: str) -> Score:
    read = [(ler(each.texto), each) for each in sentences(UNSEEN, autor)]
    wishes = [leitura for leitura, each in read if each.opt_out != OptOut.NAO]
    others = [(leitura, each.classe) for leitura, each in read if each.opt_out == OptOut.NAO]
    certain = [each.opt_out for leitura, each in read if leitura.opt_out is OptOut.CERTO]
    return Score(
        wishes=len(wishes),
        heard=sum(each.opt_out is not OptOut.NAO for each in wishes),
        others=len(others),
        false_alarms=sum(each.opt_out is not OptOut.NAO for each, _ in others),
        certo=len(certain),
        certo_right=certain.count(OptOut.CERTO) + certain.count(SIM),
        certo_wrong=certain.count(OptOut.NAO),
        same_class=sum(leitura.classe == classe for leitura, classe in others),
    )


def validated() -> dict[str, Score]:
    """Return the scores of each development author. The author's sentences are read by a model that was trained without
    them.
    """
    read = json.loads(VALIDATION.read_text(encoding="utf-8"))
    return {autor: Score(**figures) for autor, figures in read["authors"].items()}


def main() -> None:
    found = {
        **{f"{autor} (left out)": score for autor, score in validated().items()},
        **{f"{autor} (unseen)": score_unseen(autor) for autor in authors(UNSEEN)},
    }
    for name, score in found.items():
        classes = f"{score.same_class}/{score.others}" if score.same_class else "not labelled"
        print(
            f"{name}: recall {score.heard}/{score.wishes} = {score.recall:.4f}, "
            f"false alarms {score.false_alarms}/{score.others} = {score.false_alarm_share:.4f}, "
            f"read certo {score.certo} ({score.certo_right} certo, {score.certo_wrong} nao), "
            f"class {classes}"
        )


if __name__ == "__main__":
    main()
