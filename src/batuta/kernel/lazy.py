"""Imports the modules of a package when their names are first used, so that importing the package itself is cheap."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def load_on_first_use(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return the ``__getattr__`` function for ``package``. ``homes`` maps each module to the names that it defines."""
    modules = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'", name=name, obj=sys.modules[package])
        value: object = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
