"""A value that would come back changed from the database is rejected, and the error says why."""

import json
import string
from collections import OrderedDict
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batuta.kernel.errors import PayloadTooLarge, UnstorableValue
from batuta.kernel.storage.json import loads
from batuta.kernel.storage.storable import refuse_each_unstorable, refuse_unstorable


class Word(StrEnum):
    A = "a"


class Number(IntEnum):
    ONE = 1


def circular() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (circular(), "Circular reference"),
        (10**5000, "digits"),
        ([b"bytes"], "JSON has no bytes"),
        ({(1, 2): 3}, "a key of type tuple becomes text"),
        ({"a": [{"b": {1.5: 0}}]}, "a key of type float becomes text"),
        ({"deep": [0, [-0.0]]}, "returns -0.0 as 0.0"),
    ],
    ids=["circular", "long integer", "bytes", "tuple key", "float key", "minus zero inside"],
)
def test_refusal_names_the_reason(value: object, why: str) -> None:
    with pytest.raises(UnstorableValue, match=f"the thing cannot be stored: .*{why}"):
        refuse_unstorable(value, "thing")


@pytest.mark.parametrize(
    "value", [Word.A, Number.ONE, {Word.A: Number.ONE}, OrderedDict(a=1), ("a", ["b", ("c",)]), "-0.0 and 1e+16", 1e15]
)
def test_values_that_read_back_equal_are_accepted(value: object) -> None:
    refuse_unstorable(value, "thing")
    written = json.dumps(value)
    assert json.dumps(loads(written)) == written


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(string.printable)
    | st.sets(st.integers(), max_size=2),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(string.printable) | st.integers(), inner),
    max_leaves=8,
)


@given(JSON)
def test_accepted_value_reads_back_as_written(value: Any) -> None:
    try:
        refuse_unstorable(value, "thing")
    except UnstorableValue:
        return
    assert repr(loads(json.dumps(value))) == repr(value)


def test_each_value_has_its_own_limit_in_bytes() -> None:
    fits: list[object] = ["é" * 10]  # two bytes each, and four for the brackets and quotes
    refuse_unstorable(fits, "thing", 24)
    with pytest.raises(PayloadTooLarge) as refused:
        refuse_unstorable(fits, "thing", 23)
    assert refused.value.facts == {"kind": "thing", "size": 24, "limit": 23}
    refuse_each_unstorable([fits] * 100, "thing", 24)
    with pytest.raises(PayloadTooLarge):
        refuse_each_unstorable([fits, ["é" * 11]], "thing", 24)
