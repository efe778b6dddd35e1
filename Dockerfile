# One image for the service, for its workers and for their store. Without REDIS_URL the service runs a store of its own in
# /data. What changes seldom comes first: the store, then the packages, then our own code.

# Any Debian from 13 (trixie) on with Python 3.11 to 3.13.
ARG BASE=python:3.13-slim

# The packages by themselves: what else stands in pyproject.toml may change without their layer being made anew.
FROM ${BASE} AS wanted
COPY pyproject.toml docker/dependencies.py /source/
WORKDIR /source
# Extras that are wanted too, such as otel.
ARG EXTRAS=
RUN python3 dependencies.py $EXTRAS > requirements.txt

FROM ${BASE} AS dependencies
RUN apt-get update && apt-get install --yes --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
# Two environments, so that the second, which goes into the image, need not have pip.
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/bochner
COPY --from=wanted /source/requirements.txt /source/
COPY docker/slim.py /source/
WORKDIR /source
# Where the builder's pip has settings of its own (an index, a certificate), they are passed as a secret and stay outside.
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=certificates,target=/run/certificates \
    /opt/pip/bin/pip --python /opt/bochner/bin/python install --no-cache-dir --requirement requirements.txt \
    && python3 slim.py /opt/bochner

FROM dependencies AS test
COPY . /source
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=certificates,target=/run/certificates \
    /opt/pip/bin/pip --python /opt/bochner/bin/python install --no-cache-dir --editable '.[test]'
RUN useradd --create-home tester && chown -R tester /source
USER tester
CMD ["/opt/bochner/bin/python", "-m", "pytest"]

FROM dependencies AS service
COPY pyproject.toml README.md LICENSE /source/
COPY app /source/app
COPY bochner /source/bochner
COPY client /source/client
COPY openapi/examples /source/openapi/examples
COPY openapi/answers /source/openapi/answers
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=certificates,target=/run/certificates \
    /opt/pip/bin/pip --python /opt/bochner/bin/python install --no-cache-dir --no-deps --target /opt/service /source /source/client
# Compile the loops once, here, where the slimmed packages have to work too. The compiler keeps its results beside its
# cache's owner, so they are made in a directory of their own, which the entrypoint copies to where a container may write.
# They are for the processor that builds the image; the cache is keyed by it, and others compile for themselves. It is keyed
# by the place of the sources too, so that the copy of them that is here must not be found first.
WORKDIR /opt
RUN PYTHONPATH=/opt/service NUMBA_CACHE_DIR=/opt/service/compiled /opt/bochner/bin/python -m app.services.warm_up

FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends valkey-server && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 bochner && useradd --uid 10001 --gid 10001 --no-create-home bochner \
    && install -d -o 10001 -g 10001 -m 700 /data
# In front of the program of this name, so that `docker exec … bochner keys` too knows where the store is.
COPY docker/entrypoint.sh /usr/local/bin/bochner
COPY docker/redis.conf docker/users.acl /etc/bochner/
COPY --from=dependencies /opt/bochner /opt/bochner
COPY --from=service /opt/service /opt/service
ENV PATH=/opt/bochner/bin:$PATH \
    PYTHONPATH=/opt/service \
    PYTHONUNBUFFERED=1 \
    BOCHNER_HOST=0.0.0.0 \
    BOCHNER_DATA_DIR=/data
# By number, so that whoever runs it can tell that it is not root.
USER 10001:10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["bochner", "service-is-ready"]
ENTRYPOINT ["bochner"]
CMD ["serve"]
