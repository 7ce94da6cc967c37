"""Entry point of ``python -m batuta``, the same as the ``batuta`` command."""

import sys

from batuta.cli import main

if __name__ == "__main__":
    sys.exit(main())
