"""Whether this process shows the messages of exceptions: in development only, because a message may quote personal data.

A process has one log, so it has one switch. Opening an application sets it from the settings.
"""

import traceback

from batuta.kernel.masking import mask

LONGEST_MESSAGE = 500
_is_visible = False


def show_messages(*, is_visible: bool) -> None:
    """Set whether the log, the errors of items and runs, and pages show the messages of exceptions."""
    global _is_visible
    _is_visible = is_visible


def message_of(error: BaseException) -> str | None:
    """Return the masked message of an exception, or None if this process withholds messages."""
    if not _is_visible:
        return None
    # The function of the standard library does not fail if ``str(error)`` does.
    last = traceback.format_exception_only(error)[-1].strip()
    return mask(last.partition(": ")[2][:LONGEST_MESSAGE])
