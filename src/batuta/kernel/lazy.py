"""Names of a package whose modules are imported on first use, so that importing the package costs nothing."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def load_on_first_use(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of ``package``. ``homes`` lists the names of each module."""
    modules = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'", name=name, obj=sys.modules[package])
        value: object = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
