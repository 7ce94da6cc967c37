"""The ``batuta`` command."""

from batuta.cli.main import main

__all__ = ["main"]
