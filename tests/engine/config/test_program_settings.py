"""A program that specifies only its database takes its other settings from the environment variables in
docs/reference.md.
"""

from pathlib import Path

import pytest

from batuta import Batuta
from batuta.config import EngineSettings, load_settings
from batuta.kernel.errors import InvalidSetting, PayloadTooLarge, SchemaOutOfDate

URL = "sqlite:///work.db"
PRODUCTION = {"APP_ENV": "production", "API_TOKEN": "a-token-of-a-test-only", "SECRET_KEY": "k" * 32}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_enqueue_limit_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATUTA_MAX_PAYLOAD_BYTES", "2048")
    work = Batuta(URL)
    work.task()(_nothing)
    async with work:
        with pytest.raises(PayloadTooLarge):
            await work.enqueue(_nothing, "x" * 3000)


async def test_settings_file_counts_and_the_environment_overrides_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".env").write_text("BATUTA_RELEASE=from-the-file\nBATUTA_POOL_SIZE=7\n", encoding="utf-8")
    monkeypatch.setenv("BATUTA_RELEASE", "from-the-environment")
    work = Batuta(URL)
    assert work.settings.batuta_release == "from-the-environment"
    assert work.settings.batuta_pool_size == 7


async def test_production_migrates_only_when_the_program_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PRODUCTION.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SchemaOutOfDate):
        await Batuta(URL).open()
    async with Batuta(URL, migrate=True) as work:
        await work.check()


def test_invalid_setting_is_refused_at_start_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATUTA_POOL_SIZE", "none")
    with pytest.raises(InvalidSetting, match="BATUTA_POOL_SIZE"):
        Batuta(URL)


def test_settings_given_by_the_program_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATUTA_RELEASE", "from-the-environment")
    assert Batuta(URL, settings=load_settings(EngineSettings, {})).settings.batuta_release is None


async def _nothing(text: str) -> None:
    pass
