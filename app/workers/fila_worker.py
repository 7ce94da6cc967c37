"""Start the worker for all queues with ``python -m app.workers.fila_worker``, as ``batuta worker`` does. Among other
work, this process sends messages and processes webhook deliveries.
"""

import sys

if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.main:work", "worker", *sys.argv[1:]]))
