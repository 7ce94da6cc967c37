from pathlib import Path

import pytest

from app.settings import Settings
from batuta.config import EngineSettings, load_settings, names, near_misses, system_zone, unset
from batuta.environment import system_language
from batuta.kernel.errors import InvalidSetting, MissingSetting, UnknownSetting

LONG_TOKEN = "t" * 32
CHATWOOT = {
    "CHATWOOT_URL": "https://chat.example",
    "CHATWOOT_TOKEN": LONG_TOKEN,
    "CHATWOOT_ACCOUNT_ID": "1",
    "CHATWOOT_INBOX_ID": "1",
    "CHATWOOT_WEBHOOK_SECRET": LONG_TOKEN,
}


def test_settings_without_any_value_are_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("APP_ENV")
    settings = load_settings(Settings, {})
    assert (settings.app_env, settings.host, settings.port) == (None, "127.0.0.1", 8000)
    assert settings.pilot_mode
    assert settings.send_allowlist == ()
    assert settings.database_url.get_secret_value() == "sqlite:///data/julia.db"


def test_loader_alone_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "9999")
    assert load_settings(Settings, {}).port == 8000
    assert Settings(host="127.0.0.1").port == 8000


def test_secrets_are_masked_in_every_output_of_the_settings() -> None:
    secret = "canary-" + LONG_TOKEN
    env = {
        name: secret for name in names(Settings) if name.endswith(("_TOKEN", "_KEY", "_SECRET", "_PASSWORD", "_HASH"))
    }
    env["DATABASE_URL"] = f"postgresql://user:{secret}@db/x"
    env["REDIS_URL"] = f"redis://:{secret}@redis"
    assert len(env) >= 9
    # These settings must be set together.
    env |= {"CHATWOOT_URL": "https://chat.example", "CHATWOOT_ACCOUNT_ID": "1", "CHATWOOT_INBOX_ID": "1"}
    env |= {"TELEGRAM_API_ID": "1"}
    settings = load_settings(Settings, env)
    assert "canary" not in repr(settings) + str(settings) + settings.model_dump_json()


def test_empty_value_counts_as_unset() -> None:
    assert load_settings(Settings, {"PORT": "", "API_TOKEN": ""}).api_token is None


def test_list_is_written_with_commas() -> None:
    assert load_settings(Settings, {"SEND_ALLOWLIST": "5511900000001, 5511900000002,"}).send_allowlist == (
        "5511900000001",
        "5511900000002",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "eighty"),
        ("PORT", "70000"),
        ("APP_ENV", "staging"),
        ("SCHEDULE_PROFILE", "continous"),
        ("TIMEZONE", "America/SaoPaulo"),
        ("PILOT_MODE", "perhaps"),
        ("ARQ_MAX_JOBS", "0"),
        ("EVOLUTION_API_URL", "evolution.local"),
    ],
)
def test_invalid_value_is_refused_by_name_and_not_shown(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(Settings, {name: value})
    assert name in str(refused.value)
    if name != "TIMEZONE":  # for TIMEZONE, the message shows the invalid value, because it helps to find the right one
        assert value not in str(refused.value)


@pytest.mark.parametrize(
    ("env", "linked", "zone"),
    [
        ({"TZ": "Europe/Lisbon"}, "Asia/Tokyo", "Europe/Lisbon"),
        ({"TZ": ":Europe/Lisbon"}, "Asia/Tokyo", "Europe/Lisbon"),
        ({"TZ": "BRT3"}, "Asia/Tokyo", "Asia/Tokyo"),
        ({}, "Asia/Tokyo", "Asia/Tokyo"),
        ({}, "Nowhere", "UTC"),
        ({}, None, "UTC"),
    ],
)
def test_system_zone_comes_from_tz_or_the_linked_file(
    tmp_path: Path, env: dict[str, str], linked: str | None, zone: str
) -> None:
    localtime = tmp_path / "localtime"
    if linked is not None:
        localtime.symlink_to(tmp_path / "zoneinfo" / linked)
    assert system_zone(env, localtime) == zone


@pytest.mark.parametrize(
    ("env", "language"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "pt_BR.UTF-8"}, "pt-BR"),
        ({"LANG": "pt_PT"}, "pt-BR"),
        ({"LANG": "pt_BR.UTF-8", "LC_ALL": "de_DE.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "pt_BR"}, "pt-BR"),
        ({"LANG": "pt_BR.UTF-8", "LC_ALL": ""}, "pt-BR"),
    ],
)
def test_system_language_comes_from_the_locale(env: dict[str, str], language: str) -> None:
    assert system_language(env) == language


def test_julia_has_its_own_zone_and_language_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    julia, another = load_settings(Settings, {}), load_settings(EngineSettings, {})
    assert (julia.timezone, julia.batuta_lang) == ("America/Sao_Paulo", "pt-BR")
    assert (another.timezone, another.batuta_lang) == ("Asia/Tokyo", "en")


def test_all_invalid_values_are_named_at_once() -> None:
    with pytest.raises(InvalidSetting, match="PORT, PILOT_MODE"):
        load_settings(Settings, {"PORT": "x", "PILOT_MODE": "perhaps"})


def test_misspelt_zone_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidSetting, match="America/Sao_Paulo"):
        load_settings(Settings, {"TIMEZONE": "America/SaoPaulo"})


