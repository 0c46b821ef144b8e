# Two images from one file: `server` without torch, `runner` with it. What is installed is pinned by constraints.txt.
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS build
WORKDIR /source
RUN python -m venv /opt/bench
COPY constraints.txt pyproject.toml README.md ./
COPY suites suites
COPY harness harness
COPY server server
COPY dashboards dashboards
COPY configs configs
COPY bench bench
RUN /opt/bench/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt '.[postgres]'

FROM build AS build-runner
RUN /opt/bench/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt '.[run]'

FROM ${PYTHON} AS base
ENV PATH=/opt/bench/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin bench
WORKDIR /tmp

FROM base AS runner
# inductor compiles C++ on the CPU, and its kernels' launchers for a GPU.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build-runner /opt/bench /opt/bench
# Journals: they survive the container.
RUN install -d -o bench -g bench /data
WORKDIR /data
USER bench
CMD ["bench", "doctor"]

# The last one is what a build without a target makes.
FROM base AS server
COPY --from=build /opt/bench /opt/bench
USER bench
EXPOSE 8000
CMD ["bench", "serve", "--host", "0.0.0.0", "--public-read"]
