# The same image runs every part: `docker run arbor worker --queues heartbeat`, `… scheduler`, `… web`, `… api`, `… flower`.
FROM python:3.13-slim AS build
WORKDIR /build
COPY requirements-runtime.lock .
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: -r requirements-runtime.lock

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin arbor \
    && install -d -o arbor -g arbor /data
COPY --from=build /venv /venv
WORKDIR /app
COPY arbor ./arbor
COPY apps ./apps
COPY workers ./workers
COPY config ./config
ENV PATH=/venv/bin:$PATH PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    OPENBLAS_NUM_THREADS=1 MALLOC_ARENA_MAX=2 \
    ARBOR_DATA_DIR=/data ARBOR_LOG_FORMAT=json ARBOR_READY_FILE=/tmp/arbor.ready
# For `docker compose exec web arbor …`.
RUN printf '#!/bin/sh\nexec python -m config.cli "$@"\n' > /usr/local/bin/arbor && chmod 755 /usr/local/bin/arbor
USER arbor
VOLUME /data
ENTRYPOINT ["arbor"]
CMD ["--help"]
