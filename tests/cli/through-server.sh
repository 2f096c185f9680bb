# shellcheck shell=bash
# through-server.sh: the same tests with commands that access the store through a server; sourced by
# lib.sh if IL_TEST_THROUGH_SERVER is set.
#
# $INTERLOCK_STORE stays a shell variable, for tests that inspect the file; the commands see
# $INTERLOCK_SERVER.
# shellcheck disable=SC2154
export -n INTERLOCK_STORE
INTERLOCK_API_KEY=$("$il" key create --store "$INTERLOCK_STORE" --tenant default --admin --json |
    py -c 'import json, sys; print(json.load(sys.stdin)["key"])') || exit 1
export INTERLOCK_API_KEY INTERLOCK_SERVER=http+unix:$work/http.sock
env -u INTERLOCK_SERVER -u INTERLOCK_API_KEY "$il" serve --allow-root --log-level error --store "$INTERLOCK_STORE" \
    --listen "unix:$work/http.sock" >"$work/server.log" 2>&1 </dev/null &
server_pid=$!
disown "$server_pid"
until [ -S "$work/http.sock" ]; do
    kill -0 "$server_pid" 2>/dev/null || { cat "$work/server.log" >&2; exit 1; }
    sleep 0.02
done
