#!/bin/bash
# Signals to the wrapper reach the command; how the command reacts determines the status.
. "$(dirname "$0")/lib.sh" || exit 1

# tell NAME SIGNAL SCRIPT: run the script, send the signal when it is ready, wait; $status.
tell() {
    mkfifo "$work/$1.up"
    bg "$1" "$il" run --grace 1s "$1" -- sh -c "$3" sh "$work/$1.up"
    if ! read -r -t "$limit" _ <>"$work/$1.up"; then
        fail "$1 starts" "$(cat "$work/$1.err")"
    fi
    kill "-$2" "${pids[$1]}"
    reap "$1"
}

idle='echo up >"$1"; while :; do sleep 0.02; done'
for pair in TERM:143 INT:130 HUP:129 QUIT:131 USR1:138 USR2:140 ALRM:142; do
    tell "default-${pair%:*}" "${pair%:*}" "$idle"
    is "${pair%:*} ends the command" "$status" "${pair#*:}"
done
for signal in TERM INT HUP QUIT USR1 USR2 ALRM; do
    tell "trap-$signal" $signal "trap 'echo got $signal; exit 42' $signal; $idle"
    is "the command may see $signal and decide" "$status" 42
    is "... and say something" "$(cat "$work/trap-$signal.out")" "got $signal"
done
for signal in CONT WINCH; do
    tell "pass-$signal" $signal "trap 'exit 43' $signal; $idle"
    is "$signal is passed on" "$status" 43
done
is "all of them gave their key back" "$(state)" $'il_lease []\nil_waiter []'

# A command that ignores INT goes on, and so do we.
tell ignores INT "trap '' INT; echo up >\"\$1\"; sleep 0.2; exit 9"
is "ignored by the command" "$status" 9

# Under nohup HUP stays ignored, in the command too.
mkfifo nohup.up nohup.go
bg nohup sh -c 'trap "" HUP; exec "$1" run k -- sh -c "exec 3<>nohup.go; echo up >nohup.up; read -r _ <&3; exit 5"' sh "$il"
read -r -t "$limit" _ <>nohup.up || fail "nohup starts"
kill -HUP "${pids[nohup]}"
echo go 1<>nohup.go
reap nohup
is "HUP that was ignored stays ignored" "$status" 5

# The command cannot be suspended, for a lease is held.
hold s suspended --ttl 30s
kill -STOP "$command_pid"
running() {
    case $(cut -d' ' -f3 "/proc/$command_pid/stat") in [RSD]) return 0 ;; *) return 1 ;; esac
}
await "goes on" running && pass "a stopped command goes on"
kill -TSTP "${pids[s]}"
await "is told" grep -q "cannot be suspended" s.err && pass "Ctrl-Z at the wrapper is answered"
let_go s
is "... and nothing else happened" "$status" 0

# Two signals: both are passed on.
mkfifo two.up
bg two "$il" run k -- sh -c 'trap "echo one >two.one" INT; trap "exit 44" TERM; echo up >two.up
    while :; do sleep 0.02; done'
read -r -t "$limit" _ <>two.up || fail "two starts"
kill -INT "${pids[two]}"
await "the first" test -e two.one
kill -TERM "${pids[two]}"
reap two
is "a second signal is passed on, too" "$status" 44
finish
