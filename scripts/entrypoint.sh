#!/bin/sh
# One image for every service: RUN_MODE selects the role of this process.
set -eu

refuse() {
    roles='api, scheduler, worker, telegram, all'
    if [ "${BATUTA_LANG:-}" = en ]; then
        printf '%s: set RUN_MODE to one of %s.\n' "$1" "$roles" >&2
    else
        printf '%s: defina RUN_MODE como um de %s.\n' "$2" "$roles" >&2
    fi
    exit 2
}

case "${RUN_MODE:-}" in
    api | scheduler | worker | telegram) role=$RUN_MODE ;;
    all) role=up ;;
    '') refuse 'RUN_MODE is not set' 'RUN_MODE não está definido' ;;
    *) refuse "RUN_MODE cannot be '$RUN_MODE'" "RUN_MODE não pode ser '$RUN_MODE'" ;;
esac

# Production is the default, because it refuses access that an operator has not configured.
APP_ENV=${APP_ENV:-production}
export APP_ENV

# exec, so that signals for an orderly end reach the role instead of a shell.
if command -v batuta >/dev/null 2>&1; then
    exec batuta "$role" "$@"
fi
exec python -m batuta "$role" "$@"
