#!/bin/bash
# ingest event, source, tracks, events, recent, status: on a store, in the foreground; through a
# server, followed or detached.
. "$(dirname "$0")/lib.sh" || exit 1
export INTERLOCK_INGEST_REQUEST_DELAY_MS=0

bg site "$il" demo-site --listen 127.0.0.1:0 --entries 8 --races 3 --laps 5
await "the site is up" test -s site.out
INTERLOCK_LIVERC_URL="$(head -1 site.out)/{slug}"
export INTERLOCK_LIVERC_URL

gives "an event by its id at the site" 0 "$il" ingest source 100000 --track hilltoprc --event-id first
is "... what came of it" "${out%%,*}" "100000 updated: event first"
gives "the same by its own id" 0 "$il" ingest event first --json
json "... nothing new" "d['result']['status'] == 'already_complete' and d['event_id'] == 'first'"
json "... a timeline" "[t['stage'] for t in d['timeline']][:3] == ['fetch_event_page', 'fetch_entry_list', 'await_event_lock']"
run=$(printf %s "$out" | py -c 'import json, sys; print(json.load(sys.stdin)["job_id"])')
gives "--force" 0 "$il" ingest event first --force --json
json "... everything was read" "d['result']['status'] == 'updated' and d['result']['rows']['laps']['unchanged'] == d['result']['laps_ingested']"
gives "runs shows an ingestion" 0 "$il" runs "$run"
is "... with its stages" "$(printf '%s\n' "$out" | grep -c COMPLETED)" 8
gives "logs, too" 0 "$il" logs "$run"
is "... a line for each stage" "$(printf '%s\n' "$out" | LC_ALL=C grep -c '^== [a-z_]*: ')" 6
gives "tracks" 0 "$il" ingest tracks
is "... read" "$out" "tracks updated"
gives "events of a track" 0 "$il" ingest events --track hilltoprc --json
json "... read" "d['result']['events'] == 5 and d['status'] == 'COMPLETED'"
gives "recent events" 0 "$il" ingest recent --days 3650 --track hilltoprc
is "... each of them" "$(printf '%s\n' "$out" | wc -l)" 6
gives "status" 0 "$il" ingest status
is "... nothing runs" "$err" "interlock: no ingestion is running"
gives "... of everything" 0 "$il" ingest status --all --json
json "... a page of runs" "len(d['items']) == 11 and {i['state'] for i in d['items']} == {'COMPLETED'}"

gives "an event that is not known" 1 "$il" ingest event nothing
gives "an event that the site does not have" 1 "$il" ingest source 7 --track hilltoprc
is "... its code" "$(printf %s "$err" | grep -o 'CONNECTOR_HTTP_ERROR')" CONNECTOR_HTTP_ERROR
gives "no track" 64 "$il" ingest source 7
gives "a track that is none" 64 "$il" ingest source 7 --track ../x
gives "--detach without a server" 64 "$il" ingest tracks --detach

# Somebody holds the event.
hold other event:first
gives "a held event" 75 "$il" ingest event first --force
like "... who holds it, since when" "$err" "*held by * for *(ingestion_running)*"
bg waiter "$il" ingest event first --force --wait
is_waiting() { "$il" ingest status | grep -q await_event_lock; }
await "it waits" is_waiting
let_go other
reap waiter
is "--wait waits in line" "$status" 0

# The same through a server.
socket=$work/socket
key=$("$il" key create --tenant default --json | py -c 'import json, sys; print(json.load(sys.stdin)["key"])')
"$il" serve --allow-root --log-level error --listen "unix:$socket" >"$work/server.log" 2>&1 </dev/null &
server_pid=$!
await "the server listens" test -S "$socket" || cat "$work/server.log"
through() { env -u INTERLOCK_STORE INTERLOCK_API_KEY="$key" "$il" --server "http+unix:$socket" "$@"; }
gives "through a server" 0 through ingest source 100001 --track hilltoprc --json
json "... followed" "d['status'] == 'COMPLETED' and d['trigger_type'] == 'api'"
gives "--detach" 0 through ingest event first --detach
gives "... prints the job" 0 through ingest status "$out"
gives "recent events, too" 0 through ingest recent --days 3650 --track hilltoprc
gives "cancel of one that has ended" 0 through cancel "$run" --reason late
kill "$server_pid"
wait "$server_pid"
unset server_pid
finish
