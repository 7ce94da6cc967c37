"""Counts of how the accepted items of a fault test ended."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts of items by result. ``in_vain`` counts the handler runs that began but were never settled."""

    items: int
    lost: int
    doubled: int
    effects: int
    in_vain: int
