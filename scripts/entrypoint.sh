#!/bin/sh
# One image for every service: RUN_MODE selects the role of this process.
set -eu

refuse() {
    printf '%s: set RUN_MODE to one of api, scheduler, worker, telegram, all.\n' "$1" >&2
    exit 2
}

case "${RUN_MODE:-}" in
    api | scheduler | worker | telegram) role=$RUN_MODE ;;
    all) role=up ;;
    '') refuse 'RUN_MODE is not set' ;;
    *) refuse "RUN_MODE cannot be '$RUN_MODE'" ;;
esac

# exec, so that signals for an orderly end reach the role instead of a shell.
if command -v batuta >/dev/null 2>&1; then
    exec batuta "$role" "$@"
fi
exec python -m batuta "$role" "$@"
