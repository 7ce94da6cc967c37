"""What a process uses of its machine."""

import os
import resource
from pathlib import Path

_PAGE = resource.getpagesize()
_STATM = Path("/proc/self/statm")


def rss_bytes() -> int:
    """What it holds in memory now; where the system does not tell, the most it ever held."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def cpu_seconds() -> float:
    used = os.times()
    return round(used.user + used.system, 2)
