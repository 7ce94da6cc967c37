"""Everything Julia can be told through the environment; ``docs/reference.md`` is made from the remarks below each name."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from batuta.config import EngineSettings, Listed, Zone
from batuta.extension import Language

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Port = Annotated[int, Field(ge=0, le=65535)]
Url = Annotated[str, Field(pattern=r"^https?://[^\s]+$")]


class Settings(EngineSettings):
    database_url: SecretStr = SecretStr("sqlite:///data/julia.db")
    """sqlite:///file.db, sqlite:////absolute/file.db or postgresql://user:password@host:5432/name"""
    timezone: Zone = "America/Sao_Paulo"
    """the zone of schedules and of times shown to people"""
    batuta_lang: Language = "pt-BR"
    """the language of commands and problems"""
    supabase_project_ref: str | None = None
    """in production the database must be marked with the same"""

    julia_api_url: Url | None = None
    """where the scheduler finds the api; unset: on this machine, at PORT"""
    schedule_profile: Literal["continuo", "janelas"] = "continuo"
    """the first timetable; what is chosen at run time wins afterwards"""
    pilot_mode: bool = True
    """true: no autonomous trigger does anything"""
    discovery_automatico_enabled: bool = False
    """autonomous discovery, with PILOT_MODE off"""
    oferta_automatica_enabled: bool = False
    """autonomous offers, with PILOT_MODE off"""
    reativacao_automatica_enabled: bool = False
    """autonomous reactivation, with PILOT_MODE off"""
    feedback_automatico_enabled: bool = False
    """autonomous feedback, with PILOT_MODE off"""

    recuperacao_automatica_enabled: bool = False
    """whoever posted an incomplete offer in a group is asked what is missing, with PILOT_MODE off"""

    @property
    def webhook_address(self) -> str:
        return self.webhook_url or f"{self.api_url}/webhook/evolution"

    @property
    def api_url(self) -> str:
        return (self.julia_api_url or f"http://127.0.0.1:{self.port}").rstrip("/")

    tasks_backend: Literal["sql", "arq"] = "sql"
    """where tasks run: our own queue, or ARQ on Redis"""
    redis_url: SecretStr | None = None
    """redis://host:6379, for TASKS_BACKEND=arq"""
    redis_password: SecretStr | None = None
    """for REDIS_URL"""
    arq_max_jobs: Positive = 10
    """tasks at a time in one worker, on either backend"""
    arq_job_timeout: Positive = 300
    """seconds a task may take"""
    arq_keep_result: Annotated[int, Field(ge=0)] = 3600
    """seconds a task's result is kept"""
    arq_max_tries: Positive = 3
    """attempts of a task"""
    address_normalization_enabled: bool = True
    """appointments: read the address"""
    document_normalization_enabled: bool = True
    """appointments: read the documents"""
    address_model_enabled: bool = True
    """appointments: with OPENAI_API_KEY, an address the rules cannot read is sent to the model"""
    document_model_enabled: bool = False
    """appointments: with OPENAI_API_KEY, documents the rules cannot read are sent to the model; they leave only then"""

    openai_api_key: SecretStr | None = None
    """without it the rules work alone"""
    openai_base_url: Url | None = None
    """any server that speaks the same protocol"""
    llm_model: str = "gpt-4o-mini"
    """the model asked for"""
    llm_daily_budget_usd: Annotated[float, Field(ge=0)] = 5.0
    """what the model may cost in a day; afterwards the rules work alone until midnight"""
    llm_input_usd_per_million: Annotated[float, Field(ge=0)] = 0.15
    """what a million tokens of questions cost"""
    llm_output_usd_per_million: Annotated[float, Field(ge=0)] = 0.60
    """what a million tokens of answers cost"""
    llm_per_minute: Positive = 60
    """questions to the model in a minute, all together"""

    grupos_batch_size: Positive = 50
    """groups: rows of a stage that one worker has at a time"""
    grupos_max_workers: Positive = 5
    """groups: of those, at a time where the model is asked"""
    grupos_intervalo_segundos: Positive = 10
    """groups: the queue is looked at so often although nobody rang"""
    grupos_job_batch_size: Positive = 200
    """groups: rows of each stage in one run of processar_grupos"""
    grupos_job_max_workers: Positive = 20
    """groups: of those, at a time where the model is asked"""
    grupos_limiar_heuristica: Share = 0.3
    """groups: from this score on a message is looked at more closely"""
    grupos_limiar_alta: Share = 0.8
    """groups: from this score on it need not be classified"""
    grupos_limiar_classificacao: Share = 0.7
    """groups: so sure must a reading be that a message is an offer"""
    grupos_limiar_importacao: Share = 0.85
    """groups: from this score on a vaga is imported"""
    grupos_limiar_revisao: Share = 0.7
    """groups: from this score on a person decides; below it is dropped"""

    demo: bool = False
    """set by `make run`; not for production: an empty database is filled with people who do not exist, writable to at any hour"""

    @property
    def is_demo(self) -> bool:
        return self.demo and not self.in_production

    send_allowlist: Listed = ()
    """outside production: the only numbers that may get a message, with commas; empty: nobody but the simulator"""
    rate_limit_per_hour: Positive = 20
    """messages an hour, all together"""
    rate_limit_per_day: Positive = 100
    """messages a day, all together"""
    rate_limit_per_doctor_hour: Positive = 3
    """messages an hour to one doctor"""
    send_min_gap_seconds: Positive = 45
    """between two messages to one phone"""

    optout_journal: str | None = None
    """a file that records opt-outs besides the database, for `batuta restore`; unset: beside a SQLite database, else none"""

    evolution_api_url: Url | None = None
    """the WhatsApp gateway; `batuta up` in development points it at the simulator"""
    evolution_api_key: SecretStr | None = None
    """the gateway's key"""
    webhook_secret: SecretStr | None = None
    """what an incoming webhook must prove"""
    webhook_url: Url | None = None
    """where the gateway finds us; unset: JULIA_API_URL with /webhook/evolution at its end"""
    chatwoot_url: Url | None = None
    """the help desk (not used yet)"""
    chatwoot_token: SecretStr | None = None
    """the help desk's token (not used yet)"""
    briefing_dir: str = "data/briefing"
    """a folder of Markdown, instead of Google Docs (not used yet)"""
    google_docs_credentials: SecretStr | None = None
    """a service account, as JSON (not used yet)"""
    google_docs_briefing_id: str | None = None
    """the briefing's document or folder (not used yet)"""
    google_docs_templates_id: str | None = None
    """the folder of templates (not used yet)"""
    telegram_api_id: Positive | None = None
    """of the Telegram application (not used yet)"""
    telegram_api_hash: SecretStr | None = None
    """of the Telegram application (not used yet)"""
    simulador_port: Port = 8099
    """where the simulator listens, on loopback"""
