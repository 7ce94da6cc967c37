"""Support for tasks that ARQ runs: the relay in the engine's worker, and the loops that run beside an ordinary ARQ
worker.
"""

from batuta.engine.arq import ArqWorker, add_arq_relay
from batuta.stores.arq.calls import REDIS_ERRORS
from batuta.stores.arq.relay import ArqRelay
from batuta.stores.arq.runner import CALL_MARGIN

__all__ = ["CALL_MARGIN", "REDIS_ERRORS", "ArqRelay", "ArqWorker", "add_arq_relay"]
