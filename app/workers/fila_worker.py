"""The message worker, ``python -m app.workers.fila_worker``. It sends messages, processes webhook deliveries, and finds
out whether messages were sent when the gateway's answer was lost.
"""

import sys

if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.main:work", "worker", *sys.argv[1:]]))
