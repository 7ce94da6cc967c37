"""Counts of the results of accepted items."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts of items by result. ``in_vain`` counts the handler runs that began but were never settled."""

    items: int
    lost: int
    doubled: int
    effects: int
    in_vain: int
