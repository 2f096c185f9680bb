#!/usr/bin/env bash
# lock, unlock: a key held for a shell script by a keeper: until it ends, unlocks, or loses it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export il

# held KEY: is it?
held() { [ "$("$il" locks --json "$1" | py -c 'import json,sys; print(len(json.load(sys.stdin)["items"]))')" != 0 ]; }
free() { ! held "$1"; }
# of_lease KEY FIELD: of its meta.
of_lease() {
    "$il" locks --json "$1" | py -c 'import json,sys; print(json.load(sys.stdin)["items"][0]["meta"][sys.argv[1]])' "$2"
}
# as_script TEXT: run it in a shell, which does not become its last command.
as_script() {
    bash -c "$1"$'\nexit'
}
# gone PID: no such process, or one that nobody has waited for.
gone() { [ ! -e "/proc/$1" ] || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }
# script NAME TEXT: a shell in the background that runs TEXT, then waits for `let_go NAME`.
script() {
    rm -f "$work/$1.up" "$work/$1.go"
    mkfifo "$work/$1.up" "$work/$1.go"
    bg "$1" bash -c "$2"'; exec 3<>"$1"; echo up >"$2"; read -r _ <&3; exit 7' - "$work/$1.go" "$work/$1.up"
    read -r -t "$limit" _ <>"$work/$1.up" || fail "$1 runs" "$(cat "$work/$1.err")"
}

each_engine() {
    # In a substitution: the keeper keeps nothing open, so that it returns.
    gives "$1: in one script" 0 as_script '
        fence=$("$il" lock k --pid $$) || exit 1
        echo "$fence"
        "$il" run k -- true; [ $? = 75 ] || exit 2
        "$il" unlock k || exit 3
        "$il" run k -- true || exit 4'
    like "... with a fence" "$out" "[1-9]*[0-9]"

    script a '"$il" lock k >/dev/null'
    check "$1: held while the script runs" held k
    is "... under its pid" "$(of_lease k pid)" "${pids[a]}"
    gives "... others are refused" 75 "$il" run k -- true
    error "... and told by whom" 75 "k is held by pid ${pids[a]} on * (bash -c *why k" as_script '"$il" lock k'
    bg waiter bash -c '"$il" lock k --wait 60s; exit'
    await "... or wait" waits_for k 1
    run "$il" locks --waiters k
    like "... seen with pid, host and command" "$out" "*pid ${pids[waiter]} on * (bash -c *"
    let_go a
    is "... the script ends as it likes" "$status" 7
    reap waiter
    is "... and the waiter gets it" "$status" 0
    await "... which has ended, too" free k

    script b 'trap "echo TERM; exit 9" TERM; "$il" lock k --ttl 3s >/dev/null'
    run "$il" break k --reason test
    reap b
    is "$1: a lost lease sends TERM to the script" "$status $(cat b.out)" "9 TERM"
    await "... and nothing is left" free k
}

each_engine sqlite
if [ -z "${IL_TEST_THROUGH_SERVER:-}" ]; then
    sqlite=$INTERLOCK_STORE
    postgres_store
    each_engine postgres
    bg server redis-server --port 0 --unixsocket "$work/redis.sock" --dir "$work" --save '' --appendonly no
    await "redis is up" redis-cli -s "$work/redis.sock" PING
    export INTERLOCK_STORE="redis+unix://$work/redis.sock"
    each_engine redis
    export INTERLOCK_STORE=$sqlite
fi

# The shell dies, or stops.
script c '"$il" lock k --ttl 3s >/dev/null'
keeper=$(of_lease k keeper)
kill -KILL "${pids[c]}"
reap c 2>/dev/null
await "a killed shell's lease is released" free k
await "... and its keeper ends" gone "$keeper"
script d '"$il" lock k --ttl 3s >/dev/null'
kill -STOP "${pids[d]}"
before=$("$il" why --json k | py -c 'import json,sys; print(json.load(sys.stdin)["leases"][0]["fence"])')
bg w "$il" run --wait 6s k -- true
reap w
is "a stopped shell keeps its lease" "$status" 75
is "... the same" "$("$il" why --json k | py -c 'import json,sys; print(json.load(sys.stdin)["leases"][0]["fence"])')" "$before"
kill -CONT "${pids[d]}"
let_go d

