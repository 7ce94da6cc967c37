"""Start the worker for all queues with ``python -m app.workers``, as ``batuta worker`` does."""

import sys

from batuta.cli import main

if __name__ == "__main__":
    sys.exit(main(["--app", "app.main:work", "worker", *sys.argv[1:]]))
