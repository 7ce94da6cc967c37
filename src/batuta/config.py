"""Settings: read from the environment and validated once, then frozen.

``load_settings(kind, env)`` fills a settings class from a mapping. For secrets, ``NAME_FILE`` may replace ``NAME``: it
names a file that contains the value. An empty value is treated as unset. An unknown ``BATUTA_*`` name raises an error
that suggests the nearest known name. Any other name that looks like a misspelt setting causes a warning.
"""

import difflib
import ipaddress
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from batuta.access import belongs, parse_networks
from batuta.environment import environment, in_file, system_language, unreadable
from batuta.kernel.errors import InvalidSetting, MissingSetting, StrangeSetting, UnknownSetting
from batuta.kernel.reasons import Reason, Reasons
from batuta.kernel.suggestions import nearest
from batuta.texts import Language

__all__ = [
    "SHORTEST_TOKEN",
    "EngineSettings",
    "Listed",
    "Zone",
    "check_target",
    "environment",
    "load_settings",
    "require_secret",
]

# Variables that only the tests and dev.py read.
OF_THE_TOOLS = frozenset({"BATUTA_CHROMIUM", "BATUTA_PG_BIN", "BATUTA_REQUIRE_SERVERS"})
OURS = "BATUTA_"
NEAR_ENOUGH = 0.86
SHORTEST_TOKEN, SHORTEST_KEY = 16, 32
MOST_CONNECTIONS = 1000
MOST_CONCURRENT = 1000
_LINK_LOCAL = parse_networks(("169.254.0.0/16", "fe80::/10"))
_PREFIX = re.compile(r"(/[a-z0-9_-]+)+", re.ASCII)


@cache
def _zones() -> frozenset[str]:
    """Return the names of all time zones. The result is cached, because each call reads a whole folder."""
    return frozenset(available_timezones())


def _zone(name: str) -> str:
    if name not in _zones():
        near = nearest(name, sorted(_zones()))
        if near is None:
            raise ValueError(
                Reason("no_zone", "'{name}' is not a time zone; write one as in America/Sao_Paulo", name=name)
            )
        raise ValueError(Reason("near_zone", "'{name}' is not a time zone, did you mean {near}", name=name, near=near))
    return name


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _split_list(value: object) -> object:
    """Split a comma-separated list."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _hours(text: str) -> str:
    opens, dash, closes = text.partition("-")
    if not (dash and opens.isdecimal() and closes.isdecimal() and int(opens) < int(closes) <= 24):
        raise ValueError(
            Reason(
                "no_hours", "'{text}' is not a range of hours: write the first and the last hour, as in 8-20", text=text
            )
        )
    return text


def _prefix(path: str) -> str:
    if not _PREFIX.fullmatch(path):
        raise ValueError(Reason("no_prefix", "'{path}' is not a path such as /painel", path=path))
    return path


def check_target(address: str) -> str:
    """Check the address for outgoing calls and return it. Raise ValueError if the address is not HTTP or HTTPS, or if
    it is link-local, because cloud machines serve their credentials at link-local addresses.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(Reason("no_target", "it is not an address such as https://host/path"))
    if belongs(parts.hostname, _LINK_LOCAL):
        raise ValueError(Reason("link_local", "a link-local address gives access to credentials; name another host"))
    return address


def _secret_target(address: SecretStr) -> SecretStr:
    check_target(address.get_secret_value())
    return address


def _networks(values: tuple[str, ...]) -> tuple[str, ...]:
    for each in values:
        try:
            ipaddress.ip_network(each)
        except ValueError:
            why = Reason("no_network", "'{each}' is not an address or network such as 10.0.0.0/8", each=each)
            raise ValueError(why) from None
    return values


Zone = Annotated[str, AfterValidator(_zone)]
Positive = Annotated[int, Field(ge=1)]
SecretTarget = Annotated[SecretStr, AfterValidator(_secret_target)]
Listed = Annotated[tuple[str, ...], BeforeValidator(_split_list)]


