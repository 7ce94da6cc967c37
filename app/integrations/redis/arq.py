"""Tasks on ARQ: whose Redis it is, how Julia's worker hands them over, and how one is told who runs them."""

from datetime import timedelta

from arq import create_pool
from arq.connections import ArqRedis, RedisSettings

from app.integrations.redis.probe import answers
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.health.ready import State
from batuta.kernel.errors import BatutaError, MissingBeside
from batuta.stores.arq import RUNNER
from batuta.stores.arq.relay import ArqRelay
from batuta.stores.sql.queue.tasks import SqlTasks
from batuta.supervise.loop import LoopPolicy

HEARING = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), max_failures=100, outlives=True)


class RedisAway(BatutaError):
    sentence = "Redis at {where} does not answer ({why}): start it, or correct REDIS_URL and REDIS_PASSWORD"


def redis_of(settings: Settings) -> RedisSettings:
    if settings.redis_url is None:
        raise MissingBeside(name="REDIS_URL", beside="TASKS_BACKEND=arq")
    made = RedisSettings.from_dsn(settings.redis_url.get_secret_value())
    if settings.redis_password is not None:
        made.password = settings.redis_password.get_secret_value()
    made.conn_timeout, made.conn_retries = 2, 0  # whoever asks tries again in his own time
    return made


def where_of(settings: Settings) -> str:
    """Without its password."""
    made = redis_of(settings)
    return f"{made.host}:{made.port}"


async def require_redis(settings: Settings) -> None:
    found = await answers(settings.redis_url, settings.redis_password)
    if found.state is not State.OK:
        raise RedisAway(where=where_of(settings), why=found.why or found.state.value)


def add_arq(work: Batuta, settings: Settings) -> ArqRelay:
    """Have the tasks run by ARQ: the worker sends each to Redis and receives its outcome."""
    where = redis_of(settings)

    async def connect() -> ArqRedis:
        return await create_pool(where)

    store = SqlTasks(work.database, work.ids, work.clock, work.wakeups.ring)
    relay = ArqRelay(connect, work.clock, store.wanted)
    work.relay_tasks(relay.run)
    work.add_loop(relay, HEARING)
    work.closers.append(relay.close)
    for name in work.task_registry.queues:
        work.observability.watch_queue(work.queues[name], None, RUNNER, hands_over=True)
    return relay
