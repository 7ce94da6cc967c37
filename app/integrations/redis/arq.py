"""Tasks on ARQ: the Redis settings, the loop that sends tasks to Redis, and the check that Redis answers."""

from arq.connections import ArqRedis, RedisSettings

from app.integrations.redis.probe import ask
from app.settings import Settings
from batuta import Batuta, BatutaError
from batuta.arq import ArqRelay, add_arq_relay
from batuta.errors import MissingBeside
from batuta.health import State


class RedisAway(BatutaError):
    sentence = "Redis at {where} does not answer ({why}): start it, or correct REDIS_URL and REDIS_PASSWORD"


def redis_of(settings: Settings) -> RedisSettings:
    if settings.redis_url is None:
        raise MissingBeside(name="REDIS_URL", beside="TASKS_BACKEND=arq")
    made = RedisSettings.from_dsn(settings.redis_url.get_secret_value())
    if settings.redis_password is not None:
        made.password = settings.redis_password.get_secret_value()
    made.conn_timeout, made.conn_retries = 2, 0  # no retry here, because the callers retry
    return made


def where_of(settings: Settings) -> str:
    """Return the address of the Redis server without the password."""
    made = redis_of(settings)
    return f"{made.host}:{made.port}"


async def require_redis(settings: Settings) -> None:
    if settings.redis_url is None:
        raise MissingBeside(name="REDIS_URL", beside="TASKS_BACKEND=arq")
    found = await ask(settings.redis_url, settings.redis_password)
    if found.state is not State.OK:
        raise RedisAway(where=where_of(settings), why=found.why or found.state.value)


def add_arq(work: Batuta, settings: Settings) -> ArqRelay:
    """Configure the engine to run tasks on ARQ. The worker sends each task to Redis and receives its outcome."""
    where = redis_of(settings)

    def make_client() -> ArqRedis:
        return ArqRedis(
            host=where.host,
            port=where.port,
            unix_socket_path=where.unix_socket_path,
            db=where.database,
            username=where.username,
            password=where.password,
            ssl=where.ssl,
            socket_connect_timeout=where.conn_timeout,
        )

    return add_arq_relay(work, make_client)
