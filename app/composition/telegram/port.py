"""Build the Telegram client. Telethon and cryptography are imported only when an account connects or logs in."""

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from app.contexts.telegram.porta import Entidades, Falha, Linha, Login, Refused, Telegram
from app.contexts.telegram.sessoes import ChaveErrada, SemChave, Sessoes
from app.settings import Settings
from batuta.errors import ConfigError, EncryptionError
from batuta.kernel import Clock, Ids, KeyRing, dataclass, make_owner
from batuta.reasons import define
from batuta.sql import Database

if TYPE_CHECKING:
    from telethon.sessions import StringSession

    from app.integrations.telethon.cliente import Cliente

SESSIONS = b"batuta telegram session"
NO_TELEGRAM = define("sem_telegram", "Telegram is not configured: set TELEGRAM_API_ID and TELEGRAM_API_HASH")
NOT_CONFIGURED = define("telegram_nao_configurado", "Telegram is not configured")
CONFIGURE = define(
    "configurar_telegram", "set TELEGRAM_API_ID and TELEGRAM_API_HASH, from my.telegram.org, or start `batuta up`"
)


def build_sessions(settings: Settings, database: Database, clock: Clock) -> Sessoes:
    """Return the store for the sessions of all Telegram accounts. Each process claims sessions under a unique owner
    name.
    """
    return Sessoes(database, LateRing(settings.session_keys), clock, make_owner(Ids(clock)))


def build_port(settings: Settings, sessoes: Sessoes, entidades: Entidades, clock: Clock) -> Telegram:
    """Return a Telethon client if TELEGRAM_API_ID is set, otherwise a client for the simulated Telegram if its address
    is set. If neither is set, return a client that refuses every connection.
    """
    if settings.telegram_api_id is not None and settings.telegram_api_hash is not None:
        return LateTelethon(settings, sessoes, entidades, clock)
    if settings.telegram_simulador_url is not None and settings.in_development:
        from app.integrations.telegram.simulado import TelegramSimulado

        return TelegramSimulado(settings.telegram_simulador_url, sessoes, entidades, clock)
    return NoTelegram()


def build_login(settings: Settings, clock: Clock) -> Login:
    """Return a login for the real or the simulated Telegram, whichever of them ``build_port`` connects to. Raises
    ConfigError if Telegram is not configured, and SemChave if there is no key to encrypt the session with.
    """
    if not settings.session_keys:
        raise SemChave
    if settings.telegram_api_id is not None and settings.telegram_api_hash is not None:
        from app.integrations.telethon.cliente import Cliente
        from app.integrations.telethon.login import LoginTelethon

        api_id, api_hash = settings.telegram_api_id, settings.telegram_api_hash.get_secret_value()
        return LoginTelethon(lambda session: Cliente(session, api_id, api_hash, repeats=1), clock)
    if settings.telegram_simulador_url is not None and settings.in_development:
        from app.integrations.telegram.login import LoginSimulado

        return LoginSimulado(settings.telegram_simulador_url, clock)
    raise ConfigError(problem=NOT_CONFIGURED(), next_step=CONFIGURE())


class NoTelegram:
    """Client used when Telegram is not configured. It refuses every connection."""

    async def connect(self, conta: str, *, marca: str | None, limit: timedelta) -> Linha | Falha:
        return Refused(NO_TELEGRAM(), permanent=True)


@dataclass
class LateTelethon:
    """Telethon client that imports Telethon on the first connection, because the import takes seconds and much memory."""

    settings: Settings
    sessoes: Sessoes
    entidades: Entidades
    clock: Clock

    @cached_property
    def _telegram(self) -> Telegram:
        from app.integrations.telethon.linha import TelegramTelethon

        return TelegramTelethon(self.sessoes, self.entidades, self.clock, self._make)

    async def connect(self, conta: str, *, marca: str | None, limit: timedelta) -> Linha | Falha:
        return await self._telegram.connect(conta, marca=marca, limit=limit)

    def _make(self, session: "StringSession", marca: str | None) -> "Cliente":
        from app.integrations.telethon.cliente import Cliente

        api_id, api_hash = self.settings.telegram_api_id, self.settings.telegram_api_hash
        assert api_id is not None
        assert api_hash is not None
        return Cliente(session, api_id, api_hash.get_secret_value(), marca)


@dataclass
class LateRing:
    """Key ring that is built when a session is first read or stored. If no key is set, reading and storing raise an
    error that tells the operator what to do next.
    """

    keys: tuple[str, ...]

    @cached_property
    def _ring(self) -> KeyRing | None:
        return KeyRing(self.keys, SESSIONS) if self.keys else None

    def encrypt(self, conta: str, clear: str) -> str:
        if self._ring is None:
            raise SemChave
        return self._ring.encrypt(clear, conta)

    def decrypt(self, conta: str, cifrada: str) -> str:
        """Decrypt a session. The account id is authenticated with the session, so a session copied to another account
        is rejected.
        """
        if self._ring is None:
            raise ChaveErrada
        try:
            return self._ring.decrypt(cifrada, conta)
        except EncryptionError:
            raise ChaveErrada from None

    def is_current(self, cifrada: str) -> bool:
        return self._ring is not None and self._ring.is_current(cifrada)
