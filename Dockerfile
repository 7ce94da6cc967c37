# One image for every role: RUN_MODE selects the role of a container (scripts/entrypoint.sh).

# A release pins the base by its digest (scripts/pin_images.sh): docker build --build-arg PYTHON_IMAGE=python@sha256:…
ARG PYTHON_IMAGE=python:3.11.11-slim-bookworm
FROM ${PYTHON_IMAGE} AS environment
RUN python -m venv /venv
COPY requirements.lock ./
RUN /venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-input --require-hashes -r requirements.lock
# The code is copied, not installed; this command runs it from there.
RUN printf '#!/bin/sh\nexec python -m batuta "$@"\n' > /venv/bin/batuta && chmod 755 /venv/bin/batuta

FROM ${PYTHON_IMAGE}
WORKDIR /srv/batuta
# The only folder that the service may write to. Without DATABASE_URL, the SQLite file is stored here.
RUN useradd --uid 10001 --no-create-home --home-dir /srv/batuta --shell /usr/sbin/nologin batuta \
    && install --directory --owner=batuta --group=batuta data
COPY --from=environment /venv /venv
COPY LICENSE pyproject.toml ./
COPY scripts/entrypoint.sh scripts/entrypoint.sh
COPY src src
COPY app app
# Starts only in development, so that RUN_MODE=all with APP_ENV=development and HOST=127.0.0.1 tries the whole image.
COPY simulador simulador

ENV PATH=/venv/bin:$PATH \
    PYTHONPATH=/srv/batuta/src:/srv/batuta \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    APP_ENV=production \
    HOST=0.0.0.0 \
    PORT=8000

# A number instead of a name, so that a cluster can check that the user is not root.
USER 10001:10001
EXPOSE 8000

# Only roles that serve HTTP are checked; other roles count as healthy. The check ignores proxy settings, because the
# request stays inside the container.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD case "${RUN_MODE:-}" in \
        api | all) python -c "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:$PORT/health', timeout=4)" ;; \
    esac

ENTRYPOINT ["scripts/entrypoint.sh"]
