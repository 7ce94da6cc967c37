"""The continuous worker of the groups, ``python -m app.workers.grupos_worker``: it reads what they say, and does nothing else.

``work`` is Julia with a worker that is narrowed to the stages of the pipeline; ``batuta worker`` serves them among everything else.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from batuta.engine.batuta import Batuta

    work: Batuta


def __getattr__(name: str) -> object:
    if name != "work":
        raise AttributeError(name)
    from app.contexts.grupos.fila import Estagio
    from app.main import work

    work.only = tuple(Estagio)
    return work


if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.workers.grupos_worker:work", "worker", *sys.argv[1:]]))
