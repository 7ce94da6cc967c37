"""The message worker, ``python -m app.workers.fila_worker``. It sends messages and processes webhook deliveries. If the
gateway's answer to a send was lost, the worker finds out whether the message was sent.
"""

import sys

if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.main:work", "worker", *sys.argv[1:]]))
