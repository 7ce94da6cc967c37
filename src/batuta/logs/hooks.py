"""What the interpreter would print by itself, with whatever it quotes: warnings and exceptions nobody caught."""

import logging
import sys
import threading
import warnings
from types import TracebackType
from typing import TextIO

from batuta.kernel.masking.credentials import WITHHELD

LOGGER = "batuta"  # ours; everybody else has names of their own
# Their texts come from the interpreter or speak of an API. A UserWarning may quote a value, as pydantic's do.
_TELLING_WARNINGS = (
    *(DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning),
    *(ResourceWarning, RuntimeWarning, SyntaxWarning, BytesWarning, EncodingWarning),
)


def log_what_python_prints() -> None:
    """From now on, in every thread."""
    warnings.showwarning = _show_warning
    sys.excepthook = _in_the_main_thread
    threading.excepthook = _in_another_thread
    sys.unraisablehook = _where_nobody_could_catch


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    is_telling = issubclass(category, _TELLING_WARNINGS) and category.__module__ == "builtins"
    words = str(message) if is_telling else WITHHELD
    logging.getLogger("py.warnings").warning("%s:%s: %s: %s", filename, lineno, category.__name__, words)


def _in_the_main_thread(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)  # somebody pressed Ctrl-C: it has no message to hide
        return
    _logger().critical("nobody caught an exception", exc_info=error.with_traceback(trace))


def _in_another_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        _logger().critical("nobody caught an exception in a thread", exc_info=args.exc_value)


def _where_nobody_could_catch(args: "sys.UnraisableHookArgs") -> None:
    _logger().error("an exception was ignored in a %s", type(args.object).__qualname__, exc_info=args.exc_value)


def _logger() -> logging.Logger:
    return logging.getLogger(LOGGER)
