#!/bin/bash
# Runs of ingestions that another process has created: one that waits for room on a server is left
# alone, one that nobody executes is taken over; a signal ends only what this process executes.
. "$(dirname "$0")/lib.sh" || exit 1
export INTERLOCK_INGEST_REQUEST_DELAY_MS=0

# Prefixes a command: a slot that is new was created long ago. (AddressSanitizer wants to be the first
# library otherwise.)
later=(env "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0" "LD_PRELOAD=${IL_TEST_WALL_CLOCK:?}" WALL_CLOCK_SHIFT=20)

# The newest run of an event of the site that is live.
live() {
    "$il" runs --json --key "ingest:liverc:$1" | py -c '
import json, sys
live = [r for r in json.load(sys.stdin)["items"] if r["state"] in ("PENDING", "RUNNING")]
print(live[0]["id"] if live else "")'
}
state_of() {
    "$il" runs --json "$1" | py -c 'import json, sys; print(json.load(sys.stdin)["status"])'
}
has_state() { [ "$(state_of "$1")" = "$2" ]; }
is_waiting() { "$il" ingest status | grep -q await_event_lock; }

bg site "$il" demo-site --listen 127.0.0.1:0 --entries 4 --races 1 --laps 3
await "the site is up" test -s site.out
INTERLOCK_LIVERC_URL="$(head -1 site.out)/{slug}"
export INTERLOCK_LIVERC_URL
gives "an event" 0 "$il" ingest source 100000 --track hilltoprc --event-id first
gives "another one" 0 "$il" ingest source 100001 --track hilltoprc --event-id second
hold first event:first
hold second event:second

# A server with room for one run.
socket=$work/socket
key=$("$il" key create --tenant default --json | py -c 'import json, sys; print(json.load(sys.stdin)["key"])')
INTERLOCK_INGEST_CONCURRENCY=1 "$il" serve --allow-root --log-level error --listen "unix:$socket" >"$work/server.log" 2>&1 </dev/null &
server_pid=$!
await "the server listens" test -S "$socket" || cat "$work/server.log"
through() { env -u INTERLOCK_STORE INTERLOCK_API_KEY="$key" "$il" --server "http+unix:$socket" "$@"; }
gives "a run of the server" 0 through ingest event first --wait --detach
running=$out
await "it waits for the event" is_waiting
gives "a run that waits for room there" 0 through ingest event second --detach
queued=$out
gives "a second trigger, on the store" 75 "${later[@]}" "$il" ingest event second
like "... names the run" "$err" "*is already running: run $queued, for * s, waiting to be executed (ingestion_running)"
is "... which still waits" "$(state_of "$queued")" PENDING
gives "cancel it" 0 "$il" cancel "$queued" --reason over
gives "and the other one" 0 "$il" cancel "$running" --reason over
kill "$server_pid"
wait "$server_pid"
unset server_pid

# A command with room for one run dies, and leaves one behind.
bg dead env INTERLOCK_INGEST_CONCURRENCY=1 "$il" ingest recent --days 3650 --track hilltoprc --wait
await "it waits for an event" is_waiting
kill -KILL "${pids[dead]}"
reap dead
first=$(live 100000)
second=$(live 100001)
if has_state "$first" PENDING; then
    left=$first
    running=$second
else
    left=$second
    running=$first
fi
is "... a run was left behind" "$(state_of "$left")" PENDING
bg taker "${later[@]}" "$il" ingest recent --days 3650 --track hilltoprc --wait
await "another command executes it" has_state "$left" RUNNING
kill -INT "${pids[taker]}"
reap taker
is "... until it is interrupted" "$status" 130
is "... and has then cancelled it" "$(state_of "$left")" CANCELLED
is "... as it says" "$(grep -c "interrupted.*$left" taker.err)" 0
if has_state "$running" CANCELLED; then # (it may have ended with its lease)
    fail "... not the run of the dead command"
else
    pass "... not the run of the dead command"
fi
let_go first
let_go second
finish
