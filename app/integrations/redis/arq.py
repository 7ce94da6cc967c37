"""Tasks on ARQ: whose Redis it is, and how Julia's worker hands them over."""

from datetime import timedelta

from arq import create_pool
from arq.connections import ArqRedis, RedisSettings

from app.settings import Settings
from batuta.engine import Batuta
from batuta.kernel.errors import MissingSetting
from batuta.stores.arq.relay import ArqRelay
from batuta.supervise.loop import LoopPolicy

HEARING = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), max_failures=100)
# On their way at once, for each that may run in one ARQ worker: several workers are fed by one that hands over.
UNDER_WAY = 4


def redis_of(settings: Settings) -> RedisSettings:
    if settings.redis_url is None:
        raise MissingSetting(name="REDIS_URL")
    made = RedisSettings.from_dsn(settings.redis_url.get_secret_value())
    if settings.redis_password is not None:
        made.password = settings.redis_password.get_secret_value()
    made.conn_timeout, made.conn_retries = 2, 0  # whoever asks tries again in his own time
    return made


def add_arq(work: Batuta, settings: Settings) -> ArqRelay:
    """From now on a worker of ours runs no task itself: it sends each to Redis, and hears what became of it."""
    where = redis_of(settings)

    async def connect() -> ArqRedis:
        return await create_pool(where)

    relay = ArqRelay(connect, work.clock)
    work.task_registry.elsewhere = relay.run
    work.add_loop(relay, HEARING)
    work.closers.append(relay.close)
    return relay
