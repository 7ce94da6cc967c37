"""The continuous worker of the groups, ``python -m app.workers.grupos_worker``: what they say is read, stage by stage."""

import sys

if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.main:work", "worker", *sys.argv[1:]]))
