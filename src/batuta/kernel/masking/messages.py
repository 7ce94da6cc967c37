"""Stores whether this process shows exception messages. Only processes in development show the messages, because a
message may quote personal data.

This choice is global, because a process has one log. It is read from the settings when an application opens.
"""

import traceback

from batuta.kernel.masking import mask

LONGEST_MESSAGE = 500
_is_visible = False


def show_messages(*, is_visible: bool) -> None:
    """Set whether exception messages appear in the log, on pages, and in the errors of items and runs."""
    global _is_visible
    _is_visible = is_visible


def message_of(error: BaseException) -> str | None:
    """Return the masked message of an exception, or None if this process withholds messages."""
    if not _is_visible:
        return None
    # This standard-library function works even if ``str(error)`` raises an error.
    last = traceback.format_exception_only(error)[-1].strip()
    return mask(last.partition(": ")[2][:LONGEST_MESSAGE])
