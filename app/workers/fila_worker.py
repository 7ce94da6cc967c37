"""The worker of messages, ``python -m app.workers.fila_worker``. It sends messages, processes deliveries and resolves
messages in doubt.
"""

import sys

if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.main:work", "worker", *sys.argv[1:]]))
