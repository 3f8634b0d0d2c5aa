#!/usr/bin/env bash
# Shows the curves of a directory; called by make with LOGDIR and PORT.
set -euo pipefail
logdir="$1" port="$2"

fail() { echo "error: $1" >&2; exit 2; }

[ -d "$logdir" ] || fail "is not a directory: LOGDIR=$logdir: name one that a run has written"
[[ "$port" =~ ^[0-9]+$ ]] && [ "$port" -lt 65536 ] || fail "is no port: PORT=$port: choose 1024 to 65535"
if [ "$port" != 0 ] && (exec 3<>"/dev/tcp/localhost/$port") 2>/dev/null; then
  fail "is in use: PORT=$port: choose another, e.g. make tensorboard PORT=$((port % 65535 + 1))"
fi
exec .venv/bin/python -m tensorboard.main --logdir "$logdir" --port "$port"
