#!/bin/bash
# A store is upgraded when a newer version opens it; processes of the older one that had it open go on. They know leases
# and waiters, but not the runs that these belong to: here Python does what they do.
. "$(dirname "$0")/lib.sh" || exit 1

# older SQL...: in one transaction.
older() {
    "$python" - "$INTERLOCK_STORE" "$@" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
db.execute("BEGIN IMMEDIATE")
for sql in sys.argv[2:]:
    assert db.execute(sql).rowcount == 1, sql
db.execute("COMMIT")
END
}
# states KEY: of its runs, newest first.
states() {
    "$il" runs --key "$1" --json | "$python" -c 'import json,sys; print(*(i["state"] for i in json.load(sys.stdin)["items"]))'
}

# A lease that is over is deleted, and its run is not ended.
hold dead a --record --ttl 1s --grace 100ms
kill -KILL "${pids[dead]}"
reap dead 2>/dev/null
older "DELETE FROM il_lease WHERE key = 'a'"
is "a run without its lease is shown as it ends" "$(states a)" FAILED
gives "... and the next one starts" 0 "$il" run --record a -- true
is "... after its end" "$(states a)" "COMPLETED FAILED"

# A waiter that is silent is deleted, and its run is not ended.
hold first b --record
bg second "$il" run --record --on-conflict queue b -- true
await "a run that waits" sh -c "'$il' locks --waiters b --json | grep -q ticket"
kill -KILL "${pids[second]}"
reap second 2>/dev/null
older "DELETE FROM il_waiter WHERE key = 'b'"
let_go first
gives "a run that waited and is gone is in nobody's way" 0 "$il" run --record b -- true
is "... it has failed" "$(states b)" "COMPLETED FAILED COMPLETED"

# The key is given on, without a word about the run.
hold holder c
bg waiter "$il" run --record --on-conflict queue c -- echo its turn
await "a run that waits" sh -c "'$il' locks --waiters c --json | grep -q ticket"
older "UPDATE il_state SET fence = fence + 1" \
    "INSERT INTO il_lease (tenant, key, fence, holder, root, mode, permits, state, ttl_ms, settle_ms, granted_ms, renewed_ms,
                           expires_ms, meta, place, reason)
     SELECT w.tenant, w.key, s.fence, w.holder, w.root, w.mode, w.permits, 2, w.ttl_ms, w.settle_ms, l.renewed_ms,
            l.renewed_ms, l.expires_ms, w.meta, w.place, ''
       FROM il_waiter w JOIN il_lease l USING (tenant, key) JOIN il_state s WHERE w.key = 'c'" \
    "DELETE FROM il_waiter WHERE key = 'c'" \
    "DELETE FROM il_lease WHERE key = 'c' AND state = 3"
reap waiter
is "a run that was given the key by an older process" "$status $(cat waiter.out)" "0 its turn"
is "... is complete" "$(states c)" COMPLETED
kill -KILL "${pids[holder]}"
reap holder 2>/dev/null
finish
