"""Task arguments: checked against the annotations when a call is enqueued, stored as JSON, and decoded for the
function.

If JSON can represent the annotated type (text, numbers, lists, dictionaries with string keys), the value is stored
unchanged. Any other annotation determines how the value is encoded and decoded. Pydantic handles dataclasses, pydantic
models, UUID, datetime, sets, tuples and Enums; msgspec handles ``msgspec.Struct``.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, ForwardRef, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from batuta.kernel.errors import InvalidTask
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import Json

_SCALARS = {str: (str,), int: (int,), float: (float, int), bool: (bool,), NoneType: (NoneType,), None: (NoneType,)}
_CONTAINERS = {list: (list,), dict: (dict,), Sequence: (list, str), Mapping: (dict,)}
_UNKNOWN = (inspect.Parameter.empty, Any, object, Json)


class Coder(NamedTuple):
    """Encodes one argument as JSON, and decodes it for the function. Both functions raise ValueError or TypeError for
    an invalid value.
    """

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    kinds: frozenset[type] = frozenset()  # exact types whose values ``encode`` returns unchanged


class Codec:
    """Encodes and decodes one task's arguments, by position and by name."""

    def __init__(self, task: str, signature: inspect.Signature, hints: Mapping[str, Any]) -> None:
        self._task = task
        self._by_name = {name: _coder(task, name, hints.get(name, Any)) for name in signature.parameters}
        parameters = signature.parameters.values()
        self._positional = [
            each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        self._rest = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), None)
        self._others = next((each.name for each in parameters if each.kind is each.VAR_KEYWORD), None)
        self.checks = any(coder is not None for coder in self._by_name.values())
        self.decodes = any(coder is not None and coder.decode is not _same for coder in self._by_name.values())

    def fits(self, calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]]) -> bool:
        """Return whether every argument of these calls already has a type that is stored unchanged.

        The check is fast, because it compares the set of types that each parameter receives, not every single value. If
        the result is False, ``encode`` must check each call.
        """
        lists = [arguments for arguments, named in calls if not named]
        if len(lists) < len(calls) or len({*map(len, lists)}) != 1:
            return False
        coders = [self._by_name.get(name) for name in self._positional]
        columns = list(zip(*lists, strict=True))
        return len(columns) <= len(coders) and all(
            coder is None or {*map(type, column)} <= coder.kinds for coder, column in zip(coders, columns, strict=False)
        )

    def encode(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments as JSON. Raises TypeError if a value does not match its annotation."""
        return self._convert(arguments, named, lambda coder, value: coder.encode(value))

    def decode(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the stored arguments, converted to the types that the function takes. Raises TypeError if a stored
        value does not match its parameter's annotation.
        """
        return self._convert(arguments, named, lambda coder, value: coder.decode(value))

    def _convert(
        self, arguments: Sequence[Any], named: Mapping[str, Any], convert: Callable[[Coder, Any], Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        places = self._positional + [self._rest or ""] * (len(arguments) - len(self._positional))
        given = [self._one(name, value, convert) for name, value in zip(places, arguments, strict=False)]
        return given, {
            name: self._one(name if name in self._by_name else self._others or "", value, convert)
            for name, value in named.items()
        }

    def _one(self, name: str, value: Any, convert: Callable[[Coder, Any], Any]) -> Any:
        coder = self._by_name.get(name)
        if coder is None:
            return value
        try:
            return convert(coder, value)
        except ValidationError as error:
            wrong = "; ".join(map(_describe_problem, error.errors()[:3]))
            raise TypeError(f"argument '{name}' of task {self._task} does not fit its annotation ({wrong})") from None
        except (TypeError, ValueError) as error:
            raise TypeError(f"argument '{name}' of task {self._task} does not fit its annotation: {error}") from None


def _describe_problem(problem: ErrorDetails) -> str:
    """Return a message that says which of a task's arguments is invalid and why, without the value, which may be
    personal data.

    Pydantic's message is used only if it cannot quote the value: the error is pydantic's own (it has a URL), and its
    context contains neither an ``error`` nor a ``tag``. Otherwise the message contains only the type of the error.
    """
    quotes = any("error" in name or name == "tag" for name in problem.get("ctx", {}))
    is_safe = "url" in problem and not quotes
    what = problem["msg"].replace("Input", "it", 1) if is_safe else problem["type"].replace("_", " ")
    return ": ".join(filter(None, (".".join(map(str, problem["loc"])), what)))


def _coder(task: str, name: str, annotation: Any) -> Coder | None:
    """Return the object that encodes and decodes a parameter's values, or None if the parameter accepts any JSON value."""
    kinds = _json_kinds(annotation)
    if kinds is not None:
        return Coder(_checker(kinds), _same, frozenset(kinds)) if kinds else None
    if hasattr(annotation, "__struct_fields__"):
        return _of_msgspec(annotation)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError, RecursionError):
        why = Reason(
            "task_annotation",
            "JSON cannot store the annotation of {name}: use text, numbers, lists, a dataclass or a model",
            name=name,
        )
        raise InvalidTask(task=task, why=why) from None

    def encode(value: Any) -> Any:
        adapter.validate_python(value, strict=True)
        return adapter.dump_python(value, mode="json")

    return Coder(encode, adapter.validate_python)


def _json_kinds(annotation: Any) -> tuple[type, ...] | None:
    """Return the Python types that an annotation allows, if JSON can represent them. An empty tuple means that every
    JSON value is allowed. Return None if the annotation needs an encoder.
    """
    # ``get_type_hints`` leaves an unresolved reference only where a recursive alias such as ``Json`` refers to itself.
    # The other parts of the alias decide whether JSON can represent it.
    if annotation in _UNKNOWN or isinstance(annotation, ForwardRef):
        return ()
    if isinstance(annotation, type) and annotation in _SCALARS:
        return _SCALARS[annotation]
    if annotation in _CONTAINERS:
        return _CONTAINERS[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        kinds = {type(each) for each in inner}
        return tuple(kinds) if kinds <= {str, int, bool, NoneType} else None
    if origin in (Union, UnionType):
        parts = [_json_kinds(each) for each in inner]
        if any(part is None for part in parts):
            return None
        return () if () in parts else tuple(dict.fromkeys(kind for part in parts for kind in part or ()))
    if origin in _CONTAINERS:
        keys_are_text = origin not in (dict, Mapping) or inner[0] in (str, Any)
        plain = keys_are_text and all(_json_kinds(each) is not None for each in inner)
        return _CONTAINERS[origin] if plain else None
    return None


def _checker(kinds: tuple[type, ...]) -> Callable[[Any], Any]:
    words = " or ".join(dict.fromkeys(kind.__name__ for kind in kinds))

    def check(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"it is {type(value).__name__}, and the function takes {words}")
        return value

    return check


def _of_msgspec(kind: Any) -> Coder:
    import msgspec

    def encode(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"it is {type(value).__name__}, and the function takes {kind.__name__}")
        return msgspec.to_builtins(value)

    return Coder(encode, lambda value: msgspec.convert(value, kind, strict=False))


def _same(value: Any) -> Any:
    return value
