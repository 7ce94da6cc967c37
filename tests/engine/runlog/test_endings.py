"""The recorded end of a run can be stored in both databases and contains no personal data."""

import json
import math
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from batuta.kernel.reasons import encode
from batuta.kernel.storage.json import dumps
from batuta.runlog.execution import LARGEST_RESULT, LONGEST_ERROR, Ending, Status, storable, without_details
from batuta.runlog.reasons import PARTIAL, is_partial

HUGE = 10**5000


@pytest.mark.parametrize(("given", "kept"), [(0, 0), (2**31 - 1, 2**31 - 1), (2**31, None), (2**70, None), (-5, None)])
def test_count_outside_the_column_range_is_dropped(given: int, kept: int | None) -> None:
    assert storable(Ending(status=Status.SUCCESS, items=given)).items == kept


@pytest.mark.parametrize("given", [True, 3.5, math.nan, "7", object()])
def test_value_that_is_not_a_count_is_dropped(given: object) -> None:
    assert storable(Ending(status=Status.SUCCESS, items=given)).items is None  # type: ignore[arg-type]


def test_result_keeps_its_json_values_and_replaces_the_others() -> None:
    given = {
        "taxa": math.nan,
        "limite": math.inf,
        "nome": "a\0b\ud800c",
        "grande": HUGE,
        "quando": datetime(2026, 1, 5, 12, tzinfo=UTC),
        "valor": Decimal("1.5"),
        "objeto": object(),
        "lista": (1, {2}, None, False),
        7: "sete",
    }
    kept = storable(Ending(status=Status.SUCCESS, result=given)).result  # type: ignore[arg-type]
    assert kept == {
        "taxa": None,
        "limite": None,
        "nome": "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c",
        "grande": None,
        "quando": "2026-01-05T12:00:00+00:00",
        "valor": "1.5",
        "objeto": "<object>",
        "lista": [1, [2], None, False],
        "7": "sete",
    }
    dumps(kept).encode()


def test_endless_result_is_cut() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    circle: list[object] = []
    circle += [circle, circle, circle]
    for shape in (deep, circle):
        kept = storable(Ending(status=Status.SUCCESS, result={"x": shape})).result  # type: ignore[dict-item]
        assert len(dumps(kept)) <= LARGEST_RESULT


def test_oversized_result_is_dropped() -> None:
    for much in ("x" * LARGEST_RESULT, [0] * LARGEST_RESULT, {str(n): n for n in range(LARGEST_RESULT)}):
        assert storable(Ending(status=Status.SUCCESS, result={"x": much})).result is None
    assert storable(Ending(status=Status.SUCCESS, result={"x": "y" * 10_000})).result is not None


def test_error_and_reason_are_short_plain_text() -> None:
    ending = storable(Ending(status=Status.ERROR, error="e" * 900_000, reason="r\0\ud800" + "r " * 450_000))
    assert ending.error == "e" * LONGEST_ERROR
    one_word = storable(Ending(status=Status.ERROR, error="it says " + "e" * 900_000))
    assert one_word.error == "it says " + "e" * (LONGEST_ERROR - 8)
    assert ending.reason is not None
    assert len(ending.reason) == LONGEST_ERROR
    assert ending.reason.startswith("r\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}r r")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (ValueError("Maria disse"), "ValueError"),
        (404, "404"),
        pytest.param(HUGE, "null", id="huge"),
        ({"a": 1}, '{"a":1}'),
        (object(), "<object>"),
    ],
)
def test_error_that_is_not_text_is_converted_and_an_exception_is_only_named(given: object, kept: str) -> None:
    assert storable(Ending(status=Status.ERROR, error=given)).error == kept  # type: ignore[arg-type]


def test_ending_contains_no_personal_data() -> None:
    said = "CPF 529.982.247-25, fone 11 98765-4321, 5511987654321, ana@example.com, Bearer abcdefgh12345678"
    ending = storable(Ending(status=Status.ERROR, error=said, reason=PARTIAL(why=said), result={"quem": [said]}))
    kept = json.dumps([ending.error, encode(ending.reason), ending.result])
    for secret in ("529.982", "98765", "ana@", "abcdefgh"):
        assert secret not in kept
    assert ending.error == "CPF [cpf], fone [telefone], [telefone], [email], Bearer [token]"
    assert is_partial(ending.reason)


def test_clean_ending_is_unchanged() -> None:
    ending = Ending(
        status=Status.SUCCESS, response_code=200, reason="partial: 1 de 3 não", items=3, result={"ação": [1.5, "é", True]}
    )  # fmt: skip
    assert storable(ending) == ending
    assert storable(Ending(status=Status.SKIPPED)) == Ending(status=Status.SKIPPED)


def test_ending_without_details_keeps_its_status_and_notes_the_refusal() -> None:
    ending = Ending(status=Status.SUCCESS, reason=PARTIAL(why="não"), items=3, result={"x": 1}, response_code=200)
    less = without_details(ending)
    assert (less.status, less.response_code, less.items, less.result) == (Status.SUCCESS, 200, None, None)
    assert is_partial(less.reason)
    assert less.reason == "partial: n?o; the database refused the rest of the answer"
    failed = without_details(Ending(status=Status.ERROR, error="é" * LONGEST_ERROR))
    assert (failed.error or "").endswith("; the database refused the rest of the answer")
    assert len(failed.error or "") == LONGEST_ERROR
    assert failed.reason is None
    quiet = without_details(Ending(status=Status.SUCCESS))
    assert quiet.reason == "the database refused the rest of the answer"
