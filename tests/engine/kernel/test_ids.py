from datetime import timedelta
from uuid import UUID

from batuta.kernel.ids import Ids, uuid7
from batuta.testing import FakeClock


def test_id_is_a_version_7_uuid_with_its_millisecond(clock: FakeClock) -> None:
    made = UUID(Ids(clock).new())
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert made.int >> 80 == int(clock.now().timestamp() * 1000)


def test_ids_of_one_millisecond_sort_in_their_order_of_creation(clock: FakeClock) -> None:
    ids = Ids(clock)
    # More ids than the counter has per millisecond, so the generator uses the next milliseconds.
    made = [*(ids.new() for _ in range(5_000)), *ids.many(5_000), ids.new(), *ids.many(3)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_never_decrease_when_the_clock_is_set_back(clock: FakeClock) -> None:
    ids = Ids(clock)
    before = ids.new()
    clock.step(timedelta(hours=-2))
    assert ids.new() > before


def test_layout_keeps_its_fields_apart() -> None:
    assert uuid7((1 << 48) - 1, 0, 0) == "ffffffff-ffff-7000-8000-000000000000"
    assert uuid7(0, (1 << 12) - 1, 0) == "00000000-0000-7fff-8000-000000000000"
    assert uuid7(0, 0, (1 << 62) - 1) == "00000000-0000-7000-bfff-ffffffffffff"
