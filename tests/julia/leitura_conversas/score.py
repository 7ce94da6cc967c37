"""Figures of the reader on the labelled sentences, per author: ``python -m tests.julia.leitura_conversas.score``.

Only figures are printed, never a sentence: the sentences of some authors stay unseen by the people who write the grammar.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.contexts.leitura_conversas.api import OptOut, ler

FRASES = Path(__file__).parent / "frases"


@dataclass(frozen=True, slots=True)
class Score:
    autor: str
    wishes: int  # labelled certo or provavel
    heard: int
    others: int  # labelled nao
    false_alarms: int
    exact: int  # certo, provavel and nao as labelled
    same_class: int  # of the sentences labelled nao

    @property
    def recall(self) -> float:
        return self.heard / self.wishes if self.wishes else 1.0

    @property
    def false_alarm_share(self) -> float:
        return self.false_alarms / self.others if self.others else 0.0


def authors() -> list[str]:
    return sorted(file.stem for file in FRASES.glob("*.jsonl"))


def sentences(autor: str) -> Iterator[tuple[str, str, str]]:
    for line in (FRASES / f"{autor}.jsonl").read_text(encoding="utf-8").splitlines():
        labelled = json.loads(line)
        yield labelled["texto"], labelled["opt_out"], labelled["classe"]


def score(autor: str) -> Score:
    read = [(ler(texto), opt_out, classe) for texto, opt_out, classe in sentences(autor)]
    wishes = [leitura for leitura, opt_out, _ in read if opt_out != OptOut.NAO]
    others = [(leitura, classe) for leitura, opt_out, classe in read if opt_out == OptOut.NAO]
    return Score(
        autor=autor,
        wishes=len(wishes),
        heard=sum(each.opt_out is not OptOut.NAO for each in wishes),
        others=len(others),
        false_alarms=sum(each.opt_out is not OptOut.NAO for each, _ in others),
        exact=sum(leitura.opt_out == opt_out for leitura, opt_out, _ in read),
        same_class=sum(leitura.classe == classe for leitura, classe in others),
    )


def main() -> None:
    for autor in authors():
        found = score(autor)
        print(
            f"{autor}: recall {found.heard}/{found.wishes} = {found.recall:.4f}, "
            f"false alarms {found.false_alarms}/{found.others} = {found.false_alarm_share:.4f}, "
            f"exact {found.exact}/{found.wishes + found.others}, class {found.same_class}/{found.others}"
        )


if __name__ == "__main__":
    main()
