"""The engine's errors. Every error is a ``BatutaError``, and its message ends with the next step."""

from batuta.kernel import errors
from batuta.kernel.errors import *  # noqa: F403

__all__ = [
    name
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, errors.BatutaError) and name != "BatutaError"
]
