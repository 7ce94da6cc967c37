"""Consoles that commands print to. They replace control characters in stored texts with harmless ones."""

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from batuta.kernel.storage.storable import PRINTABLE

WIDE = 240


class SafeConsole(Console):
    """A console that replaces control characters, because stored texts may come from untrusted senders."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(text.translate(PRINTABLE), **options)


def open_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged, without interpreting brackets and colons as markup."""
    # A file or a pipe has no terminal width, so lines must not be cut.
    width = None if stderr or sys.stdout.isatty() else WIDE
    return SafeConsole(width=width, stderr=stderr, markup=False, emoji=False, highlight=False)
