"""Everything Julia can be told through the environment. ``docs/reference.md`` lists it with these remarks."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from batuta.config import EngineSettings, Listed

Positive = Annotated[int, Field(ge=1)]
Url = Annotated[str, Field(pattern=r"^https?://[^\s]+$")]


class Settings(EngineSettings):
    database_url: SecretStr = SecretStr("sqlite:///data/julia.db")
    supabase_project_ref: str | None = None

    # The scheduler and its two timetables.
    julia_api_url: Url = "http://127.0.0.1:8000"
    schedule_profile: Literal["continuo", "janelas"] = "continuo"
    pilot_mode: bool = True
    discovery_automatico_enabled: bool = False
    oferta_automatica_enabled: bool = False
    reativacao_automatica_enabled: bool = False
    feedback_automatico_enabled: bool = False

    # Tasks.
    tasks_backend: Literal["sql", "arq"] = "sql"
    redis_url: SecretStr | None = None
    redis_password: SecretStr | None = None
    arq_max_jobs: Positive = 10
    arq_job_timeout: Positive = 300
    arq_keep_result: Annotated[int, Field(ge=0)] = 3600
    arq_max_tries: Positive = 3
    address_normalization_enabled: bool = True
    document_normalization_enabled: bool = True

    # The model. Without a key the rules work alone.
    openai_api_key: SecretStr | None = None
    openai_base_url: Url | None = None
    llm_model: str = "gpt-4o-mini"
    llm_daily_budget_usd: Annotated[float, Field(ge=0)] = 5.0

    # Sending.
    send_allowlist: Listed = ()
    rate_limit_per_hour: Positive = 20
    rate_limit_per_day: Positive = 100
    rate_limit_per_doctor_hour: Positive = 3
    send_min_gap_seconds: Positive = 45

    # The outside.
    evolution_api_url: Url | None = None
    evolution_api_key: SecretStr | None = None
    webhook_secret: SecretStr | None = None
    chatwoot_url: Url | None = None
    chatwoot_token: SecretStr | None = None
    slack_webhook_url: SecretStr | None = None
    alert_webhook_url: SecretStr | None = None
    deadman_url: SecretStr | None = None
    briefing_dir: str = "data/briefing"
    google_docs_credentials: SecretStr | None = None
    google_docs_briefing_id: str | None = None
    google_docs_templates_id: str | None = None
    telegram_api_id: Positive | None = None
    telegram_api_hash: SecretStr | None = None
    simulador_port: Annotated[int, Field(ge=0, le=65535)] = 8099
