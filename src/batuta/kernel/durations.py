"""A length of time for people: one number and one unit."""

from datetime import timedelta


def brief(length: timedelta) -> str:
    seconds = max(0, round(length.total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
