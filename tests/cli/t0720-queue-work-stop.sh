#!/bin/bash
# queue work: how a worker stops, and what happens to its jobs; cancelled and lost jobs.
. "$(dirname "$0")/lib.sh" || exit 1

job() {
    local name=$1 id=$2
    run "$il" queue show --json "$id"
    json "$name" "$3"
}
gone() {
    ! kill -0 "$1" 2>/dev/null
}
# worker NAME OPTION... -- SCRIPT: a worker whose command says its pid in NAME.up, and then does SCRIPT.
worker() {
    local name=$1
    shift
    rm -f "$name.up"
    mkfifo "$name.up"
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    bg "$name" "$il" queue work q --create "${options[@]}" -- sh -c 'echo $$ >"$1"; eval "$2"' sh "$work/$name.up" "$2"
}
up() {
    # shellcheck disable=SC2034
    read -r -t "$limit" command_pid <>"$work/$1.up" || fail "$1 runs" "$(cat "$work/$1.err")"
}

# The first signal: what runs may end.
for sig in TERM INT HUP QUIT; do
    id=$("$il" queue push q x)
    next=$("$il" queue push q next)
    mkfifo "go.$sig"
    worker "w$sig" -- "read -r _ <'$work/go.$sig'; echo done"
    up "w$sig"
    kill -$sig "${pids[w$sig]}"
    await "$sig is said" grep -q "a second signal stops it" "w$sig.err"
    check "$sig: the command goes on" kill -0 "$command_pid"
    echo go >"go.$sig"
    reap "w$sig"
    is "... and the worker ends well" "$status" 0
    job "... its job is finished" "$id" "d['state'] == 'COMPLETED' and d['result'] == 'done\n'"
    job "... no other was begun" "$next" "d['state'] == 'READY' and d['attempt'] == 0"
    gives "... away with it" 0 "$il" queue cancel "$next"
done
bg idle "$il" queue work idle --create -- true
await "an idle worker" sh -c "'$il' queue stats idle --json | grep -q '\"workers\":1'"
kill -TERM "${pids[idle]}"
reap idle
is "an idle worker ends at once" "$status" 0

# The second signal: the commands are stopped, the jobs go back.
id=$("$il" queue push q x)
worker w2 --grace 5s -- 'sleep 300 & echo $! >sleeper; wait'
up w2
await "its child" test -s sleeper
kill -TERM "${pids[w2]}"
await "the first signal" grep -q "a second signal" w2.err
kill -TERM "${pids[w2]}"
reap w2
is "a second signal" "$status" 143
check "... the command is gone" gone "$command_pid"
check "... with its child" gone "$(cat sleeper)"
job "... the job is back, as if it had not been tried" "$id" "d['state'] in ('READY', 'SCHEDULED') and d['attempt'] == 0"
worker deaf --lease 3s --grace 300ms -- 'trap "" TERM; exec sleep 300'
up deaf
kill -INT "${pids[deaf]}"
await "the first signal" grep -q "a second signal" deaf.err
kill -INT "${pids[deaf]}"
reap deaf
is "a command that ignores TERM" "$status" 130
check "... is killed after the grace" gone "$command_pid"
job "... its job is back" "$id" "d['state'] in ('READY', 'SCHEDULED') and d['attempt'] == 0"
gives "... and is done" 0 "$il" queue work q --once -- true

# A worker that is killed: its commands end before the job is free.
id=$("$il" queue push q x)
worker k9 --lease 2s --grace 200ms -- 'trap "" TERM; sleep 300 & echo $! >sleeper2; exec sleep 300'
up k9
await "its child" test -s sleeper2
kill -KILL "${pids[k9]}"
reap k9 2>/dev/null
await "the command is ended" gone "$command_pid"
await "... with its child" gone "$(cat sleeper2)"
job "... while the job is still claimed, or free again" "$id" "d['state'] in ('RUNNING', 'READY')"
run "$il" queue work q --once -- sh -c "kill -0 $command_pid 2>/dev/null && touch overlap; echo \$INTERLOCK_JOB_ATTEMPT"
is "another worker gets it" "$out" 2
check "... alone" test ! -e overlap
job "... finished once" "$id" "d['state'] == 'COMPLETED' and d['attempt'] == 2"