class EngineSettings(BaseModel):
    """The settings that every application has. An application adds its own settings in a subclass."""

    # The text below a setting is its description in the reference documentation.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)

    app_env: Literal["development", "production"] | None = Field(
        default_factory=lambda: environment().get("APP_ENV") or None  # type: ignore[arg-type]
    )
    """development: the api needs no token and listens on loopback only; production: migrations are not applied
    automatically; unset: the api is closed as in production
    """
    database_url: SecretStr = SecretStr("sqlite:///batuta.db")
    """sqlite:///file.db, sqlite:////absolute/file.db or postgresql://user:password@host:5432/name"""
    database_direct_url: SecretStr | None = None
    """address of PostgreSQL that bypasses a transaction pooler, for LISTEN; unset: tables are polled every second"""
    timezone: Zone = Field(default_factory=lambda: system_zone(environment()))
    """the time zone of schedules and displayed times; unset: the system's time zone"""
    host: str = "127.0.0.1"
    """address on which the api listens"""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """port on which the api listens; 0 chooses a free one"""
    api_token: SecretStr | None = None
    """a bearer token with every scope, 16 characters or more; `batuta token create` creates narrower ones"""
    secret_key: SecretStr | None = None
    """signs cookies and encrypts stored sessions; 32 characters or more"""
    batuta_keys: SecretStr | None = None
    """encrypts arguments and results of tasks, and documents of appointments; one or more keys of 32 characters or
    more, separated by commas, newest first; unset: no encryption
    """
    batuta_https: bool | None = None
    """whether browsers reach the api through HTTPS: then cookies are Secure and HSTS is sent; unset: yes in production
    """
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_upper)] = "INFO"
    """DEBUG, INFO, WARNING or ERROR"""
    log_format: Literal["auto", "pretty", "json"] = "auto"
    """auto is pretty on a terminal and JSON elsewhere"""
    no_color: str | None = None
    """any value disables colour"""
    force_color: str | None = None
    """any value enables colour even if the log does not go to a terminal"""
    run_mode: str | None = None
    """a role, or `all`; the entry point of the image reads it"""
    batuta_show_errors: bool | None = Field(  # type: ignore[assignment]
        default_factory=lambda: environment().get("BATUTA_SHOW_ERRORS") or None
    )
    """whether log, commands and pages show the masked messages of exceptions, which may quote personal data; unset:
    only in development
    """
    batuta_lang: Language = Field(default_factory=lambda: system_language(environment()))
    """the language of commands and problems; unset: the system's language, or English"""
    batuta_release: Annotated[str, Field(max_length=100)] | None = None
    """the name of this deployment; a deployment with a new name takes over the schedules, even if its code is older"""
    batuta_pool_size: Annotated[int, Field(ge=2, le=500)] = 5
    """PostgreSQL: maximum connections of a process for handlers and enqueueing"""
    batuta_liveness_pool_size: Annotated[int, Field(ge=1, le=50)] = 2
    """PostgreSQL: maximum connections of a process reserved for renewals, settlements and rescues"""
    batuta_page_seconds: Annotated[float, Field(ge=0.1, le=60)] = 2.0
    """longest time of one database statement for a dashboard page; pages use separate connections"""
    batuta_old_transaction_seconds: Annotated[float, Field(gt=0, le=86400)] = 60.0
    """PostgreSQL: health reports a transaction that is open for longer than this, because it prevents the removal of
    dead rows
    """
    batuta_drain_seconds: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """longest time that a shutdown waits for work in progress"""
    batuta_workers: Annotated[int, Field(ge=1, le=64)] = 1
    """number of workers that `batuta up` starts"""
    batuta_queues: Listed = ()
    """queues that a worker serves, separated by commas; if unset, the worker serves all queues and also runs the program's loops"""
    batuta_concurrency: Annotated[int, Field(ge=1, le=MOST_CONCURRENT)] = 20
    """maximum concurrent tasks of each queue in a worker, unless the program sets a number"""
    batuta_watchdog_seconds: Annotated[float, Field(ge=0.5, le=3600)] = 20.0
    """`batuta up` kills and restarts a child after this time without a heartbeat"""
    batuta_blocked_seconds: Annotated[float, Field(ge=0.5, le=600)] = 15.0
    """a process ends if its event loop does not respond for this long; its stack trace goes to the log and the database"""
    batuta_recycle_mb: Annotated[int, Field(ge=16)] | None = None
    """a process with more memory than this drains and restarts; unset: never"""
    batuta_recycle_hours: Annotated[float, Field(gt=0)] | None = None
    """a process older than this drains and restarts; unset: never"""
    batuta_keep_executions_days: Annotated[int, Field(ge=1)] = 30
    """retention of executions; the newest execution of each job and status is always kept"""
    batuta_keep_logs: bool = True
    """whether the masked log lines of tasks, jobs and stages are kept for `batuta logs` and the dashboard, at most 200
    per attempt
    """
    batuta_keep_access_days: Annotated[int, Field(ge=1, le=36_500)] = 730
    """retention of audit entries about sign-ins, refused requests, and reads and exports of personal data"""
    batuta_panel_prefix: Annotated[str, AfterValidator(_prefix)] = "/painel"
    """path of the dashboard's first page, below the address of the api"""
    batuta_trusted_proxies: Annotated[Listed, AfterValidator(_networks)] = ()
    """addresses or networks of proxies whose X-Forwarded-For names the client, separated by commas"""
    batuta_refusals_per_minute: Annotated[int, Field(ge=1)] = 60
    """maximum refused requests of one client in a minute; after that, the api answers 429 unless the request has
    valid credentials
    """
    batuta_max_connections: Annotated[int, Field(ge=10, le=100_000)] = MOST_CONNECTIONS
    """maximum open connections of the api; beyond them, the connection that has waited longest for a request is closed
    """
    batuta_metrics_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """port of GET /metrics of a scheduler or worker; under `batuta up` the parent uses this port, the scheduler the
    next one, and workers the ports after it
    """
    batuta_max_body_bytes: Annotated[int, Field(ge=1024)] = 1024 * 1024
    """the largest request body, unless a route allows more"""
    batuta_max_payload_bytes: Annotated[int, Field(ge=1024, le=64 * 1024 * 1024)] = 1024 * 1024
    """the largest arguments or result of a task, in bytes of JSON"""

    slack_webhook_url: SecretTarget | None = None
    """address of a Slack webhook for alerts and reports"""
    alert_webhook_url: SecretTarget | None = None
    """address that receives alerts as JSON"""
    deadman_url: SecretTarget | None = None
    """address of a dead man's switch, pinged every minute while the scheduler is working"""
    batuta_alert_critical_minutes: Positive = 15
    """minutes between two alerts about the same critical cause, at any hour"""
    batuta_alert_error_minutes: Positive = 60
    """minutes between two alerts about the same error"""
    batuta_alert_warning_minutes: Positive = 240
    """minutes between two alerts about the same warning"""
    batuta_alert_hours: Annotated[str, AfterValidator(_hours)] = "8-20"
    """hours in which alerts below critical are sent, Monday to Friday, in TIMEZONE"""

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @property
    def in_production(self) -> bool:
        return self.app_env == "production"

    @property
    def in_development(self) -> bool:
        return self.app_env == "development"

    @property
    def shows_errors(self) -> bool:
        return self.in_development if self.batuta_show_errors is None else self.batuta_show_errors

    @property
    def encryption_keys(self) -> tuple[str, ...]:
        """The keys that encrypt stored values, newest first."""
        return (
            () if self.batuta_keys is None else tuple(re.split(r"[\s,]+", self.batuta_keys.get_secret_value().strip()))
        )

    @property
    def has_https(self) -> bool:
        return self.in_production if self.batuta_https is None else self.batuta_https

    @model_validator(mode="after")
    def _has_long_keys(self) -> Self:
        if any(len(key) < SHORTEST_KEY for key in self.encryption_keys):
            why = Reason("short_key", "each of its keys must have at least {least} characters", least=SHORTEST_KEY)
            raise InvalidSetting(name="BATUTA_KEYS", why=why)
        return self

    @model_validator(mode="after")
    def _is_closed(self) -> Self:
        if self.in_production:
            self.require_access()
        if self.in_development and not is_loopback(self.host):
            raise InvalidSetting(
                name="HOST",
                why=Reason(
                    "open_host",
                    "with APP_ENV=development the API asks for no token, so it listens on 127.0.0.1 only; "
                    "remove HOST or set APP_ENV=production",
                ),
            )
        return self

    def require_access(self) -> None:
        """Raise an error unless the secrets that protect the API are set and long enough. In development, secrets are
        not required.
        """
        if self.in_development:
            return
        require_secret("API_TOKEN", self.api_token, SHORTEST_TOKEN)
        require_secret("SECRET_KEY", self.secret_key, SHORTEST_KEY)


