"""Parses durations that operators type: 30m, 2h, 1d."""

import re
from datetime import timedelta

LONGEST_SPAN = timedelta(days=36500)  # one century; the texts cli.form_span contain this number
_SPAN = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def read_span(text: str) -> timedelta | None:
    """Parse a duration such as ``30m`` or ``2h``. Return None if the text is not a duration."""
    matched = _SPAN.fullmatch(text.strip())
    if matched is None:
        return None
    try:
        length = timedelta(**{_UNITS[matched[2]]: int(matched[1])})
    except OverflowError:
        return None
    return length if timedelta(0) < length <= LONGEST_SPAN else None
