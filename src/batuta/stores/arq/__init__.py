"""Runs tasks with ARQ. The database is the source of truth; Redis only carries calls to the ARQ workers."""

from typing import Final

# Name of the loop that runs next to an ARQ worker. Health concludes from its heartbeat that ARQ runs calls. Defined
# here, so that the name can be imported without the client library.
ARQ_RUNNER: Final = "arq-runner"
