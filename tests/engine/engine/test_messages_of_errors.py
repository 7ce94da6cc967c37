"""A task's status and the log show exception messages in development, and hide them in production."""

import logging
from collections.abc import Iterator

import pytest

from batuta import Batuta
from batuta.config import EngineSettings
from batuta.errors import TaskFailed
from batuta.kernel.masking.messages import show_messages
from batuta.testing import EventRecorder


@pytest.fixture(autouse=True)
def _withhold_afterwards() -> Iterator[None]:
    yield
    show_messages(is_visible=False)


def test_development_shows_messages_and_the_setting_decides_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BATUTA_SHOW_ERRORS")
    secrets = {"api_token": "t" * 16, "secret_key": "k" * 32}
    made = [
        EngineSettings(app_env="development"),
        EngineSettings(app_env="development", batuta_show_errors=False),
        EngineSettings.model_validate({"app_env": "production", **secrets}),
        EngineSettings.model_validate({"app_env": "production", "batuta_show_errors": True, **secrets}),
    ]
    assert [each.shows_errors for each in made] == [True, False, False, True]


@pytest.mark.parametrize("shows", [True, False])
async def test_status_and_log_contain_the_masked_message_only_where_it_is_shown(
    work_url: str, events: EventRecorder, caplog: pytest.LogCaptureFixture, *, shows: bool
) -> None:
    work = Batuta(work_url, timezone="UTC", settings=EngineSettings(batuta_show_errors=shows))

    @work.task(retry=[])
    async def fail() -> None:
        raise ValueError("no order 7 of ana@example.com")

    with caplog.at_level(logging.INFO, "batuta"):
        async with work.running("worker"):
            handle = await fail.enqueue()
            with pytest.raises(TaskFailed):
                await handle.result(timeout=60)
            status = await handle.status()
    assert status is not None
    shown = "ValueError (no order 7 of [email]) in the handler" if shows else "ValueError in the handler"
    assert str(status.error).startswith(shown)
    assert ("ValueError: no order 7 of [email]" in caplog.text) is shows
    assert "ana@example.com" not in caplog.text + str(status.error)
