"""Why something did not run, in the reader's language. The log keeps one sentence, in English; these are its shapes."""

import re

from batuta.texts import Texts

_BY = r"(?:, turned by (?P<by>.+?): (?P<reason>.*))?"
_SHAPES = {
    # Whole sentences first; those that hold another one within them last.
    "unfinished": r"not implemented yet",
    "pause_all": rf"(?:held: )?switch pause\.all is on{_BY}",
    "pause_category": rf"(?:held: )?switch pause\.category\.(?P<name>\w+) is on{_BY}",
    "pause_job": rf"(?:held: )?switch pause\.job\.\w+ is on{_BY}",
    "switch_on": rf"(?:held: )?switch (?P<name>[\w.-]+) is on{_BY}",
    "switch_off": rf"(?:held: )?switch (?P<name>[\w.-]+) is off{_BY}",
    "switch_unreadable": r"(?:held: )?switch (?P<name>[\w.-]+) cannot be read: turn it again",
    "window": r"(?:held: )?window (?P<name>\w+) is closed",
    "overlap": r"overlap: the run before it is still going",
    "never_ran": r"it never ran",
    "no_scheduler": r"no scheduler has ever been seen",
    "no_run": r"no run since the last expected fire",
    "missed_skip": r"nobody was there to fire it, and catch_up is 'skip'(?:; (?P<count>\d+) fires)?",
    "missed_latest": r"nobody was there to fire it; only the latest is caught up, and not when it is too old"
    r"(?:; (?P<count>\d+) fires)?",
    "missed_old": r"nobody was there to fire it, and it is too old to be caught up(?:; (?P<count>\d+) fires)?",
    "no_success": r"it does not succeed: (?P<inner>.+)",
    "partial": r"partial: (?P<inner>.+)",
    "by_hand": r"run by hand although (?P<inner>.+)",
}
_PATTERNS = {key: re.compile(shape, re.DOTALL) for key, shape in _SHAPES.items()}


def in_words(reason: str, texts: Texts) -> str:
    """A sentence nobody knows here stays as it is: an application may have its own."""
    for key, pattern in _PATTERNS.items():
        if (found := pattern.fullmatch(reason)) is not None:
            facts = found.groupdict()
            inner = facts.pop("inner", None)
            told = texts(f"panel.why.{key}", **facts, **({} if inner is None else {"inner": in_words(inner, texts)}))
            return told + _by(facts, texts) + _count(facts, texts)
    return reason


def _by(facts: dict[str, str | None], texts: Texts) -> str:
    if facts.get("by") is None:
        return ""
    why = facts["reason"] or "-"
    return texts("panel.why.by", by=facts["by"]) + ("" if why == "-" else f": {why}")


def _count(facts: dict[str, str | None], texts: Texts) -> str:
    return texts("panel.why.fires", count=facts["count"]) if facts.get("count") else ""
