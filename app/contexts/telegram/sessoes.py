"""Sessions of Telegram accounts. They are stored encrypted, and only one process at a time owns a session.

A session gives full access to an account. Only the Telegram client reads a session, and only while its process owns the
session. Telegram ends a session that two processes use at the same time, so an owner renews its lease with every probe.
If a process cannot renew its lease, it stops using the session before the lease ends. If a process has certainly ended,
another process may take its session immediately.
"""

from datetime import timedelta
from typing import Final, Protocol

from app.contexts.telegram.porta import OwnedElsewhere, SessionRevoked, Unavailable
from batuta import BatutaError
from batuta.kernel import Clock, dataclass, has_ended
from batuta.reasons import define, reason_of_error
from batuta.sql import Database, Query, Row, Transaction, load_queries

# Longer than three probe intervals. If the owner is killed on another machine, its session becomes free after this
# time.
LEASE: Final = timedelta(seconds=180)
NO_SESSION = define("telegram_sem_sessao", "the account has no session: run `batuta telegram login`")


class ChaveErrada(BatutaError):
    """Raised if none of the configured keys decrypts a session."""

    sentence = (
        "the session of the Telegram account cannot be decrypted: set SECRET_KEY or TELEGRAM_SESSION_KEYS to the key it "
        "was stored with, or log in again with `batuta telegram login`"
    )


class SemChave(BatutaError):
    """Raised if no key is configured, so that no session can be stored."""

    sentence = (
        "a Telegram session is stored encrypted, and no key is set: set SECRET_KEY or TELEGRAM_SESSION_KEYS first; "
        "for the simulated Telegram, set APP_ENV=development"
    )


class Cifra(Protocol):
    """Encryption of Telegram sessions with several keys. The newest key encrypts; any of the keys can decrypt."""

    def encrypt(self, conta: str, clear: str) -> str: ...

    def decrypt(self, conta: str, cifrada: str) -> str:
        """Decrypt a session. Raises ChaveErrada if no key fits, or if the session belongs to another account."""
        ...

    def is_current(self, cifrada: str) -> bool:
        """Return whether the newest key encrypted a stored session."""
        ...


@dataclass(frozen=True, slots=True)
class SessionQueries:
    store: Query
    take: Query
    renew: Query
    release: Query
    encrypt_again: Query
    remove: Query
    session: Query
    all_sessions: Query


class Sessoes:
    def __init__(self, database: Database, cifra: Cifra, clock: Clock, dono: str) -> None:
        """Create the store of Telegram sessions. ``dono`` identifies this process as an owner of sessions;
        ``batuta.kernel.make_owner`` creates it.
        """
        self._database = database
        self._cifra = cifra
        self._clock = clock
        self._dono = dono
        self._queries = load_queries(SessionQueries, "sql/sessoes.sql", database.dialect)

    async def store(self, conta: str, sessao: str, *, within: Transaction | None = None) -> None:
        """Store the session from a new login. A process that is using an earlier session of this account loses its
        ownership.
        """
        await (within or self._database).run(
            self._queries.store, conta_id=conta, cifrada=self._cifra.encrypt(conta, sessao), now=self._clock.now()
        )

    async def take(self, conta: str) -> str | OwnedElsewhere | SessionRevoked | Unavailable:
        """Take ownership of a session and return it. If the session was encrypted with an old key, encrypt it again
        with the newest key. A process that lacks the key does not take the session, so that a process with the key can
        take it.
        """
        now = self._clock.now()
        row = await self._database.one(self._queries.session, conta_id=conta)
        if row is None:
            return SessionRevoked(NO_SESSION())
        if not self._may_take(row):
            return OwnedElsewhere(row["dono_ate"])
        cifrada, seen = row["cifrada"], {"antes": row["dono"], "antes_ate": row["dono_ate"]}
        try:
            sessao = self._cifra.decrypt(conta, cifrada)
        except ChaveErrada as error:
            return Unavailable(reason_of_error(error))
        mine = {"conta_id": conta, "dono": self._dono, "ate": now + LEASE}
        if not await self._database.run(self._queries.take, **mine, **seen, cifrada=cifrada):
            return await self._why_not(conta)
        await self._encrypt_again(conta, cifrada, sessao)
        return sessao

    def _may_take(self, row: Row) -> bool:
        dono, until = row["dono"], row["dono_ate"]
        return dono is None or dono == self._dono or until <= self._clock.now() or has_ended(dono)

    async def renew(self, conta: str) -> OwnedElsewhere | SessionRevoked | None:
        """Renew the ownership of a session. Return None on success, otherwise the reason why the session must no longer
        be used.
        """
        renewed = await self._database.run(
            self._queries.renew, conta_id=conta, dono=self._dono, ate=self._clock.now() + LEASE
        )
        return None if renewed else await self._why_not(conta)

    async def release(self, conta: str) -> None:
        await self._database.run(self._queries.release, conta_id=conta, dono=self._dono)

    async def remove(self, conta: str) -> bool:
        return await self._database.run(self._queries.remove, conta_id=conta) > 0

    async def encrypt_all_again(self) -> int:
        """Encrypt every session with the newest key, so that older keys can be removed. Return how many sessions were
        encrypted with an older key.
        """
        changed = 0
        for row in await self._database.all(self._queries.all_sessions):
            conta = str(row["conta_id"])
            changed += await self._encrypt_again(conta, row["cifrada"], self._cifra.decrypt(conta, row["cifrada"]))
        return changed

    async def _encrypt_again(self, conta: str, cifrada: str, sessao: str) -> bool:
        if self._cifra.is_current(cifrada):
            return False
        new, now = self._cifra.encrypt(conta, sessao), self._clock.now()
        query = self._queries.encrypt_again
        return await self._database.run(query, conta_id=conta, cifrada=new, antes=cifrada, now=now) > 0

    async def _why_not(self, conta: str) -> OwnedElsewhere | SessionRevoked:
        row = await self._database.one(self._queries.session, conta_id=conta)
        if row is None:
            return SessionRevoked(NO_SESSION())
        return OwnedElsewhere(row["dono_ate"] or self._clock.now())