def require_secret(name: str, secret: SecretStr | None, least: int) -> None:
    """Raise an error unless the secret is set and has at least ``least`` characters."""
    if secret is None:
        raise MissingSetting(name=name)
    if len(secret.get_secret_value()) < least:
        why = Reason("short_secret", "outside development it must have at least {least} characters", least=least)
        raise InvalidSetting(name=name, why=why)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


SomeSettings = TypeVar("SomeSettings", bound=EngineSettings)


def load_settings(kind: type[SomeSettings], env: Mapping[str, str], env_file: Path | None = None) -> SomeSettings:
    """Read and validate the settings. Values in ``env`` override values in ``env_file``."""
    given = {name.upper(): value for name, value in {**in_file(env_file), **env}.items() if value}
    known = names(kind)
    refuse_unknown(given, known)
    try:
        return kind.model_validate(
            {name.lower(): value for name, value in with_files(given, known).items() if name in known}
        )
    except ValidationError as error:
        raise invalid(error) from None


def unset(defaults: Mapping[str, str], env: Mapping[str, str], env_file: Path | None) -> dict[str, str]:
    """Return the entries of ``defaults`` that neither the environment nor the file sets."""
    given = {name.upper().removesuffix("_FILE") for name, value in {**in_file(env_file), **env}.items() if value}
    return {name: value for name, value in defaults.items() if name not in given}


