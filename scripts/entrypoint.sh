#!/bin/sh
# One image, every service: RUN_MODE picks the role this process becomes.
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

# exec, so that the signals that ask for an orderly end reach the role itself and not a shell.
if command -v batuta >/dev/null 2>&1; then
    exec batuta "$role" "$@"
fi
exec python -m batuta "$role" "$@"
