#!/bin/bash
# Another program keeps the store locked for longer than INTERLOCK_STORE_TIMEOUT when a command
# ends: the result is stored later, and nothing is done twice.
. "$(dirname "$0")/lib.sh" || exit 1
export INTERLOCK_STORE_TIMEOUT=200ms

# ends_locked NAME COMMAND...: COMMAND starts $work/job, which ends while the store is locked. $status is that of COMMAND.
cat >job <<'END'
echo effect >>"$1.effects"
echo up >"$1.up"
until [ -e "$1.go" ]; do sleep 0.02; done
END
ends_locked() {
    local name=$1
    shift
    bg "$name" "$@" -- sh "$work/job" "$name"
    await "$name runs" test -s "$name.up"
    bg "$name-lock" "$python" -IS -c 'if True:
        import sqlite3, sys, time
        db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
        db.execute("BEGIN IMMEDIATE")
        open(sys.argv[2] + ".go", "w").close()
        time.sleep(1.5)
        db.execute("ROLLBACK")' "$INTERLOCK_STORE" "$name"
    reap "$name-lock"
    is "$name: the store was locked" "$status" 0
    reap "$name"
}

ends_locked o "$il" once k
is "once" "$status" 0
gives "... has kept the answer" 0 "$il" once k -- sh "$work/job" o
is "... and one effect" "$(cat o.effects)" effect

"$il" queue push q x >/dev/null
ends_locked w "$il" queue work q --once
is "queue work" "$status" 0
run "$il" queue list q --json
json "... has finished the job" "[(i['state'], i['attempt']) for i in d['items']] == [('COMPLETED', 1)]"

"$il" queue push q y >/dev/null
"$il" queue set q --backoff 1h --backoff-max 1h >/dev/null
sed -i '$a exit 3' job
ends_locked f "$il" queue work q --once
is "a job that fails" "$status" 1
run "$il" queue list q --json --state scheduled
json "... has failed once" "[(i['attempt'], i['error']) for i in d['items']] == [(1, 'exit status 3')]"

ends_locked r "$il" run --record k
is "run --record" "$status" 3
run "$il" runs --json
json "... is recorded as it ended" "[(i['state'], i['error']) for i in d['items']] == [('FAILED', 'exit status 3')]"
gives "... and the key is free" 0 "$il" run k -- true

ends_locked l "$il" run k
is "run" "$status $(cat l.err)" "3 "
gives "... has released the key" 0 "$il" run k -- true

# A store that is gone is not asked again, for as long as the lease lives.
for hold in "run k --ttl" "run k --record --ttl" "once o --lease"; do
    [ "$hold" = "once o --lease" ] && expected=69 || expected=0 # an answer that is not kept is a failure
    # shellcheck disable=SC2086  # words of a command
    gives "$hold on a store that is deleted" "$expected" timeout -k 1 "$limit" "$il" --store "$work/gone.db" \
        $hold 1h -- sh -c 'rm -f "$0"*' "$work/gone.db"
    like "... says so" "$err" "*deleted or replaced*"
done

# Locked when a worker looks for jobs.
bg lock "$python" -IS -c 'if True:
    import os, sqlite3, sys, time
    db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
    db.execute("BEGIN IMMEDIATE")
    open("locked", "w").close()
    while os.path.exists("locked"): time.sleep(0.02)
    db.execute("ROLLBACK")' "$INTERLOCK_STORE"
await "the store is locked" test -e locked
error "--drain does not wait for the store" 69 "q: *locked*" timeout -k 1 "$limit" "$il" queue work q --drain -- true
error "--once, too" 69 "q: *locked*" timeout -k 1 "$limit" "$il" queue work q --once -- true
bg w "$il" queue work q -- touch worked
await "a worker that stays says so" test -s w.err
sleep 2 # time for more tries: that something is not said again takes time
rm locked
reap lock
is "... once" "$(wc -l <w.err)" 1
"$il" queue push q z >/dev/null
await "... and goes on when it can" test -e worked
kill -TERM "${pids[w]}"
reap w
is "... as if nothing had been" "$status" 0
finish
