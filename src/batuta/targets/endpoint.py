"""Calls an endpoint for an operator, and records the call as a manual run of the job that the endpoint serves."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from urllib.parse import parse_qsl

from batuta.dispatch.job import Job, Run
from batuta.receive.endpoints import Endpoint
from batuta.receive.receiver import Busy, JobReceiver, Received, Reply
from batuta.runlog import reasons
from batuta.runlog.execution import Ending, Status
from batuta.targets.http import Answer, ending_of

JOBS = "/jobs/"


def find_job(jobs: Iterable[Job], endpoint: str, params: Mapping[str, str]) -> Job | None:
    """Return the first job whose target is this endpoint with these parameters, or None."""
    for job in jobs:
        path, _, query = job.target.address.partition("?")
        if path == f"{JOBS}{endpoint}" and dict(parse_qsl(query)).items() <= params.items():
            return job
    return None


class EndpointTarget:
    """Delivers a run to one of this process's endpoints, and stores the reply in ``received`` for the caller."""

    repeatable = False

    def __init__(self, receiver: JobReceiver, endpoint: Endpoint, deadline: datetime | None, by: str) -> None:
        self.received: Received = Busy()
        self._receiver = receiver
        self._endpoint = endpoint
        self._deadline = deadline
        self._by = by

    @property
    def address(self) -> str:
        return f"{JOBS}{self._endpoint.name}"

    async def deliver(self, run: Run) -> Ending:
        self.received = await self._receiver.receive(
            self._endpoint, run.params, key=run.execution.id, deadline=self._deadline, by=self._by
        )
        if isinstance(self.received, Reply):
            return ending_of(Answer(self.received.status, self.received.body))
        return Ending(status=Status.SKIPPED, reason=reasons.OVERLAP_BUSY())
