"""The response to a page address whose record does not exist."""

from typing import NoReturn


def refuse_missing() -> NoReturn:
    # Imported here, because the import of the web framework would cost every other role memory.
    from batuta.web import Problem

    raise Problem(404, "record_unknown")
