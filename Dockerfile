# One image for every role: RUN_MODE picks which one a container is (scripts/entrypoint.sh).

FROM python:3.11-slim AS environment
RUN python -m venv /venv
COPY requirements.lock ./
RUN /venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-input --require-hashes -r requirements.lock
# The code is run from where it is copied, not installed: this is the command that finds it.
RUN printf '#!/bin/sh\nexec python -m batuta "$@"\n' > /venv/bin/batuta && chmod 755 /venv/bin/batuta

FROM python:3.11-slim
WORKDIR /srv/batuta
# The only folder the service may write to: SQLite's file lives here where no DATABASE_URL says otherwise.
RUN useradd --uid 10001 --no-create-home --home-dir /srv/batuta --shell /usr/sbin/nologin batuta \
    && install --directory --owner=batuta --group=batuta data
COPY --from=environment /venv /venv
COPY LICENSE pyproject.toml ./
COPY scripts/entrypoint.sh scripts/entrypoint.sh
COPY src src
COPY app app
# Started in development alone, so that the image can be tried whole with RUN_MODE=all and APP_ENV=development.
COPY simulador simulador

ENV PATH=/venv/bin:$PATH \
    PYTHONPATH=/srv/batuta/src:/srv/batuta \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    APP_ENV=production \
    HOST=0.0.0.0 \
    PORT=8000

# By number, so that a cluster can see that it is not root.
USER 10001:10001
EXPOSE 8000

# Only a role that serves HTTP can be asked; the others are not unhealthy for not answering. No proxy, whatever the
# environment says: the question never leaves the container.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD case "${RUN_MODE:-}" in \
        api | all) python -c "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:$PORT/health', timeout=4)" ;; \
    esac

ENTRYPOINT ["scripts/entrypoint.sh"]
