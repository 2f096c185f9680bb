#!/bin/bash
# A lease that is lost: the command is stopped and the status is 76.
. "$(dirname "$0")/lib.sh" || exit 1

hold a k1 --grace 1s
gives "break" 0 "$il" break k1 --reason "needed elsewhere"
reap a
is "76: it was broken" "$status" 76
like "... and that is said" "$(cat a.err)" "interlock: k1: lease *"
is "... in one line" "$(wc -l <a.err)" 1
check "the command is gone" test ! -e "/proc/$command_pid"
gives "and the key is free" 0 "$il" run k1 -- true

hold b k2 --grace 1s
gives "break --now" 0 "$il" break --now k2 --reason "at once"
reap b
is "76 too" "$status" 76

hold c k3 --grace 1s --json -q
gives "break" 0 "$il" break k3 --reason x
reap c
tail -n 1 c.err >"$work/out"
json "--json says lost" "d['outcome'] == 'lost' and d['exit_status'] == 76"

# A command that is deaf to TERM gets the grace, not more, and the key is closed meanwhile.
mkfifo deaf.up
bg deaf "$il" run --ttl 3s --grace 800ms k4 -- sh -c 'trap "" TERM; echo $$ >deaf.up; exec sleep 300'
read -r -t "$limit" deaf_pid <>deaf.up
gives "break" 0 "$il" break k4 --reason x
error "closed until it is gone" 75 "k4 is held by*" "$il" run k4 -- true
run "$il" why k4 --json
json "why says closing" "d['state'] == 'closing'"
reap deaf
is "76 after the KILL" "$status" 76
check "it is gone" test ! -e "/proc/$deaf_pid"
gives "free at once" 0 "$il" run k4 -- true

# The store goes away: the lease cannot be renewed, and the command ends before it could pass on.
hold s k5 --ttl 1500ms --grace 300ms
start_ns=$(date +%s%N)
"$python" -IS - "$work/x.db-lock" "$work/locked" "$work/unlock" <<'END' &
import fcntl, os, sys, time
lock = open(sys.argv[1], "r+")
fcntl.flock(lock, fcntl.LOCK_EX)
open(sys.argv[2], "w").close()
until = time.monotonic() + 60
while not os.path.exists(sys.argv[3]) and time.monotonic() < until:
    time.sleep(0.02)
END
locker=$!
await "locked" test -e locked
await "the command ends" test ! -e "/proc/$command_pid"
took_ms=$((($(date +%s%N) - start_ns) / 1000000))
check "the store cannot be reached: the command ends (after $took_ms ms, of a ttl of 1500)" test $took_ms -le 4500
export INTERLOCK_STORE_TIMEOUT=200ms
start=$SECONDS
error "69: the store is busy" 69 "*x.db: *200 ms*" "$il" run k6 -- touch ran
check "... after \$INTERLOCK_STORE_TIMEOUT" test $((SECONDS - start)) -le 4
unset INTERLOCK_STORE_TIMEOUT
gives "looking goes on" 0 "$il" locks
touch unlock
wait $locker
reap s
is "76: the wrapper says so" "$status" 76
like "... and why" "$(cat s.err)" "interlock: k5: lease *"
check "nothing was run" test ! -e ran
gives "and all is well again" 0 "$il" run k6 -- true

# --grace is at most a third of the ttl.
error "--grace of more than a third" 64 "run: --grace 5s is more than a third of the TTL of 9s" \
    "$il" run --ttl 9s --grace 5s k -- touch ran
gives "one from the configuration is cut" 0 env INTERLOCK_GRACE=5s "$il" run --ttl 2s k -- true
gives "--grace 0" 0 "$il" run --grace 0 k -- true
# A key stays closed for a while after an unclean end, when asked for.
hold z k7 --ttl 1s --grace 100ms --settle 2s
kill -KILL "${pids[z]}"
reap z 2>/dev/null
is "killed" "$status" 137
closing() { "$il" why --json k7 | grep -q '"closing"'; }
await "closing" closing && pass "--settle: closed after an unclean end"
free() { "$il" why --json k7 | grep -q '"free"'; }
await "free" free && pass "... and free in the end"
finish
