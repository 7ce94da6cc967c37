from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest

from batuta.kernel.storage.json import dumps, loads


def test_json_is_compact_and_readable() -> None:
    assert dumps({"vaga": "UTI – ção", "n": [1, None]}) == '{"vaga":"UTI – ção","n":[1,null]}'


def test_dates_and_ids_are_written_as_text_and_durations_as_seconds() -> None:
    value = [datetime(2026, 1, 5, tzinfo=UTC), timedelta(seconds=1.5), date(2026, 1, 5), UUID(int=0)]
    assert loads(dumps(value)) == ["2026-01-05T00:00:00+00:00", 1.5, "2026-01-05", str(UUID(int=0))]


@pytest.mark.parametrize("value", [datetime(2026, 1, 5), float("nan"), object()])
def test_value_that_cannot_be_read_back_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        dumps(value)
