"""The entry point for ``python -m batuta``, which is the same as the ``batuta`` command."""

import gc
import sys


def main() -> int:
    """Run the command. Garbage collection is off until the application is loaded, because imports create almost no
    garbage, and each collection would visit all loaded modules. ``batuta.cli.main`` turns it on again.
    """
    gc.disable()
    from batuta.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
