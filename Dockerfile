# One image for the service; without REDIS_URL it runs on its embedded store in /data.
FROM python:3.13-slim AS build
RUN python -m venv /opt/bochner
COPY pyproject.toml README.md LICENSE /source/
COPY app /source/app
COPY openapi/examples /source/openapi/examples
RUN /opt/bochner/bin/pip install --no-cache-dir /source
# Compile the hashing loops once, here. The compiler keeps its results beside its cache's owner, so they are made in a
# directory of their own, which the entrypoint copies to where a container may write. They are for the processor that
# builds the image; the cache is keyed by it, and others compile for themselves.
RUN NUMBA_CACHE_DIR=/opt/bochner/compiled /opt/bochner/bin/python -m app.services.warm_up

FROM build AS test
COPY . /source
WORKDIR /source
RUN /opt/bochner/bin/pip install --no-cache-dir -e '.[test]'
RUN useradd --create-home tester && chown -R tester /source
USER tester
CMD ["/opt/bochner/bin/python", "-m", "pytest"]

FROM python:3.13-slim
RUN useradd --system --uid 10001 bochner && install -d -o bochner -g bochner -m 700 /data
COPY --from=build /opt/bochner /opt/bochner
COPY docker/entrypoint.sh /usr/local/bin/entrypoint.sh
ENV PATH=/opt/bochner/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    BOCHNER_HOST=0.0.0.0 \
    BOCHNER_DATA_DIR=/data
USER bochner
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('BOCHNER_PORT', '8000') + '/health/ready')"]
ENTRYPOINT ["entrypoint.sh"]
CMD ["serve"]
