"""The continuous worker, ``python -m app.workers.fila_worker``: messages leave, deliveries are read, doubts are found out."""

import sys

if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.main:work", "worker", *sys.argv[1:]]))
