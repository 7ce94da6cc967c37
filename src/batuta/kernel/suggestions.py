"""Errors for misspelt words, such as settings and options, that suggest the intended word.

A word is suggested only if it is very similar, because a wrong suggestion misleads people.
"""

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import Final, ParamSpec, TypeVar, get_args, is_typeddict

from batuta.kernel.errors import MissingWord, StrangeWord, UnknownWord

LIKE_ENOUGH: Final = 0.65
SHORTEST_BEGINNING: Final = 3
MOST_LISTED: Final = 8
# Task options of other libraries, with the equivalent Batuta option and how to write it.
OPTIONS_ELSEWHERE: Final = {
    "countdown": ("delay", "write delay=…, in seconds"),
    "eta": ("at", "write at=…, an instant with a time zone"),
    "rate_limit": ("rate", 'write rate="10/minute"'),
    "time_limit": ("timeout", "write timeout=…, in seconds"),
    "soft_time_limit": ("timeout", "write timeout=…, in seconds"),
    "max_retries": ("retry", "write retry=[10, 60], with the seconds before each retry"),
    "autoretry_for": ("retry", "write retry={ConnectionError: [10, 60], Exception: never}"),
    "bind": ("process", "annotate the first parameter of the function as TaskContext"),
}
# Task methods of other libraries, with the equivalent Batuta calls.
METHODS_ELSEWHERE: Final = {
    "delay": "write await task.enqueue(…), or task.enqueue_sync(…) in synchronous code",
    "apply_async": "write await task.options(delay=60).enqueue(…), or enqueue_sync(…) in synchronous code",
    "s": "write task.options(after=[handle]).enqueue(…) for a task that follows another",
}


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most similar to ``word``. If none is similar but exactly one known word begins with
    ``word``, return that known word. Otherwise return None.
    """
    words = list(dict.fromkeys(known))
    if found := difflib.get_close_matches(word, words, n=1, cutoff=LIKE_ENOUGH):
        return found[0]
    begun = [each for each in words if len(word) >= SHORTEST_BEGINNING and each.startswith(word)]
    return begun[0] if len(begun) == 1 else None


def unknown(kind: str, word: str, known: Iterable[str]) -> UnknownWord:
    """Return the error for an unknown word. Its message suggests the nearest known word, or lists the known words."""
    words = list(dict.fromkeys(known))
    near = nearest(word, words)
    if near is not None:
        return UnknownWord(kind=kind, word=word, nearest=near)
    if not words:
        return MissingWord(kind=kind, word=word)
    rest = [] if len(words) <= MOST_LISTED else ["…"]
    return StrangeWord(kind=kind, word=word, known=", ".join([*words[:MOST_LISTED], *rest]))


P = ParamSpec("P")
R = TypeVar("R")


def check_options(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method so that an unknown keyword argument raises a TypeError that suggests the nearest known option.

    The known options are the parameters of the method. If the method has ``**options: Unpack[X]``, the keys of ``X``
    are known options too.
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
    """Return the TypeError for an option that ``function`` does not have."""
    step = suggest_option(name, known) or f"it has {', '.join(sorted(known))}"
    return TypeError(f"{function}() has no option '{name}': {step}")


def suggest_option(name: str, known: Collection[str]) -> str | None:
    """Return the next step for a caller who used an unknown option, such as "write retry=…". Return None if no known
    option is similar.
    """
    option, step = OPTIONS_ELSEWHERE.get(name, (None, None))
    if option in known:
        return step
    near = nearest(name, known)
    return None if near is None else f"write {near}=…"


def _options(function: Callable[..., object]) -> frozenset[str]:
    _, *parameters = inspect.signature(function).parameters.values()  # the first parameter of a method is self
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
