"""What became of items that were accepted."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tally:
    """``in_vain``: how often a handler began and did not come to settle."""

    items: int
    lost: int
    doubled: int
    effects: int
    in_vain: int
