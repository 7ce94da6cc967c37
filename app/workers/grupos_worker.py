"""The worker for the groups pipeline, ``python -m app.workers.grupos_worker``. It only processes group messages.

The object ``work`` is Julia's engine, limited to the stages of that pipeline. In contrast, ``batuta worker`` serves all
queues.
"""

import sys
from typing import TYPE_CHECKING

import app.main
from app.contexts.grupos.fila import Estagio

if TYPE_CHECKING:
    from batuta import Batuta

    work: Batuta


def __getattr__(name: str) -> object:
    if name != "work":
        raise AttributeError(name)
    app.main.work.only = tuple(Estagio)
    return app.main.work


if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.workers.grupos_worker:work", "worker", *sys.argv[1:]]))
