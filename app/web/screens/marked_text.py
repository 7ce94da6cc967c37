"""Split a message's text into segments: fields that were read, words that no rule matched, and all other text."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from batuta.kernel import dataclass

UNEXPLAINED: Final = "inexplicado"


@dataclass(frozen=True, slots=True)
class Part:
    """A segment of a text. ``fields`` names the fields that were read in this segment; it is empty if none was."""

    text: str
    fields: tuple[str, ...] = ()
    is_unexplained: bool = False


def parts_of(text: str, spans: Mapping[str, Any]) -> Sequence[Part]:
    """Split a text at the start and end of each span. Spans may overlap. A span that ends beyond the text is shortened."""
    fields = {name: _within(span, text) for name, span in spans.items() if name != UNEXPLAINED}
    unexplained = [_within(each, text) for each in spans.get(UNEXPLAINED, ())]
    borders = sorted({0, len(text), *(border for span in (*fields.values(), *unexplained) for border in span)})
    return [
        Part(
            text[start:end],
            tuple(name for name, span in fields.items() if span[0] <= start and end <= span[1]),
            any(span[0] <= start and end <= span[1] for span in unexplained),
        )
        for start, end in pairwise(borders)
    ]


def _within(span: Sequence[int], text: str) -> tuple[int, int]:
    start = min(max(int(span[0]), 0), len(text))
    return start, min(max(int(span[1]), start), len(text))