def names(kind: type[EngineSettings]) -> frozenset[str]:
    return frozenset(name.upper() for name in kind.model_fields)


def refuse_unknown(given: Mapping[str, str], known: frozenset[str]) -> None:
    for name in sorted(given):
        if name.startswith(OURS) and name.removesuffix("_FILE") not in known | OF_THE_TOOLS:
            # Compare without the common prefix, because it would make all names look similar.
            near = nearest(name.removeprefix(OURS), sorted(each.removeprefix(OURS) for each in known))
            if near is None:
                raise StrangeSetting(name=name)
            raise UnknownSetting(name=name, nearest=f"{OURS}{near}" if f"{OURS}{near}" in known else near)


def near_misses(given: Mapping[str, str], known: frozenset[str]) -> list[tuple[str, str]]:
    """Return the unknown names that resemble a known setting, each paired with the name of that setting."""
    found = []
    for name in sorted(given):
        if name.removesuffix("_FILE") not in known | OF_THE_TOOLS:
            near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=NEAR_ENOUGH)
            found += [(name, near[0])] if near else []
    return found


def with_files(given: Mapping[str, str], known: frozenset[str]) -> dict[str, str]:
    """Return the settings, with every ``NAME_FILE`` resolved: read the file that it names and add the content as
    ``NAME``.
    """
    values = dict(given)
    for name in sorted(known):
        if (file := given.get(f"{name}_FILE")) is None:
            continue
        if name in given:
            raise InvalidSetting(
                name=name, why=Reason("given_twice", "{name}_FILE is set as well: keep one of the two", name=name)
            )
        try:
            values[name] = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidSetting(name=f"{name}_FILE", why=unreadable(Path(file), error)) from None
    return values


def invalid(error: ValidationError) -> InvalidSetting:
    problems = {
        str(problem["loc"][0]).upper() if problem["loc"] else "settings": reason_of(problem)
        for problem in error.errors()
    }
    return InvalidSetting(name=", ".join(problems), why=Reasons(problems.values()))


def reason_of(problem: ErrorDetails) -> Reason:
    """Return the ``Reason`` for a validation error. An error from the engine's own validators contains a ``Reason``;
    pydantic's own errors are mapped by their type.
    """
    context = problem.get("ctx", {})
    given = getattr(context.get("error"), "args", ())
    if given and isinstance(given[0], Reason):
        return given[0]
    # pydantic's message is passed as a fact, not as a template, because it may contain braces.
    facts: dict[str, object] = {**context, "said": problem["msg"].removeprefix("Value error, ").rstrip("?.")}
    if "expected" in facts:
        facts["expected"] = str(facts["expected"]).replace(" or ", ", ")
    return Reason(problem["type"], "{said}", **facts)


def system_zone(env: Mapping[str, str], localtime: Path = Path("/etc/localtime")) -> str:
    """Return this machine's time zone: the variable TZ if it is set, otherwise the target of ``localtime``, otherwise
    UTC.
    """
    linked = str(localtime.resolve()).rpartition("/zoneinfo/")[2]
    return next((name for name in (env.get("TZ", "").removeprefix(":"), linked) if name in _zones()), "UTC")


def find_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # zoneinfo raises different errors for different inputs
        why = Reason("no_zone", "'{name}' is not a time zone; write one as in America/Sao_Paulo", name=name)
        raise InvalidSetting(name="timezone", why=why) from None