# The keeper dies, or stops.
script e 'trap "echo TERM; exit 9" TERM; "$il" lock k --ttl 3s >/dev/null'
keeper=$(of_lease k keeper)
kill -KILL "$keeper"
await "a killed keeper's lease expires" free k
error "... it cannot be unlocked" 1 "unlock: *" "$il" unlock k --pid "${pids[e]}"
let_go e
is "... nobody tells the shell" "$status $(cat e.out)" "7 "
script f 'trap "echo TERM; exit 9" TERM; "$il" lock k --ttl 1s >/dev/null'
keeper=$(of_lease k keeper)
kill -STOP "$keeper"
gives "a stopped keeper's lease expires" 0 "$il" run --wait 60s k -- true
kill -CONT "$keeper"
reap f
is "... and when it goes on, the shell gets TERM" "$status $(cat f.out)" "9 TERM"
script g '"$il" lock k --ttl 30s >/dev/null'
keeper=$(of_lease k keeper)
kill -STOP "$keeper"
gives "a stopped keeper lets go when asked" 0 "$il" unlock k --pid "${pids[g]}"
check "... at once" free k
let_go g

# Whoever waits and goes away leaves nothing.
script h '"$il" lock k >/dev/null'
bg w "$il" lock k --wait forever
await "one waits" waits_for k 1
kill -KILL "${pids[w]}"
reap w 2>/dev/null
await "... and leaves the queue when it is killed" waits_for k 0
gives "output that cannot be written" 74 as_script '"$il" lock full >/dev/full'
await "... is not held" free full

# Several keys, the same key, other modes.
gives "several keys" 0 as_script '"$il" lock a >/dev/null && "$il" lock b >/dev/null && "$il" unlock a && "$il" run a -- true && "$il" run b -- true; [ $? = 75 ] && "$il" unlock b'
gives "again after unlock" 0 as_script '"$il" lock a && "$il" unlock a && "$il" lock a && "$il" unlock a'
gives "the same key twice" 75 as_script '"$il" lock a >/dev/null; "$il" lock a'
# A key of its own: the keeper of the last script may not have noticed its end yet.
gives "... waiting for oneself is a deadlock" 75 as_script '"$il" lock own >/dev/null; "$il" lock own --wait 60s'
like "... which is said" "$err" "*deadlock*"
gives "shared" 0 as_script '"$il" lock s --shared >/dev/null && "$il" run s --shared -- true && { "$il" run s -- true; [ $? = 75 ]; }'
gives "permits" 0 as_script '"$il" lock p --permits 2 >/dev/null && "$il" run p --permits 2 -- true && "$il" unlock p'
gives "quotes in the key" 0 as_script 'key="it'\''s \"x\" \$HOME"; eval "$("$il" lock --export --pid $$ "$key")" && [ "$INTERLOCK_KEY" = "$key" ] && [ "$INTERLOCK_FENCE" -gt 1 ] && [ -n "$INTERLOCK_HOLDER" ] && "$il" unlock "$key"'
gives "another process" 0 as_script 'sleep 300 & "$il" lock o --pid $! >/dev/null && { "$il" unlock o; [ $? = 1 ]; } && "$il" unlock o --pid $! && kill $!'
gives "as JSON" 0 as_script '"$il" lock j --json; "$il" unlock j -q'
json "... an object" "sorted(d) == ['fence', 'holder', 'keeper', 'key', 'pid'] and d['key'] == 'j' and d['fence'] > 1"
gives "another status" 3 "$il" lock k -E 3
let_go h

# What is refused.
error "not held" 1 "unlock: process * does not hold 'k' through \`interlock lock\`" "$il" unlock k
hold r k
error "held by a run" 1 "unlock: process * does not hold 'k' through*" "$il" unlock k --pid "${pids[r]}"
let_go r
error "no such process" 64 "lock: cannot watch process 4194304: No such process" "$il" lock k --pid 4194304
error "two modes" 64 "lock: --shared and --permits cannot be combined" "$il" lock k --shared --permits 2
error "a bad key" 64 "lock: *" "$il" lock $'k\001'
if [ -z "${IL_TEST_THROUGH_SERVER:-}" ]; then
    error "a store in memory" 64 "lock: store 'memory:' is private*" "$il" lock k --store memory:
    error "a store that cannot be used" 69 "*no/such/folder*" "$il" lock k --store "$work/no/such/folder/x.db"
fi

finish
