"""Arguments keep their types. They are decoded according to the annotations, and values that JSON would change are
rejected.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pytest
from pydantic import AfterValidator, BaseModel, Field

from batuta import Batuta
from batuta.kernel import Json
from batuta.kernel.errors import InvalidTask, UnstorableValue
from batuta.testing import FakeClock


@dataclass
class Address:
    street: str
    number: int


@dataclass
class Place:
    name: str


def refuse(value: str) -> str:
    raise ValueError(f"{value} is not a code")  # its message quotes the value


class Order(BaseModel):
    id: UUID
    lines: list[int]


class Point(msgspec.Struct):
    x: int


class Size(Enum):
    SMALL = "s"


@pytest.fixture
def work(work_url: str, clock: FakeClock) -> Batuta:
    return Batuta(work_url, timezone="UTC", clock=clock)


ID = UUID("0196b0a8-0000-7000-8000-000000000000")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Address, Address("Rua A", 7)),
        (Order, Order(id=ID, lines=[1])),
        (Point, Point(3)),
        (Size, Size.SMALL),
        (UUID, ID),
        (set[int], {1, 2}),
        (dict[int, str], {1: "a"}),
        (tuple[int, str], (1, "a")),
        (datetime, datetime(2026, 3, 2, tzinfo=UTC)),
        (Address | None, None),
        (list[UUID], [ID]),
        (list[Json], [1, {"a": [None]}]),
        (dict[str, Json], {"a": [1]}),
    ],
    ids=str,
)
async def test_value_arrives_as_its_annotation_says(work: Batuta, kind: Any, value: Any) -> None:
    got: list[Any] = []

    async def take(given: Any, *, named: Any = None) -> None:
        got.append((given, named))

    take.__annotations__ |= {"given": kind, "named": kind}
    task = work.task()(take)
    async with work:
        await task.enqueue(value, named=value)
        await task.enqueue_many([[value], {"given": value}])
        assert await work.work_once("default", 10) == 3
    assert got[0] == (value, value)
    assert sorted((type(given), given == value) for given, _ in got) == [(type(value), True)] * 3


async def test_value_of_another_type_is_rejected_at_enqueue(work: Batuta) -> None:
    @work.task()
    async def send(
        to: str,
        count: int = 0,
        *rest: int,
        address: Address | None = None,
        at: Place | None = None,
        many: Annotated[int, Field(gt=0)] = 1,
        code: Annotated[str, AfterValidator(refuse)] = "",
    ) -> None: ...

    for arguments, named, why in (
        ((7,), {}, "argument 'to' of task send does not fit its annotation: it is int, and the function takes str"),
        (("a", "b"), {}, "'count'"),
        (("a", 1, "b"), {}, "'rest'"),
        (("a",), {"address": {"street": "Rua A"}}, "'address'"),
        (
            ("a",),
            {"at": {"name": "A"}},
            r"'at' of task send does not fit its annotation \(it should be an instance of Place\)",
        ),
        (("a",), {"many": 0}, r"'many' of task send does not fit its annotation \(it should be greater than 0\)"),
        (("a",), {"code": "secret"}, r"'code' of task send does not fit its annotation \(value error\)"),
    ):
        with pytest.raises(TypeError, match=why):
            await send.enqueue(*arguments, **named)


async def test_value_that_json_would_change_is_rejected_without_an_annotation(work: Batuta) -> None:
    @work.task()
    async def take(given: Any) -> None: ...

    for value in ({1}, (1, 2), [(1,)], ID, {1: 2}, Size.SMALL):
        with pytest.raises(UnstorableValue):
            await take.enqueue(value)


async def test_stored_value_that_no_longer_fits_fails_without_a_retry(work: Batuta) -> None:
    @work.task()
    async def move(to: Point) -> None: ...

    async with work:
        handle = await move.enqueue(Point(1))
        await work.database.script("""UPDATE tasks SET args = '[[{"x": "text"}], {}, {}]'""")
        await work.work_once("default", 1)
        status = await handle.status()
    assert status is not None
    assert status.status == "failed"
    assert "argument 'to' of task move does not fit" in str(status.error)


def test_annotation_that_cannot_be_stored_is_rejected_at_registration(work: Batuta) -> None:
    class Opaque: ...

    async def take(given: Any) -> None: ...

    take.__annotations__["given"] = Opaque
    with pytest.raises(InvalidTask, match="use text, numbers"):
        work.task()(take)
