"""Julia's settings, read from the environment; ``docs/reference.md`` is generated from the text below each name."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from batuta.config import SHORTEST_TOKEN, EngineSettings, Listed, Zone, check_target, require_secret
from batuta.errors import InvalidSetting, MissingBeside
from batuta.extension import Language
from batuta.reasons import Reason

Positive = Annotated[int, Field(ge=1)]
Kept = Annotated[int, Field(ge=1, le=36_500)] | Literal["off"]
Share = Annotated[float, Field(ge=0, le=1)]
Port = Annotated[int, Field(ge=0, le=65535)]
Url = Annotated[str, Field(pattern=r"^https?://[^\s]+$"), AfterValidator(check_target)]


class Settings(EngineSettings):
    database_url: SecretStr = SecretStr("sqlite:///data/julia.db")
    """address of the database: sqlite:///file.db, sqlite:////absolute/file.db or postgresql://user:password@host:5432/name"""
    timezone: Zone = "America/Sao_Paulo"
    """time zone of schedules and of times shown to operators"""
    batuta_lang: Language = "pt-BR"
    """language of commands and problems"""
    supabase_project_ref: str | None = None
    """the identifying mark that the database must contain in production"""

    julia_api_url: Url | None = None
    """the api's address for the scheduler; if unset, this machine at PORT"""
    public_url: Url | None = None
    """address of the api for links in messages to people; if unset, links use JULIA_API_URL and hand-off messages have no link"""
    schedule_profile: Literal["continuo", "janelas"] = "continuo"
    """the profile of a new database; `batuta schedule use` changes it"""
    pilot_mode: bool = True
    """true stops every automatic trigger"""
    discovery_automatico_enabled: bool = False
    """whether Julia sends first contacts without an operator; PILOT_MODE must be off"""
    oferta_automatica_enabled: bool = False
    """whether Julia sends offers without an operator; PILOT_MODE must be off"""
    reativacao_automatica_enabled: bool = False
    """whether Julia sends reactivations without an operator; PILOT_MODE must be off"""
    feedback_automatico_enabled: bool = False
    """whether Julia asks for feedback after a shift without an operator; PILOT_MODE must be off"""

    recuperacao_automatica_enabled: bool = False
    """whether Julia asks authors of incomplete group offers for the missing fields; PILOT_MODE must be off"""

    @property
    def webhook_address(self) -> str:
        return self.webhook_url or f"{self.api_url}/webhook/evolution"

    @property
    def public_address(self) -> str:
        return (self.public_url or self.api_url).rstrip("/")

    @property
    def api_url(self) -> str:
        return (self.julia_api_url or f"http://127.0.0.1:{self.port}").rstrip("/")

    tasks_backend: Literal["sql", "arq"] = "sql"
    """where tasks run: in the engine's queue (sql), or with ARQ on Redis (arq)"""
    redis_url: SecretStr | None = None
    """address of Redis for TASKS_BACKEND=arq, such as redis://host:6379"""
    redis_password: SecretStr | None = None
    """password of Redis; required outside development, here or in REDIS_URL"""

    @model_validator(mode="after")
    def _redis_is_closed(self) -> Self:
        if self.in_development or self.tasks_backend != "arq" or self.redis_url is None:
            return self
        if self.redis_password is None and urlsplit(self.redis_url.get_secret_value()).password is None:
            raise MissingBeside(name="REDIS_PASSWORD", beside="TASKS_BACKEND=arq")
        return self

    arq_max_jobs: Positive = 10
    """concurrent tasks of one worker, with either value of TASKS_BACKEND"""
    arq_job_timeout: Positive = 300
    """time limit of a task, in seconds"""
    arq_keep_result: Annotated[int, Field(ge=0)] = 3600
    """retention of a task's result, in seconds"""
    arq_max_tries: Positive = 3
    """maximum attempts of a task"""
    address_normalization_enabled: bool = True
    """appointments: whether addresses are read"""
    document_normalization_enabled: bool = True
    """appointments: whether documents are read"""
    address_model_enabled: bool = False
    """appointments: whether addresses that the rules cannot read are sent to the model (needs OPENAI_API_KEY)"""
    document_model_enabled: bool = False
    """appointments: whether documents that the rules cannot read are sent to the model (needs OPENAI_API_KEY)"""

    openai_api_key: SecretStr | None = None
    """key of the language model; if unset, only rules read texts"""
    openai_base_url: Url | None = None
    """address of another server that speaks the OpenAI protocol"""
    llm_personal_data: bool = False
    """groups: whether personal data in a message is sent to the language model; if false, it is replaced with marks"""
    llm_model: str = "gpt-4o-mini"
    """name of the language model"""
    llm_daily_budget_usd: Annotated[float, Field(ge=0)] = 5.0
    """daily budget of the language model in dollars; when it is spent, only rules read texts until midnight"""
    llm_input_usd_per_million: Annotated[float, Field(ge=0)] = 0.15
    """price of a million input tokens, in dollars"""
    llm_output_usd_per_million: Annotated[float, Field(ge=0)] = 0.60
    """price of a million output tokens, in dollars"""
    llm_per_minute: Positive = 60
    """calls to the model per minute, over all processes"""

    grupos_batch_size: Positive = 50
    """groups: rows of a stage that one worker claims at a time"""
    grupos_max_workers: Positive = 5
    """groups: concurrent calls to the model in one worker"""
    grupos_intervalo_segundos: Positive = 10
    """groups: polling interval of the queue, in seconds"""
    grupos_job_batch_size: Positive = 200
    """groups: rows of each stage in one run of processar_grupos"""
    grupos_job_max_workers: Positive = 20
    """groups: concurrent calls to the model in one run of processar_grupos"""
    grupos_limiar_heuristica: Share = 0.3
    """groups: minimum score to classify a message"""
    grupos_limiar_alta: Share = 0.8
    """groups: minimum score to skip the classification"""
    grupos_limiar_classificacao: Share = 0.7
    """groups: minimum confidence to classify a message as an offer"""
    grupos_limiar_importacao: Share = 0.85
    """groups: minimum score to import a vacancy"""
    grupos_limiar_revisao: Share = 0.7
    """groups: minimum score for a review; below it a vacancy is discarded"""
    grupos_limiar_leitura: Share = 0.95
    """groups: minimum calibrated confidence to import a vacancy; below it the language model or a person decides"""

    alerta_handoff_parte: Share = 0.2
    """alerts: largest share of the last hour's conversations that may need a person"""
    alerta_handoff_pico: Positive = 5
    """alerts: smallest number of conversations or hand-offs in 24 hours that counts as a peak; a peak is also at least
    twice the daily mean
    """
    alerta_resposta_segundos: Positive = 120
    """alerts: longest mean time to an answer in the last 30 minutes, in seconds"""
    alerta_silencio_minutos: Positive = 30
    """alerts: longest time in minutes without a sent message while a doctor waits, within the sending hours"""
    alerta_nota_minima: Annotated[float, Field(ge=1, le=10)] = 5.0
    """alerts: lowest mean score of conversations evaluated in 24 hours; ignored if fewer than five were evaluated"""
    alerta_performance_ms: Positive = 1000
    """alerts: longest mean duration of the job heartbeat in the last hour, in milliseconds; twice as long is critical"""
    alerta_recusas_parte: Share = 0.4
    """alerts: largest share of refused offers in 24 hours"""
    alerta_conversao_queda: Share = 0.3
    """alerts: largest drop of reservations per offer in 24 hours, compared with the week before"""

    qualidade_quieta_horas: Positive = 72
    """quality: hours after the last message at which an open conversation is evaluated"""
    qualidade_model_enabled: bool = True
    """quality: whether the model evaluates conversations, with numbers and names masked (needs OPENAI_API_KEY)"""

    demo: bool = False
    """play a demonstration in an empty database, with synthetic people who accept messages at any hour; set by `make
    run`, needs the simulator, not for production
    """

    @property
    def is_demo(self) -> bool:
        return self.demo and self.in_development

    send_allowlist: Listed = ()
    """outside production: numbers that may receive messages, separated by commas; if empty, only the simulator"""
    rate_limit_per_hour: Positive = 20
    """messages per hour, in total"""
    rate_limit_per_day: Positive = 100
    """messages per day, in total"""
    rate_limit_per_doctor_hour: Positive = 3
    """messages per hour to one doctor"""
    send_min_gap_seconds: Positive = 45
    """seconds between two messages to one phone number"""

    keep_conversations_days: Kept = 730
    """days after which the texts of messages with doctors are removed; `off` keeps them"""
    keep_group_messages_days: Kept = 180
    """days after which texts, authors and contacts of group messages are removed; vacancies stay; `off` keeps them"""
    keep_appointments_days: Kept = 365
    """days for which an appointment is kept after its visit or last change, whichever is later; `off` keeps it"""

    optout_journal: str | None = None
    """file that records opt-outs outside the database, for `batuta restore`; if unset, a file next to the
    SQLite database; with PostgreSQL, no file
    """

    evolution_api_url: Url | None = None
    """address of the WhatsApp gateway; in development `batuta up` sets the address of the simulator"""
    evolution_api_key: SecretStr | None = None
    """key of the gateway"""
    webhook_secret: SecretStr | None = None
    """secret of incoming webhooks; 16 characters or more outside development"""

    @model_validator(mode="after")
    def _webhook_secrets_are_long(self) -> Self:
        for name in ("webhook_secret", "chatwoot_webhook_secret"):
            if not self.in_development and (secret := getattr(self, name)) is not None:
                require_secret(name.upper(), secret, SHORTEST_TOKEN)
        return self

    webhook_url: Url | None = None
    """address that the gateway calls; if unset, JULIA_API_URL with /webhook/evolution appended"""
    chatwoot_url: Url | None = None
    """address of the help desk Chatwoot; if unset, people answer without it"""
    chatwoot_token: SecretStr | None = None
    """access token of a person or bot in Chatwoot"""
    chatwoot_account_id: Positive | None = None
    """number of the account in Chatwoot"""
    chatwoot_inbox_id: Positive | None = None
    """number of the inbox in Chatwoot, which must have the channel API"""
    chatwoot_webhook_secret: SecretStr | None = None
    """secret of Chatwoot's webhook, which calls /webhook/chatwoot"""

    @model_validator(mode="after")
    def _chatwoot_is_complete(self) -> Self:
        wanted = (
            "chatwoot_url",
            "chatwoot_token",
            "chatwoot_account_id",
            "chatwoot_inbox_id",
            "chatwoot_webhook_secret",
        )
        missing = [name for name in wanted if getattr(self, name) is None]
        if missing and len(missing) < len(wanted):
            given = next(name for name in wanted if name not in missing)
            raise MissingBeside(name=missing[0].upper(), beside=given.upper())
        return self

    briefing_dir: str = "data/briefing"
    """folder of Markdown files: the briefing, and `templates/` with a template for each type of campaign"""
    google_docs_credentials: SecretStr | None = None
    """JSON key of a Google service account, for documents in Google Docs instead of BRIEFING_DIR"""
    google_docs_briefing_id: str | None = None
    """id of the briefing in Google Docs, or of a folder whose newest document is the briefing"""
    google_docs_templates_id: str | None = None
    """id of a folder in Google Drive with a sub-folder for each type of campaign"""
    google_api_url: Url = "https://www.googleapis.com"
    """address of the Google Drive API; a simulator in tests"""

    @model_validator(mode="after")
    def _google_docs_are_complete(self) -> Self:
        ids = (self.google_docs_briefing_id, self.google_docs_templates_id)
        if self.google_docs_credentials is None and any(ids):
            given = "GOOGLE_DOCS_BRIEFING_ID" if ids[0] else "GOOGLE_DOCS_TEMPLATES_ID"
            raise MissingBeside(name="GOOGLE_DOCS_CREDENTIALS", beside=given)
        if self.google_docs_credentials is not None and not any(ids):
            raise MissingBeside(name="GOOGLE_DOCS_BRIEFING_ID", beside="GOOGLE_DOCS_CREDENTIALS")
        return self

    telegram_api_id: Positive | None = None
    """API id (`api_id`) that my.telegram.org shows for the Telegram application; if unset, Telegram is off"""
    telegram_api_hash: SecretStr | None = None
    """API hash (`api_hash`) that my.telegram.org shows for the Telegram application"""
    telegram_session_keys: SecretStr | None = None
    """keys of the stored Telegram sessions, newest first, separated by commas; if unset, SECRET_KEY"""
    telegram_simulador_url: Url | None = None
    """address of the simulated Telegram, outside production; in development `batuta up` sets it"""

    telegram_timeout_send: Positive = 30
    """Telegram: seconds to send a text, or to read a page of a chat"""
    telegram_timeout_entity: Positive = 15
    """Telegram: seconds to find a person or a chat"""
    telegram_timeout_media: Positive = 60
    """Telegram: seconds to upload and send a file"""
    telegram_timeout_db: Annotated[int, Field(ge=1, lt=60)] = 10
    """Telegram: seconds to store received messages; less than 60, because the supervisor restarts a loop after 60"""
    telegram_timeout_cycle: Annotated[int, Field(ge=1, le=120)] = 120
    """Telegram: seconds for one whole send, page or action; at most 120. Other items are processed during this time"""
    telegram_sends_at_a_time: Positive = 64
    """Telegram: accounts that send at the same time; each account sends one message at a time"""

    @model_validator(mode="after")
    def _telegram_limits_fit(self) -> Self:
        """Check that TELEGRAM_TIMEOUT_CYCLE is longer than the time limit for the longest send, and longer than the
        time limit for a database write.
        """
        longest = self.telegram_timeout_entity + self.telegram_timeout_send
        longest += max(self.telegram_timeout_send, self.telegram_timeout_media)
        longest = max(longest, self.telegram_timeout_db)
        if longest >= self.telegram_timeout_cycle:
            raise InvalidSetting(
                name="TELEGRAM_TIMEOUT_CYCLE",
                why=Reason(
                    "telegram_cycle",
                    "it must be longer than {seconds} s (TELEGRAM_TIMEOUT_ENTITY, _SEND and _MEDIA together, or _DB)",
                    seconds=longest,
                ),
            )
        return self

    @model_validator(mode="after")
    def _telegram_is_complete(self) -> Self:
        if (self.telegram_api_id is None) != (self.telegram_api_hash is None):
            names = ("TELEGRAM_API_ID", "TELEGRAM_API_HASH")
            missing, given = names if self.telegram_api_id is None else names[::-1]
            raise MissingBeside(name=missing, beside=given)
        return self

    @property
    def session_keys(self) -> tuple[str, ...]:
        """The secrets that encrypt Telegram sessions, newest first. The tuple is empty if none is set."""
        if self.telegram_session_keys is not None:
            keys = self.telegram_session_keys.get_secret_value().split(",")
            return tuple(each.strip() for each in keys if each.strip())
        return () if self.secret_key is None else (self.secret_key.get_secret_value(),)

    simulador_port: Port = 8099
    """port of the simulator, on loopback"""
    telegram_simulador_port: Port = 8098
    """port of the simulated Telegram, on loopback"""
