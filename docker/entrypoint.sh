#!/bin/sh
# Every command of `bochner`, and three of the image: `store` runs the store of a composed service, `store-is-ready` and
# `service-is-ready` are for those who watch the containers.
set -eu

# The address of the store has its password, so that it may come in a file instead of the environment.
if [ -n "${REDIS_URL_FILE:-}" ]; then
    REDIS_URL=$(cat "$REDIS_URL_FILE")
    export REDIS_URL
fi

case "${1:-}" in
store)
    # Whoever has the address gets in, as `bochner`, by its password (letters and digits), of which the store has a hash.
    password=${REDIS_URL#*://bochner:}
    hash=$(printf %s "${password%%@*}" | sha256sum)
    unset REDIS_URL password
    umask 077
    sed "s/SHA256/${hash%% *}/" /etc/bochner/users.acl > /tmp/users.acl
    shift
    exec valkey-server /etc/bochner/redis.conf --aclfile /tmp/users.acl "$@"
    ;;
store-is-ready)
    # Here, whatever its name is outside: it may not have that before it is ready.
    password=${REDIS_URL#*://bochner:}
    export REDISCLI_AUTH="${password%%@*}"
    tls=
    case "$REDIS_URL" in rediss://*) tls="--tls --insecure" ;; esac
    exec timeout 4 valkey-cli -e $tls --user bochner ping
    ;;
service-is-ready)
    scheme=http${BOCHNER_TLS_CERTIFICATE:+s}
    # Its certificate has the name that it goes by outside.
    url="$scheme://localhost:${BOCHNER_PORT:-8000}/health/ready"
    exec curl --silent --show-error --fail-with-body --max-time 4 --noproxy '*' --insecure "$url"
    ;;
esac

# The root file system may be read-only: what was compiled for the image goes where this container may write. Where nothing
# can be written, and on a processor that docker/processor.sh does not name, loops are compiled at the start.
. /opt/service/processor.sh
[ -n "${NUMBA_CPU_NAME:-}" ] || choose_processor "$(processors | tail -n 1)"
export NUMBA_CACHE_DIR="${NUMBA_CACHE_DIR:-/tmp/bochner-compiled}"
[ -d "$NUMBA_CACHE_DIR" ] || cp -r /opt/service/compiled "$NUMBA_CACHE_DIR" || echo "loops are compiled anew" >&2
exec /opt/service/bin/bochner "$@"
