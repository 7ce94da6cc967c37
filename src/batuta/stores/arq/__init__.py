"""Runs tasks with ARQ. The database remains the source of truth; Redis only carries calls to the ARQ workers."""

from typing import Final

# Name of the loop that runs beside an ARQ worker. The health check looks for its heartbeat to find out whether ARQ runs
# calls. Defined here, so that importing the name does not import the client library.
ARQ_RUNNER: Final = "arq-runner"
