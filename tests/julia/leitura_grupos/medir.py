"""Print the scores of the reader by author, and what would be imported, each author left out of the calibration in turn:
``python -m tests.julia.leitura_grupos.medir``.
"""

from app.contexts.vagas.limiares import Limiares
from tests.julia.leitura_grupos.calibrar import confiabilidade, importadas
from tests.julia.leitura_grupos.placar import CAMPOS, autores, placar, tabela

_HEAD = ("author", "messages", "eh_oferta F1", "categoria", "vagas", "vaga F1", "false", "missed", *CAMPOS)


def main() -> None:
    print(tabela([_HEAD, *(_linha(name, [name]) for name in autores()), _linha("all", autores())]))
    limit = Limiares().leitura
    print(f"\nimported with a confidence of at least {limit}, each author left out of the calibration in turn:\n")
    print(f"{importadas(limit)}\n\n{confiabilidade()}")


def _linha(name: str, of: list[str]) -> list[str]:
    total = placar(of)
    counts = total.vagas
    scores = [f"{total.oferta:.3f}", f"{total.categoria:.3f}", str(counts["tp"] + counts["fn"]), f"{total.vaga:.3f}"]
    fields = (f"{total.campo(each):.3f}" for each in CAMPOS)
    return [name, str(total.mensagens), *scores, str(counts["fp"]), str(counts["fn"]), *fields]


if __name__ == "__main__":
    main()
