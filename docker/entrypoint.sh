#!/bin/sh
# The root file system may be read-only: what was compiled for the image goes where this container may write. It holds for
# processors like the builder's; on another kind the loops are compiled at the first start, some 10 s before the service
# is ready. So they are, at every start, where nothing can be written.
set -eu
export NUMBA_CACHE_DIR="${NUMBA_CACHE_DIR:-/tmp/bochner-compiled}"
[ -d "$NUMBA_CACHE_DIR" ] || cp -r /opt/bochner/compiled "$NUMBA_CACHE_DIR" || echo "loops are compiled anew" >&2
exec bochner "$@"
