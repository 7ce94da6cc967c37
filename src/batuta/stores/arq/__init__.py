"""Tasks on ARQ: the database stays their truth, Redis carries them to the workers that run them."""

from typing import Final

# The loop beside an ARQ worker: health sees by its heartbeat that calls are run. Defined here, where no client library is loaded.
ARQ_RUNNER: Final = "arq-runner"
