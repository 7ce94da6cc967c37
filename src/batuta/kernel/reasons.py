"""Reasons as values: why a run, item or alert is waiting, was held, skipped or missed, or why it failed or ended.

    define ──▶ ReasonCode ── facts ──▶ Reason ── encode ──▶ JSON text in a column ── decode ──▶ Reason

A reason is an English sentence together with its code and its facts. Programs and SQL statements compare the code;
``Texts.reason`` renders the sentence in the reader's language. A plain string (from an application or an older version)
is a reason without a code, and is stored and shown unchanged.

Facts are strings, numbers, durations, instants (shown in the zone they carry) and other reasons.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from errno import EACCES, EEXIST, EISDIR, ENOENT, ENOSPC, ENOTDIR, EPERM, EROFS
from types import MappingProxyType
from typing import Any, Final, Self

from batuta.kernel.clock import exact
from batuta.kernel.storage.json import Json, dumps, loads

# Prefix of every stored reason; no other stored text begins with it.
_MARK: Final = '{"code":'
# Code of a plain text that happens to begin with the prefix of stored reasons.
_PLAIN: Final = "text"
MINUTE: Final = "%Y-%m-%d %H:%M"
# Maximum characters of a reason in the engine's own columns. The queue tables of an application have lower limits.
LONGEST: Final = 4_000


class Reason(str):
    """An English sentence together with its code and its facts. To compare two reasons, compare their ``code``."""

    __slots__ = ("_code", "_facts")
    _code: str
    _facts: Mapping[str, object]

    def __new__(cls, code: str, english: str, /, **facts: object) -> Self:
        return cls.restore(code, english.format(**{name: _english(fact) for name, fact in facts.items()}), facts)

    @classmethod
    def restore(cls, code: str, sentence: str, facts: Mapping[str, object]) -> Self:
        """Create a reason from its stored parts. The sentence already contains the facts."""
        reason = super().__new__(cls, sentence)
        reason._code = code
        reason._facts = MappingProxyType(dict(facts))
        return reason

    @property
    def code(self) -> str:
        return self._code

    @property
    def facts(self) -> Mapping[str, object]:
        return self._facts

    def map(self, change: Callable[[str], str]) -> "Reason":
        """Return a copy of the reason, with the function ``change`` applied to the sentence and to every fact that is a
        string.
        """
        return Reason.restore(
            self.code, change(str(self)), {name: _map_fact(fact, change) for name, fact in self.facts.items()}
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Reason.restore, (self.code, str(self), dict(self.facts))


class Reasons(tuple[Reason, ...]):
    """A tuple of reasons. As text, their sentences are joined with "; "."""

    __slots__ = ()

    def __str__(self) -> str:
        return "; ".join(map(str, self))


class ReasonCode(str):
    """A code with its English sentence. Calling the code with the facts of one case returns the reason for that case."""

    __slots__ = ("english",)
    english: str

    def __call__(self, **facts: object) -> Reason:
        return Reason(str(self), self.english, **facts)


# All defined codes by name, so that the tests can render each code in every language.
CODES: dict[str, ReasonCode] = {}


def define(code: str, english: str) -> ReasonCode:
    """Define a reason code and its English sentence. Each ``{name}`` in the sentence stands for a fact."""
    if code in CODES:
        raise ValueError(f"two reasons have the code {code}: rename one of them")
    made = ReasonCode(code)
    made.english = english
    return CODES.setdefault(code, made)


# Operating system errors, with their English descriptions.
_OS_ERRORS: Final = {
    ENOENT: define("os_missing", "No such file or directory"),
    EACCES: define("os_denied", "Permission denied"),
    EPERM: define("os_denied_by_system", "Operation not permitted"),
    EEXIST: define("os_exists", "File exists"),
    EISDIR: define("os_is_folder", "Is a directory"),
    ENOTDIR: define("os_not_folder", "Not a directory"),
    ENOSPC: define("os_disk_full", "No space left on device"),
    EROFS: define("os_read_only", "Read-only file system"),
}


def reason_of_os_error(error: OSError) -> str:
    """Return why the operating system refused a call: a reason if the error code is known, otherwise the operating
    system's own message.
    """
    known = _OS_ERRORS.get(error.errno or 0)
    return error.strerror or type(error).__name__ if known is None else known()


_TWO = define("two_reasons", "{first}; {second}")


def join(reasons: Sequence[str]) -> str:
    """Combine several reasons into one."""
    first, *others = reasons
    return _TWO(first=first, second=join(others)) if others else first


def code_of(reason: str | None) -> str | None:
    """Return the code of a reason. Return None for None and for a plain string, which has no code."""
    return reason.code if isinstance(reason, Reason) else None


def encode(reason: str | None, longest: int = LONGEST) -> str | None:
    """Encode a reason for a text column, as JSON with code, facts and English sentence. A plain string is returned
    unchanged.

    If the JSON is longer than ``longest`` characters, the facts are dropped and the sentence is shortened until it
    fits.
    """
    if reason is None or not (isinstance(reason, Reason) or reason.startswith(_MARK)):
        return reason
    coded = reason if isinstance(reason, Reason) else Reason(_PLAIN, "{text}", text=reason)
    written, sentence = dumps(_encode_fact(coded)), str(coded)
    while len(written) > longest and sentence:
        sentence = sentence[: len(sentence) * longest // (len(written) + 1)]
        written = dumps(_encode_fact(Reason.restore(coded.code, sentence, {})))
    return written


def decode(stored: str | None) -> str | None:
    """Decode a reason that ``encode`` produced. Any other text is returned unchanged."""
    if stored is None or not stored.startswith(_MARK):
        return stored
    try:
        found = _decode_fact(loads(stored))
    except (ValueError, TypeError, OverflowError):
        return stored
    if not isinstance(found, Reason):
        return stored
    return str(found) if found.code == _PLAIN else found


def prefix_of(code: str) -> str:
    """Return the text with which every stored reason with this code begins, for SQL that compares the code."""
    return f"{_MARK}{dumps(code)},"


def describe_reason(reason: str | None, name: str = "reason") -> dict[str, Json]:
    """Return the code and the facts of a reason as two JSON fields, ``<name>_code`` and ``<name>_facts``. The caller
    adds the sentence itself as ``name``.
    """
    if not isinstance(reason, Reason):
        return {f"{name}_code": None, f"{name}_facts": None}
    return {f"{name}_code": reason.code, f"{name}_facts": encode_facts(reason.facts)}


def encode_facts(facts: Mapping[str, object]) -> dict[str, Json]:
    """Encode the facts of a reason or of a finding for a JSON document."""
    return {name: _encode_fact(fact) for name, fact in facts.items()}


def read_reason(sentence: str, code: object, facts: object) -> str:
    """Restore a reason from its sentence and the fields that ``describe_reason`` returned. Without a code, return the
    plain sentence.
    """
    if not isinstance(code, str) or not code or not isinstance(facts, Mapping):
        return sentence
    try:
        return Reason.restore(code, sentence, {str(name): _decode_fact(fact) for name, fact in facts.items()})
    except (ValueError, TypeError, OverflowError):
        return sentence


def _english(fact: object) -> object:
    match fact:
        case datetime():
            return format(fact, MINUTE)
        case timedelta():
            return exact(fact)
        case _:
            return fact


def _map_fact(fact: object, change: Callable[[str], str]) -> object:
    match fact:
        case Reason():
            return fact.map(change)
        case str():
            return change(fact)
        case _:
            return fact


def _encode_fact(fact: object) -> Json:
    match fact:
        case Reason():
            return {"code": fact.code, "facts": encode_facts(fact.facts), "text": str(fact)}
        case datetime():
            return {"at": fact.isoformat()}
        case timedelta():
            return {"seconds": fact.total_seconds()}
        case None | bool() | int() | float():
            return fact
        case _:
            return str(fact)


def _decode_fact(said: Any) -> object:
    match said:
        case {"code": str(code), "facts": dict(facts), "text": str(text)}:
            return Reason.restore(code, text, {name: _decode_fact(fact) for name, fact in facts.items()})
        case {"at": str(at)}:
            return datetime.fromisoformat(at)
        case {"seconds": int() | float() as seconds}:
            return timedelta(seconds=seconds)
        case _:
            return said