def test_unknown_batuta_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownSetting, match="BATUTA_LNG is not a setting: did you mean BATUTA_LANG"):
        load_settings(EngineSettings, {"BATUTA_LNG": "en"})


def test_other_similar_names_are_warnings_and_unrelated_ones_are_ignored() -> None:
    given = {"DATABSE_URL": "x", "PATH": "/bin", "HOME": "/root", "HOSTNAME": "box", "BATUTA_PG_BIN": "/usr"}
    assert near_misses(given, names(Settings)) == [("DATABSE_URL", "DATABASE_URL")]


def test_secret_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{LONG_TOKEN}\n")
    token = load_settings(Settings, {"API_TOKEN_FILE": str(tmp_path / "token")}).api_token
    assert token is not None
    assert token.get_secret_value() == LONG_TOKEN


def test_unreadable_file_and_value_given_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="API_TOKEN_FILE"):
        load_settings(Settings, {"API_TOKEN_FILE": str(tmp_path / "nowhere")})
    with pytest.raises(InvalidSetting, match="keep one of the two"):
        load_settings(Settings, {"API_TOKEN_FILE": str(tmp_path), "API_TOKEN": LONG_TOKEN})


def test_production_refuses_a_missing_or_short_token() -> None:
    with pytest.raises(MissingSetting, match="API_TOKEN is not set"):
        load_settings(Settings, {"APP_ENV": "production"})
    with pytest.raises(InvalidSetting, match="at least 16"):
        load_settings(Settings, {"APP_ENV": "production", "API_TOKEN": "short"})
    closed = {"APP_ENV": "production", "API_TOKEN": LONG_TOKEN, "SECRET_KEY": "k" * 32}
    assert load_settings(Settings, closed).in_production
    with pytest.raises(MissingSetting, match="SECRET_KEY is not set"):
        load_settings(Settings, {**closed, "SECRET_KEY": ""})
    for name, short in (("SECRET_KEY", "k" * 31), ("WEBHOOK_SECRET", "x"), ("CHATWOOT_WEBHOOK_SECRET", "x" * 15)):
        with pytest.raises(InvalidSetting, match=name):
            load_settings(Settings, {**closed, **CHATWOOT, name: short})


def test_development_is_explicit_and_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("APP_ENV")
    unset = load_settings(Settings, {})
    assert (unset.in_development, unset.in_production) == (False, False)
    with pytest.raises(MissingSetting, match=r"API_TOKEN is not set.*APP_ENV=development"):
        unset.require_access()
    with pytest.raises(InvalidSetting, match="WEBHOOK_SECRET"):
        load_settings(Settings, {"WEBHOOK_SECRET": "x"})
    load_settings(Settings, {"APP_ENV": "development", "WEBHOOK_SECRET": "x"}).require_access()
    for host in ("0.0.0.0", "::", "192.0.2.7", "julia.example"):
        with pytest.raises(InvalidSetting, match="HOST"):
            load_settings(Settings, {"APP_ENV": "development", "HOST": host})
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert load_settings(Settings, {"APP_ENV": "development", "HOST": host}).in_development


@pytest.mark.parametrize(
    ("env", "https"),
    [({"APP_ENV": "development"}, False), ({"APP_ENV": "development", "BATUTA_HTTPS": "true"}, True)],
)
def test_https_is_a_setting(env: dict[str, str], https: bool) -> None:
    assert load_settings(Settings, env).has_https is https
    closed = {"APP_ENV": "production", "API_TOKEN": LONG_TOKEN, "SECRET_KEY": "k" * 32}
    assert load_settings(Settings, closed).has_https
    assert not load_settings(Settings, {**closed, "BATUTA_HTTPS": "false"}).has_https


def test_environment_overrides_the_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PORT=1234\nHOST=127.0.0.2\n")
    settings = load_settings(Settings, {"PORT": "4321"}, tmp_path / ".env")
    assert (settings.port, settings.host) == (4321, "127.0.0.2")


def test_default_does_not_replace_a_value_set_in_file_or_environment(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("EVOLUTION_API_URL=http://real.exemplo.test\nEMPTY=\n")
    defaults = {
        "EVOLUTION_API_URL": "simulated",
        "EVOLUTION_API_KEY": "simulated",
        "WEBHOOK_SECRET": "simulated",
        "EMPTY": "x",
    }
    env = {"EVOLUTION_API_KEY_FILE": "/run/secrets/key"}
    assert unset(defaults, env, tmp_path / ".env") == {"WEBHOOK_SECRET": "simulated", "EMPTY": "x"}
    assert unset(defaults, {"webhook_secret": "own"}, None).keys() == defaults.keys() - {"WEBHOOK_SECRET"}


@pytest.mark.parametrize("name", ["SLACK_WEBHOOK_URL", "ALERT_WEBHOOK_URL", "DEADMAN_URL"])
@pytest.mark.parametrize(
    "address",
    ["file:///etc/passwd", "gopher://127.0.0.1", "hooks.example", "http://", "http://[::1", "http://169.254.169.254/latest",
     "http://[fe80::1]/", "http://[::ffff:169.254.169.254]/"],
)  # fmt: skip
def test_outgoing_address_is_http_and_not_link_local(name: str, address: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        load_settings(EngineSettings, {name: address})
    assert address not in str(refused.value)  # the address may contain a secret
    assert load_settings(EngineSettings, {name: "http://alerts:9093/x"})
