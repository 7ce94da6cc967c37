"""Renews the leases of the runs in this process.

A loop of its own: it waits for no run, for no connection that a function uses and for no row lock, and it goes on while everything
else shuts down. It stops after the last run has ended or was handed back.
"""

from batuta.dispatch.runner import Runner
from batuta.kernel.clock import Clock
from batuta.queue.lease import Tenure
from batuta.runlog.log import ExecutionLog
from batuta.supervise.loop import Doorbell, Idle, Pace

# A lease is renewed each third of its length; while its row is locked, each twelfth.
RETRIES = 12


class RunLeases:
    name = "run-leases"

    def __init__(self, log: ExecutionLog, runner: Runner, clock: Clock, tenure: Tenure) -> None:
        self.doorbell = Doorbell()
        self._log = log
        self._runner = runner
        self._clock = clock
        self._tenure = tenure

    async def tick(self) -> Pace:
        renewed = await self._log.renew(self._runner.held(), self._tenure)
        self._runner.release(renewed.lost)
        return Idle(self._clock.now() + self._tenure.lease / RETRIES) if renewed.unchecked else Idle()
