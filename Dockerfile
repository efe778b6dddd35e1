# One image for the service, for its workers and for their store. Without REDIS_URL the service runs a store of its own in
# /data. What changes seldom comes first: the store, then the packages, then our own code.

# Any Debian from 13 (trixie) on with Python 3.11 to 3.13.
ARG BASE=python:3.13-slim

FROM ${BASE} AS dependencies
RUN apt-get update && apt-get install --yes --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
# Two environments, so that the second, which goes into the image, has nothing of what builds.
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/bochner
# By themselves: what else changes does not make their layer anew.
COPY docker/build.lock docker/requirements.lock docker/slim.py /source/
WORKDIR /source
ENV PIP_NO_CACHE_DIR=1
# Where the builder's pip has settings of its own (an index, a certificate), they are passed as a secret and stay outside.
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=certificates,target=/run/certificates \
    locked="--no-deps --only-binary=:all: --require-hashes --requirement" \
    && /opt/build/bin/pip install $locked build.lock \
    && /opt/build/bin/pip --python /opt/bochner/bin/python install $locked requirements.lock \
    && python3 slim.py /opt/bochner

FROM dependencies AS test
COPY . /source
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=certificates,target=/run/certificates \
    /opt/build/bin/pip --python /opt/bochner/bin/python install --editable '.[test]'
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
COPY openapi/parameters.json /source/openapi/parameters.json
RUN /opt/build/bin/pip wheel --no-index --no-deps --no-build-isolation --wheel-dir /opt/wheels /source /source/client \
    && /opt/build/bin/pip --python /opt/bochner/bin/python install --no-index --no-deps --target /opt/service /opt/wheels/*
# Which Python packages the image has, in a form that scanners read. They find Debian's by themselves.
RUN PYTHONPATH=/opt/service /opt/build/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
    --output-file /opt/sbom.cdx.json /opt/bochner/bin/python
# Compile the loops once, here, where the slimmed packages have to work too. The compiler keeps its results beside its
# cache's owner, so they are made in a directory of their own, which the entrypoint copies to where a container may write.
# It is keyed by the processor, which docker/processor.sh names, and by the place of the sources, so that the copy of them
# that is here must not be found first. A builder without AVX-512 leaves the loops for it to the first start.
COPY docker/processor.sh /opt/service/
WORKDIR /opt
RUN . /opt/service/processor.sh && export PYTHONPATH=/opt/service NUMBA_CACHE_DIR=/opt/service/compiled \
    && for processor in $(processors | grep . || echo own); do \
        choose_processor $processor && /opt/bochner/bin/python -m app.services.warm_up || exit 1; \
    done

FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends curl valkey-server && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 bochner && useradd --uid 10001 --gid 10001 --no-create-home bochner \
    && install -d -o 10001 -g 10001 -m 700 /data
# In front of the program of this name, so that `docker exec … bochner keys` too knows where the store is.
COPY docker/entrypoint.sh /usr/local/bin/bochner
COPY docker/redis.conf docker/users.acl /etc/bochner/
COPY --from=dependencies /opt/bochner /opt/bochner
COPY --from=service /opt/service /opt/service
COPY --from=service /opt/sbom.cdx.json /usr/share/doc/bochner/
ENV PATH=/opt/bochner/bin:$PATH \
    PYTHONPATH=/opt/service \
    PYTHONUNBUFFERED=1 \
    BOCHNER_HOST=0.0.0.0 \
    BOCHNER_DATA_DIR=/data
LABEL org.opencontainers.image.title="Bochner" \
    org.opencontainers.image.description="A REST microservice that turns vectors into kernel features and hash codes" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="0.2.0"
# By number, so that whoever runs it can tell that it is not root.
USER 10001:10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["bochner", "service-is-ready"]
ENTRYPOINT ["bochner"]
CMD ["serve"]
