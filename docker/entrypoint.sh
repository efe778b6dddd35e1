#!/bin/sh
# The root file system may be read-only: what was compiled for the image goes where this container may write.
set -eu
export NUMBA_CACHE_DIR="${NUMBA_CACHE_DIR:-/tmp/bochner-compiled}"
[ -d "$NUMBA_CACHE_DIR" ] || cp -r /opt/bochner/compiled "$NUMBA_CACHE_DIR"
exec bochner "$@"
