"""Public names for running tasks with ARQ, a task queue on Redis: the relay, with which the engine's worker sends tasks
to ARQ, and the loops that run beside an ordinary ARQ worker.
"""

from batuta.engine.arq import ArqWorker, add_arq_relay
from batuta.stores.arq.calls import REDIS_ERRORS
from batuta.stores.arq.relay import ArqRelay
from batuta.stores.arq.runner import CALL_MARGIN

__all__ = ["CALL_MARGIN", "REDIS_ERRORS", "ArqRelay", "ArqWorker", "add_arq_relay"]
