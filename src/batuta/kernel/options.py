"""Options that a program writes by hand: reject a misspelt one and name the option that was probably meant."""

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import ParamSpec, TypeVar, get_args, is_typeddict

from batuta.kernel.nearest import nearest

P = ParamSpec("P")
R = TypeVar("R")


def check_options(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function: an option that it does not have raises TypeError with the nearest one.

    The options are its parameters, and the keys of ``X`` if it takes ``**options: Unpack[X]``.
    """
    known = _options(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                raise unknown_option(function.__name__, name, known)
        return function(*args, **kwargs)

    return call


def unknown_option(function: str, name: str, known: Collection[str]) -> TypeError:
    """The error for an option that ``function`` does not have."""
    near = nearest(name, known)
    step = f"write {near}=…" if near is not None else f"it has {', '.join(sorted(known))}"
    return TypeError(f"{function}() has no option '{name}': {step}")


def _options(function: Callable[..., object]) -> frozenset[str]:
    _, *parameters = inspect.signature(function).parameters.values()  # a method: the first is self
    named = {
        each.name
        for each in parameters
        if each.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    }
    spread = [
        key for each in parameters for kind in get_args(each.annotation) if is_typeddict(kind) for key in _keys(kind)
    ]
    return frozenset({*named, *spread})


def _keys(kind: type) -> frozenset[str]:
    keys: frozenset[str] = vars(kind)["__required_keys__"] | vars(kind)["__optional_keys__"]
    return keys
