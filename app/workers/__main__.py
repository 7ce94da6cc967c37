"""The worker for all queues, ``python -m app.workers``, like ``batuta worker``."""

import sys

from batuta.cli import main

if __name__ == "__main__":
    sys.exit(main(["--app", "app.main:work", "worker", *sys.argv[1:]]))
