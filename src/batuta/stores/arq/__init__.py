"""Tasks on ARQ: the database is the source of truth; Redis carries calls to the ARQ workers."""

from typing import Final

# Loop next to an ARQ worker; its heartbeat tells health that calls run. Defined here to import no client library.
ARQ_RUNNER: Final = "arq-runner"
