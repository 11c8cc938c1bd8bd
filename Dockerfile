# The HTTP service as an image: non-root, with a read-only file system, and it says whether it lives.
#   docker build -t rebalance-lab .
#   docker run --read-only -p 127.0.0.1:8000:8000 rebalance-lab --allow-anonymous                 # for this machine alone
#   docker run --read-only -p 8000:8000 -v ./service.toml:/service.toml:ro rebalance-lab --config /service.toml --allowed-host lab.example
# Other machines come by a name that the service does not know: --allowed-host says which, or allowed_hosts in the settings.
# By its full version. Where a registry can be asked, name a digest: --build-arg PYTHON=python:3.13.7-slim-bookworm@sha256:...
ARG PYTHON=python:3.13.7-slim-bookworm
FROM ${PYTHON} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY rebalance_lab rebalance_lab
COPY assignors assignors
COPY protocol_v1 protocol_v1
COPY protocol_v2 protocol_v2
COPY harness harness
COPY spark_eval spark_eval
COPY api api
# What the locked set says, checked by hash. It brings what builds the package, too.
COPY requirements/service.lock requirements/service.lock
RUN python -m venv /opt/lab \
    && /opt/lab/bin/pip install --no-cache-dir --require-hashes --requirement requirements/service.lock \
    && /opt/lab/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${PYTHON}
COPY --from=build /opt/lab /opt/lab
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin lab
# The service writes no files; its processes meet over a socket, which needs a place in memory.
ENV PATH=/opt/lab/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 TMPDIR=/dev/shm
USER 10001:10001
WORKDIR /
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["rebalance-lab", "serve", "--host", "0.0.0.0", "--port", "8000"]
