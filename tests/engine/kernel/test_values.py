"""The engine's own dataclasses behave like those in the standard library."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, InitVar, field, fields, replace
from typing import Any, ClassVar

import pytest

from batuta.kernel.values import dataclass

Decorator = Callable[..., Callable[[type[Any]], Any]]
# Every test runs with both decorators. A type checker cannot follow a decorator that is a parameter, so functions
# create the classes and return ``Any``.
BOTH = {"standard": dataclasses.dataclass, "ours": dataclass}


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


class Marked(Point):
    """A subclass that is not itself a dataclass and has additional attributes."""


@pytest.fixture(params=BOTH, ids=str)
def dataclass_of(request: pytest.FixtureRequest) -> Decorator:
    decorator: Decorator = BOTH[request.param]
    return decorator


def make_point(decorator: Decorator, **options: bool) -> Any:
    class Sample:
        x: int
        tags: list[str] = field(default_factory=list, compare=False)
        y: int = 2
        secret: str = field(default="s", repr=False)
        total: int = field(init=False, default=7)
        kind: ClassVar[str] = "k"

        def double(self) -> int:
            return self.x * 2

    return decorator(frozen=True, slots=True, **options)(Sample)


def test_objects_are_created_compared_and_shown(dataclass_of: Decorator) -> None:
    sample = make_point(dataclass_of)
    one = sample(1, ["a"])
    assert (one.x, one.tags, one.y, one.total, one.kind, one.double()) == (1, ["a"], 2, 7, "k", 2)
    assert repr(one).endswith("Sample(x=1, tags=['a'], y=2, total=7)")
    assert one == sample(1, ["b"])
    assert one != sample(1, y=3)
    assert one != 1
    assert hash(one) == hash(sample(1))
    assert sample(1).tags is not sample(1).tags
    assert replace(one, x=5).x == 5
    assert [each.name for each in fields(sample)] == ["x", "tags", "y", "secret", "total"]
    assert sample.__match_args__ == ("x", "tags", "y", "secret")


def test_wrong_arguments_are_refused(dataclass_of: Decorator) -> None:
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'x'"):
        make_point(dataclass_of)()
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'z'"):
        make_point(dataclass_of)(1, z=2)
    with pytest.raises(TypeError, match=r"takes 1 positional argument"):
        make_point(dataclass_of, kw_only=True)(1)


def test_signature_is_known_before_the_first_object(dataclass_of: Decorator) -> None:
    parameters = inspect.signature(make_point(dataclass_of)).parameters
    assert list(parameters) == ["x", "tags", "y", "secret"]
    assert parameters["y"].default == 2


def test_fields_cannot_be_changed(dataclass_of: Decorator) -> None:
    one = make_point(dataclass_of)(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del one.x
    assert not hasattr(one, "__dict__")


def test_methods_of_the_class_itself_are_kept(dataclass_of: Decorator) -> None:
    class Own:
        x: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    made: Any = dataclass_of(frozen=True, slots=True)(Own)
    assert repr(made(1)) == "own"
    assert made(1) == made(2)
    assert hash(made(1)) == hash(made(1))


def test_init_variables_reach_the_method_after_init(dataclass_of: Decorator) -> None:
    class Built:
        x: int
        scale: InitVar[int] = 2  # type: ignore[assignment]
        y: int = field(init=False)

        def __post_init__(self, scale: int) -> None:
            object.__setattr__(self, "y", self.x * scale)

    made: Any = dataclass_of(frozen=True, slots=True)(Built)
    assert made(3).y == 6
    assert made(3, 5).y == 15


def test_subclasses_add_fields(dataclass_of: Decorator) -> None:
    base: Any = dataclass_of(frozen=True, slots=True)(type("Base", (), {"__annotations__": {"x": int}}))
    made: Any = dataclass_of(frozen=True, slots=True, kw_only=True)(
        type("Sub", (base,), {"__annotations__": {"y": int}, "y": 4})
    )
    assert (made(1).x, made(1, y=5).y) == (1, 5)
    assert made(1) != base(1)
    assert made(1) == made(1, y=4)


def test_object_that_contains_itself_is_shown(dataclass_of: Decorator) -> None:
    one = make_point(dataclass_of)(1, tags := [])
    tags.append(one)
    assert "..." in repr(one)


def test_copies_and_pickles_are_equal() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)
    assert copy.deepcopy(Point(1, 2)) == copy.copy(Point(1, 2)) == Point(1, 2)


def test_subclass_without_the_decorator_has_its_own_attributes() -> None:
    marked = Marked(1)
    marked.note = "n"  # type: ignore[attr-defined]
    assert vars(marked) == {"note": "n"}
    with pytest.raises(FrozenInstanceError):
        marked.x = 2  # type: ignore[misc]


def test_class_without_objects_compiles_no_init() -> None:
    made = make_point(dataclass)
    assert type(vars(made)["__init__"]).__name__ == "_LazyInit"
    made(1)
    assert inspect.isfunction(vars(made)["__init__"])


def test_other_options_are_those_of_the_standard_decorator() -> None:
    class Ordered:
        x: int

    made: Any = dataclass(order=True)(Ordered)
    assert made(1) < made(2)