# A worker that is stopped loses its job; its command is ended, and it is not left to wake up.
id=$("$il" queue push q x)
worker st --lease 1s --grace 200ms -- 'sleep 300'
up st
kill -STOP "${pids[st]}"
await "the command of a stopped worker is ended" gone "$command_pid"
run "$il" queue work q --once -- sh -c "kill -0 $command_pid 2>/dev/null && touch overlap; echo \$INTERLOCK_JOB_ATTEMPT"
is "... another one gets the job" "$out" 2
check "... alone" test ! -e overlap
await "... and the worker is killed" gone "${pids[st]}"
reap st 2>/dev/null
job "... finished once" "$id" "d['state'] == 'COMPLETED'"

# A reaper that is killed takes its command along; the worker goes on.
id=$("$il" queue push q x)
"$il" queue set q --backoff 1ms --backoff-max 1ms >/dev/null
worker kr --lease 10s -- '[ "$INTERLOCK_JOB_ATTEMPT" = 1 ] || exit 0; setsid sleep 300 & echo $! >sleeper3; wait'
up kr
await "its child" test -s sleeper3
reaper=$(ps -o ppid= -p "$command_pid" | tr -d ' ')
is "the reaper" "$(cat "/proc/$reaper/comm")" il-reaper
kill -KILL "$reaper"
await "the command dies with the reaper" gone "$command_pid"
await "... what it started, too" gone "$(cat sleeper3)"
up kr
await "... the job is tried again" sh -c "'$il' queue show --json $id | grep -q COMPLETED"
job "... and finished by the same worker" "$id" "d['attempt'] == 2"
kill -TERM "${pids[kr]}"
reap kr
is "... which ends well" "$status" 0

# Cancelled while it runs.
id=$("$il" queue push q x)
worker c --lease 10s --grace 1s --once -- 'trap "echo stopping >&2; exit 3" TERM; sleep 300 & wait'
up c
gives "cancel" 0 "$il" queue cancel "$id" --reason "not wanted"
reap c
is "... stops its command" "$status" 1
check "... it is gone" gone "$command_pid"
like "... and is said" "$(cat c.err)" "*job $id cancelled*"
job "... the job is cancelled" "$id" "d['state'] == 'CANCELLED' and 'not wanted' in d['error']"
id=$("$il" queue push q x)
worker n --lease 10s --grace 1s --once -- 'sleep 300'
up n
gives "cancel --now" 0 "$il" queue cancel "$id" --now
is "... ends it at once" "$out" "$id CANCELLED"
reap n
check "... and stops its command" gone "$command_pid"
job "... it stays so" "$id" "d['state'] == 'CANCELLED'"

# Jobs that are cancelled at the very moment when their command ends: the next job has nothing to do with that. On a
# disk, where the news of the cancellation is on its way for long enough to come too late.
disk=$(mktemp -d)
export INTERLOCK_STORE=$disk/x.db
for _ in $(seq 100); do printf 'cancel\nnext\n'; done | "$il" queue push q --lines >/dev/null
gives "cancelled when they end" 0 "$il" -q queue work q --drain -- sh -c \
    'read -r x; [ "$x" = next ] && exec sleep 0.01; exec "$0" queue cancel "$INTERLOCK_JOB_ID"' "$il"
run "$il" queue list q --json --limit 200
json "... every other job is done, at the first try" \
    "len(d['items']) == 200 and all(i['attempt'] == 1 and (i['cancelled'] or i['state'] == 'COMPLETED') for i in d['items'])"
rm -rf "$disk"
export INTERLOCK_STORE=$work/x.db

# Heartbeats: a job may take longer than its lease.
id=$("$il" queue push q x)
gives "longer than the lease" 0 "$il" queue work q --once --lease 1s -- sh -c 'sleep 2.5; echo $INTERLOCK_JOB_ATTEMPT'
is "... in one attempt" "$out" 1
finish
