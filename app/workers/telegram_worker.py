"""The Telegram worker, ``python -m app.workers.telegram_worker``, like ``batuta telegram``. Its loops are sync,
outbound, history and jobs.
"""

import sys

if __name__ == "__main__":
    from batuta.cli import main

    sys.exit(main(["--app", "app.main:work", "telegram", *sys.argv[1:]]))
